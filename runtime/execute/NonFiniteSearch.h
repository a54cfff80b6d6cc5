//===- NonFiniteSearch.h - Find the origin of a non-finite number -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_NONFINITESEARCH_H
#define FSDPRT_EXECUTE_NONFINITESEARCH_H

#include "execute/RankObserver.h"

namespace fsdprt {

/// The first reduction of a run that got a non-finite operand from a rank of this process.
struct NonFiniteSource {
  uint32_t number = UINT32_MAX;       ///< number of its command; UINT32_MAX if none exists
  uint32_t collective = 0, ranks = 0; ///< index of the reduction; number of such ranks
  uint32_t first = 0;                 ///< lowest rank with a non-finite operand
};

/// Observer that checks each operand that a rank of this process passes to a reduction.
class NonFiniteSearch : public RankObserver {
public:
  NonFiniteSearch(uint32_t firstRank, uint32_t ranks) : firstRank(firstRank), found(ranks) {}

  void beforeReduction(const RankRun &run, const Instruction &instruction,
                       uint64_t source) override;
  /// Returns the result of the last run, which must have ended.
  NonFiniteSource result() const;

private:
  uint32_t firstRank;
  /// For each rank, the first reduction to which the rank has passed a non-finite operand, or null.
  std::vector<const Instruction *> found;
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_NONFINITESEARCH_H
