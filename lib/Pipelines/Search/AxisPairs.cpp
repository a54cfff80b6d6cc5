//===- AxisPairs.cpp - Ranks of the axes context and tensor -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   tensor   1    2    4          + planned, the fastest so far is here
//   context                       - planned, no faster plan
//      1     +    -    .          . not tried: no pair before it has the fastest plan
//      2     -    .    .          x refused: the axis tensor does not divide the heads
//
// Bounds exclude few pairs, because programs of different pairs have different kernels. Hence a
// pair is tried only if a pair before it, with one axis smaller by a prime factor, is worthwhile:
// its fastest plan takes at most 1.5 times as long as the fastest plan of all, or no plan fits.
// This assumes that if an axis makes a step slower by more, more ranks on this axis do not make it
// faster. Of a pair that is not worthwhile, no more candidates are planned after the first one that
// fits. This assumes that strategies differ by less. The candidates of a pair are compared first
// that have the recomputation, the offloading and the prefetching of the fastest plan so far.
//
// A pair has variants: --sequence-parallel if tensor > 1, a ring if context > 1, and both. They are
// tried after the pair if it is worthwhile, unless bounds that follow from its plans exclude them
// (PlanBounds.cpp): a variant needs less memory, but has the same products. Of a variant whose
// first plan is not the fastest, no others are tried: strategies of a variant differ as those of
// the pair do.
//
// A pair is refused if the pass fsdp-partition-tensors fails for its first candidate. Without
// another run of the pass, pairs with the same ranks on tensor and a multiple of the ranks on
// context are refused too. Multiples on tensor are tried: 3 ranks do not divide 2 heads of keys, of
// which 6 ranks have copies.
//
//===----------------------------------------------------------------------===//

#include "AxisPairs.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using State = AxisPair::State;

/// Largest ratio of the time of a pair's plans to that of the fastest plan with which more of its
/// candidates are planned.
static constexpr double mostSlowdown = 1.5;

/// Returns whether `pair` splits all that `other` splits apart from ranks, and more.
static bool isLess(const AxisPair &other, const AxisPair &pair) {
  return other.split.addsAtMost(pair.split) && !pair.split.addsAtMost(other.split);
}

AxisPairs::AxisPairs(const std::vector<Candidate> &candidates) {
  for (const Candidate &candidate : candidates) {
    ActivationSplit split = getActivationSplit(candidate.options);
    auto isSame = [&](const AxisPair &pair) { return pair.split == split; };
    auto found = llvm::find_if(pairs, isSame);
    numbers.push_back(found - pairs.begin());
    if (found == pairs.end())
      pairs.push_back({split, /*isVariant=*/false, State::waiting, /*problem=*/"", std::nullopt});
  }
  for (AxisPair &pair : pairs)
    pair.isVariant = llvm::any_of(pairs, [&](const AxisPair &other) {
      return other.split.hasRanksOf(pair.split) && isLess(other, pair);
    });
}

/// Returns whether `before` is a variant with less than `pair`, or has one axis that is smaller
/// than that of `pair` by a prime factor.
static bool isBefore(const AxisPair &before, const AxisPair &pair) {
  if (pair.isVariant)
    return before.split.hasRanksOf(pair.split) && isLess(before, pair);
  int64_t factor =
      pair.split.context / before.split.context * (pair.split.tensor / before.split.tensor);
  bool isPrime = factor > 1;
  for (int64_t divisor = 2; divisor * divisor <= factor; ++divisor)
    isPrime &= factor % divisor != 0;
  return before.split.dividesRanksOf(pair.split) && isPrime;
}

bool AxisPairs::mayBeFaster(const AxisPair &pair, double fastest) const {
  if (pair.isVariant)
    return !pair.isExcluded && llvm::all_of(pairs, [&](const AxisPair &before) {
      bool isDone = before.isVariant || before.state == State::open;
      bool isSlow = !before.isVariant && !isWorthwhile(before, fastest);
      return !isBefore(before, pair) ||
             (!isSlow && (before.isCompared || (before.isExcluded && isDone)));
    });
  bool isFirst = true;
  for (const AxisPair &before : pairs) {
    if (!isBefore(before, pair) || before.state == State::refused)
      continue;
    isFirst = false;
    // No plan is known yet when the pair of plain meshes is compared: its plans are the fastest.
    if (before.split == ActivationSplit())
      return true;
    double seconds = before.isCompared ? before.seconds : before.bound;
    if (before.state == State::open && (before.isCompared || before.isExcluded) &&
        (seconds == 0 || seconds <= mostSlowdown * fastest))
      return true;
  }
  return isFirst;
}

void AxisPairs::update(double fastest, llvm::function_ref<std::optional<double>(unsigned)> bound,
                       llvm::function_ref<bool(unsigned)> isExcluded,
                       llvm::function_ref<unsigned(unsigned)> group) {
  for (AxisPair &pair : pairs) {
    pair.isExcluded = true;
    pair.bound = 0;
    pair.isCompared = pair.firstGroup.has_value();
  }
  for (unsigned number = 0; number < numbers.size(); ++number) {
    AxisPair &pair = of(number);
    bool isOut = isExcluded(number);
    pair.isExcluded &= isOut;
    pair.isCompared &= isOut || pair.firstGroup != group(number) || !isWorthwhile(pair, fastest);
    if (std::optional<double> seconds = bound(number))
      pair.bound = pair.bound > 0 ? std::min(pair.bound, *seconds) : *seconds;
  }
}

bool AxisPairs::areCompared() const {
  return llvm::all_of(pairs, [](const AxisPair &pair) {
    return pair.state != State::open || pair.isCompared || pair.isExcluded;
  });
}

bool AxisPairs::isWorthwhile(const AxisPair &pair, double fastest) {
  return pair.seconds == 0 || pair.seconds <= (pair.isVariant ? 1 : mostSlowdown) * fastest;
}

const AxisPair *AxisPairs::findRefused(const AxisPair &pair) const {
  auto isRefused = [&](const AxisPair &other) {
    return other.state == State::refused && other.split.dividesRanksOf(pair.split) &&
           other.split.addsAtMost(pair.split) &&
           (other.split.tensor == 1 || other.split.tensor == pair.split.tensor);
  };
  auto found = llvm::find_if(pairs, isRefused);
  return found == pairs.end() ? nullptr : &*found;
}

bool AxisPairs::open(double fastest, bool all) {
  bool isAnyOpened = false;
  for (AxisPair &pair : pairs) {
    if (pair.state != State::waiting)
      continue;
    if (const AxisPair *refused = findRefused(pair)) {
      pair.state = State::refused;
      pair.problem = refused->problem;
    } else if (all || mayBeFaster(pair, fastest)) {
      pair.state = State::open;
      isAnyOpened = true;
    }
  }
  return isAnyOpened;
}

void AxisPairs::refuse(unsigned candidate, StringRef problem) {
  of(candidate).state = State::refused;
  of(candidate).problem = problem.str();
  for (AxisPair &pair : pairs)
    if (const AxisPair *refused =
            pair.state == State::open && !pair.firstGroup ? findRefused(pair) : nullptr) {
      pair.state = State::refused;
      pair.problem = refused->problem;
    }
}
