//===- NonFiniteSearch.h - Find the origin of a non-finite number -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_NONFINITESEARCH_H
#define FSDPRT_EXECUTE_NONFINITESEARCH_H

#include "execute/RankObserver.h"

namespace fsdprt {

/// The first reduction of a run to which a rank of this process has passed a non-finite operand.
struct NonFiniteSource {
  /// Number of the reduction's command, or UINT32_MAX if no rank has passed a non-finite operand.
  uint32_t number = UINT32_MAX;
  /// `collective` is the index of the reduction. `ranks` is the number of ranks that passed a
  /// non-finite operand to it.
  uint32_t collective = 0, ranks = 0;
  uint32_t first = 0; ///< lowest rank with a non-finite operand
};

/// Observer that checks whether the operands that the ranks of this process pass to reductions are
/// finite.
class NonFiniteSearch : public RankObserver {
public:
  NonFiniteSearch(uint32_t firstRank, uint32_t ranks) : firstRank(firstRank), found(ranks) {}

  void beforeReduction(const RankRun &run, const Instruction &instruction,
                       uint64_t source) override;
  /// Returns the result of the last run, which must have ended.
  NonFiniteSource result() const;

private:
  uint32_t firstRank;
  /// For each rank of this process, the first reduction to which the rank has passed a non-finite
  /// operand, or null if all operands were finite.
  std::vector<const Instruction *> found;
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_NONFINITESEARCH_H
