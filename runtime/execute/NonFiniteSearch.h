//===- NonFiniteSearch.h - Where a number that is not finite is from *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_NONFINITESEARCH_H
#define FSDPRT_EXECUTE_NONFINITESEARCH_H

#include "execute/RankObserver.h"

namespace fsdprt {

/// The first reduction that got a number which is not finite, and who gave it one.
struct NonFiniteSource {
  uint32_t number = UINT32_MAX;       ///< of the command in the program; UINT32_MAX: none was found
  uint32_t collective = 0, ranks = 0; ///< how many ranks of this process gave it such a number
  uint32_t first = 0;                 ///< of these
};

/// Looks into what each rank of this process gives to reductions.
class NonFiniteSearch : public RankObserver {
public:
  NonFiniteSearch(uint32_t firstRank, uint32_t ranks) : firstRank(firstRank), found(ranks) {}

  void beforeReduction(const RankRun &run, const Instruction &instruction,
                       uint64_t source) override;
  /// Returns the result, after the run.
  NonFiniteSource result() const;

private:
  uint32_t firstRank;
  std::vector<const Instruction *> found; // by rank: the first such reduction
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_NONFINITESEARCH_H
