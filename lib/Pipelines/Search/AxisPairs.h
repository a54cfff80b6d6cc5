//===- AxisPairs.h - Ranks of the axes context and tensor -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_SEARCH_AXISPAIRS_H
#define FSDP_PIPELINES_SEARCH_AXISPAIRS_H

#include "SearchSpace.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// Numbers of ranks of the axes that split activations, and what they split.
struct AxisPair {
  enum class State { waiting, open, refused };
  ActivationSplit split;
  unsigned first;         ///< number of its first candidate
  bool isVariant = false; ///< whether another pair with the same ranks splits less
  State state = State::waiting;
  std::string problem;     ///< why the model cannot be split, if `state` is refused
  bool isPlanned = false;  ///< whether one of its candidates is planned
  bool isExcluded = false; ///< whether the bounds exclude all candidates that are not planned
  double seconds = 0;      ///< time of its fastest plan that fits, or 0
  double bound = 0;        ///< least bound of the time of its candidates that may fit, or 0
};

/// The pairs of a list of candidates.
class AxisPairs {
public:
  AxisPairs(ModuleOp imported, const std::vector<Candidate> &candidates);

  /// Updates what the bounds say about the pairs: `bound` returns the bound of the time of a
  /// candidate that may fit, or nothing, and `isExcluded` whether the bounds exclude it.
  void update(llvm::function_ref<std::optional<double>(unsigned)> bound,
              llvm::function_ref<bool(unsigned)> isExcluded);
  /// Returns whether more than one group of the pair should be planned, if the fastest plan of all
  /// takes `fastest` seconds.
  static bool isWorthwhile(const AxisPair &pair, double fastest);
  /// Opens those waiting pairs that may have a faster plan than `fastest` seconds (0 if no plan
  /// fits yet), or all waiting pairs if `all`. Refuses those of them that the model does not allow.
  /// Returns whether a pair is open that was waiting before.
  bool open(double fastest, bool all);
  /// Returns the pair of a candidate.
  AxisPair &of(unsigned candidate) { return pairs[numbers[candidate]]; }
  const AxisPair &of(unsigned candidate) const { return pairs[numbers[candidate]]; }

private:
  bool mayBeFaster(const AxisPair &pair, double fastest) const;
  const AxisPair *findRefused(const AxisPair &pair) const;

  ModuleOp imported;
  const std::vector<Candidate> &candidates;
  std::vector<AxisPair> pairs;
  std::vector<unsigned> numbers; ///< number of the pair of each candidate
};

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_SEARCH_AXISPAIRS_H
