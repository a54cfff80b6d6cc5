//===- AxisPairs.h - Ranks of the axes context and tensor -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_SEARCH_AXISPAIRS_H
#define FSDP_PIPELINES_SEARCH_AXISPAIRS_H

#include "SearchSpace.h"

namespace mlir::fsdp {

/// Numbers of ranks of the axes that split activations, and what they split.
struct AxisPair {
  enum class State { waiting, open, refused };
  ActivationSplit split;
  bool isVariant = false; ///< whether another pair with the same ranks splits less
  State state = State::waiting;
  std::string problem;                ///< why the model cannot be split, if `state` is refused
  std::optional<unsigned> firstGroup; ///< group of the first candidate of the pair that is planned
  /// Whether no more candidates of the first group may be faster, or the pair is not worthwhile.
  bool isCompared = false;
  bool isExcluded = false; ///< whether the bounds exclude all candidates that are not planned
  double seconds = 0;      ///< time of its fastest plan that fits, or 0
  double bound = 0;        ///< least bound of the time of its candidates that may fit, or 0
};

/// The pairs of a list of candidates.
class AxisPairs {
public:
  explicit AxisPairs(const std::vector<Candidate> &candidates);

  /// Updates what is known about the pairs if the fastest plan takes `fastest` seconds: `bound`
  /// returns the bound of the time of a candidate that may fit, or nothing, `isExcluded` whether
  /// the bounds exclude it or it is planned, and `group` its group.
  void update(double fastest, llvm::function_ref<std::optional<double>(unsigned)> bound,
              llvm::function_ref<bool(unsigned)> isExcluded,
              llvm::function_ref<unsigned(unsigned)> group);
  /// Returns whether all open pairs are compared or excluded.
  bool areCompared() const;
  /// Returns whether more candidates of the pair should be planned, if the fastest plan of all
  /// takes `fastest` seconds.
  static bool isWorthwhile(const AxisPair &pair, double fastest);
  /// Opens those waiting pairs that may have a faster plan than `fastest` seconds (0 if no plan
  /// fits yet), or all waiting pairs if `all`. Returns whether a pair is open that was waiting
  /// before.
  bool open(double fastest, bool all);
  /// Refuses the pair of a candidate, and the pairs that the model does not allow for this reason.
  void refuse(unsigned candidate, llvm::StringRef problem);
  /// Returns the pair of a candidate.
  AxisPair &of(unsigned candidate) { return pairs[numbers[candidate]]; }
  const AxisPair &of(unsigned candidate) const { return pairs[numbers[candidate]]; }

private:
  bool mayBeFaster(const AxisPair &pair, double fastest) const;
  const AxisPair *findRefused(const AxisPair &pair) const;

  std::vector<AxisPair> pairs;
  std::vector<unsigned> numbers; ///< number of the pair of each candidate
};

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_SEARCH_AXISPAIRS_H
