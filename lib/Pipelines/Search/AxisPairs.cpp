//===- AxisPairs.cpp - Ranks of the axes context and tensor -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   tensor   1    2    4          + planned, the fastest so far is here
//   context                       - planned, no faster plan
//      1     +    -    .          . not tried: no pair before it has the fastest plan
//      2     -    .    .          x refused: 3 does not divide the heads, and 6 is not tried either
//
// Bounds cannot exclude a pair, because programs of different pairs have different kernels. Hence a
// pair is tried only if a pair before it, with one axis smaller by a prime factor, has the fastest
// plan of all, or no plan that fits. This assumes that if an axis makes a step slower, more ranks
// on this axis do not make it faster.
//
// A pair is refused if the pass fsdp-partition-tensors fails for it. All pairs whose axes are
// multiples of those of a refused pair are refused with it, without another run of the pass.
//
//===----------------------------------------------------------------------===//

#include "AxisPairs.h"
#include "ChildProcesses.h"
#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Shard/Passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::fsdp;
using State = AxisPair::State;

/// Returns why the model cannot be split over the axes of a mesh, or an empty text.
static std::string findRefusal(ModuleOp imported, const StepOptions &options) {
  std::string problem;
  ScopedDiagnosticHandler handler(imported.getContext(), [&](Diagnostic &diag) {
    if (diag.getSeverity() == DiagnosticSeverity::Error && problem.empty())
      problem = diag.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = imported.clone();
  PassManager pm(module->getContext(), ModuleOp::getOperationName());
  pm.enableVerifier(false);
  pm.addPass(configure(createApplyPrecisionPass(), options));
  pm.addPass(configure(createPartitionTensorsPass(), options));
  return succeeded(pm.run(*module)) ? "" : problem.empty() ? "the model is not split" : problem;
}

AxisPairs::AxisPairs(ModuleOp imported, const std::vector<Candidate> &candidates)
    : imported(imported), candidates(candidates) {
  for (auto [number, candidate] : llvm::enumerate(candidates)) {
    MeshRanks mesh = getMeshRanks(candidate.options);
    auto isSame = [&](const AxisPair &pair) {
      return pair.context == mesh.context && pair.tensor == mesh.tensor;
    };
    auto found = llvm::find_if(pairs, isSame);
    numbers.push_back(found - pairs.begin());
    if (found == pairs.end())
      pairs.push_back({mesh.context, mesh.tensor, static_cast<unsigned>(number)});
  }
}

/// Returns whether both axes of `pair` are multiples of those of `other`.
static bool isMultiple(const AxisPair &pair, const AxisPair &other) {
  return pair.context % other.context == 0 && pair.tensor % other.tensor == 0;
}

/// Returns whether `before` has one axis that is smaller than that of `pair` by a prime factor.
static bool isBefore(const AxisPair &before, const AxisPair &pair) {
  int64_t factor = pair.context / before.context * (pair.tensor / before.tensor);
  bool isPrime = factor > 1;
  for (int64_t divisor = 2; divisor * divisor <= factor; ++divisor)
    isPrime &= factor % divisor != 0;
  return isMultiple(pair, before) && isPrime;
}

bool AxisPairs::mayBeFaster(const AxisPair &pair, double fastest) const {
  bool isFirst = true;
  for (const AxisPair &before : pairs) {
    if (!isBefore(before, pair))
      continue;
    isFirst = false;
    if (before.state == State::open && (before.seconds == 0 || before.seconds <= fastest))
      return true;
  }
  return isFirst;
}

const AxisPair *AxisPairs::findRefused(const AxisPair &pair) const {
  auto isRefused = [&](const AxisPair &other) {
    return other.state == State::refused && isMultiple(pair, other);
  };
  auto found = llvm::find_if(pairs, isRefused);
  return found == pairs.end() ? nullptr : &*found;
}

bool AxisPairs::open(double fastest, bool all) {
  std::vector<AxisPair *> chosen;
  std::vector<std::function<void(llvm::raw_ostream &)>> tasks;
  for (AxisPair &pair : pairs) {
    if (pair.state != State::waiting || findRefused(pair) || (!all && !mayBeFaster(pair, fastest)))
      continue;
    chosen.push_back(&pair);
    const StepOptions &options = candidates[pair.first].options;
    tasks.push_back([this, &pair, &options](llvm::raw_ostream &os) {
      if (pair.context * pair.tensor > 1)
        os << findRefusal(imported, options);
    });
  }
  bool isAnyOpen = false;
  for (auto [pair, output] : llvm::zip_equal(chosen, runInChildren(tasks))) {
    // A process that ended early has found nothing: the candidates' own processes report why.
    pair->problem = output.problem.empty() ? output.text : "";
    pair->state = pair->problem.empty() ? State::open : State::refused;
    isAnyOpen |= pair->state == State::open;
  }
  for (AxisPair &pair : pairs)
    if (const AxisPair *refused = pair.state == State::waiting ? findRefused(pair) : nullptr) {
      pair.state = State::refused;
      pair.problem = refused->problem;
    }
  return isAnyOpen;
}
