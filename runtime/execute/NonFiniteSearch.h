//===- NonFiniteSearch.h - Find the origin of a non-finite number -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_NONFINITESEARCH_H
#define FSDPRT_EXECUTE_NONFINITESEARCH_H

#include "execute/RankObserver.h"

namespace fsdprt {

/// The first reduction with a non-finite operand, and the ranks that contributed it.
struct NonFiniteSource {
  uint32_t number = UINT32_MAX;       ///< number of the command; UINT32_MAX: none found
  uint32_t collective = 0, ranks = 0; ///< ranks: number of contributing ranks of this process
  uint32_t first = 0;                 ///< first contributing rank of this process
};

/// Checks each operand that a rank of this process passes to a reduction.
class NonFiniteSearch : public RankObserver {
public:
  NonFiniteSearch(uint32_t firstRank, uint32_t ranks) : firstRank(firstRank), found(ranks) {}

  void beforeReduction(const RankRun &run, const Instruction &instruction,
                       uint64_t source) override;
  /// Returns the result, after the run.
  NonFiniteSource result() const;

private:
  uint32_t firstRank;
  std::vector<const Instruction *> found; // by rank: its first reduction with a non-finite operand
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_NONFINITESEARCH_H
