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

/// Numbers of ranks of the axes that split activations.
struct AxisPair {
  enum class State { waiting, open, refused };
  int64_t context, tensor;
  unsigned first; ///< number of its first candidate
  State state = State::waiting;
  std::string problem;    ///< why the model cannot be split, if `state` is refused
  bool isPlanned = false; ///< whether one of its candidates is planned
  double seconds = 0;     ///< time of its fastest plan that fits, or 0
};

/// The pairs of a list of candidates.
class AxisPairs {
public:
  AxisPairs(ModuleOp imported, const std::vector<Candidate> &candidates);

  /// Opens those waiting pairs that may have a faster plan than `fastest` seconds (0 if no plan
  /// fits), or all waiting pairs if `all`. Refuses those of them that the model does not allow.
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
