//===- NullDevice.h - Walks the programs of all ranks -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Walks the commands of a run on all ranks without executing kernels. The run consists of `init`,
// steps, and steps that resume from a save. All other programs, such as the evaluation, run once
// after the first step. The artifact describes which bytes a kernel reads and writes, and the walk
// does not check this description.
//
//  1. Check that the collectives of all ranks match (Order.h).
//  2. Group the ranks whose commands access equal ranges, and walk the commands of one rank of each
//     group (RankWalk.h).
//  3. Walk `init` for one rank per initialised part of the parameters, and check that `init` writes
//     every state completely.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_NULLDEVICE_H
#define FSDPRT_NULL_NULLDEVICE_H

#include "artifact/Artifact.h"
#include "null/Findings.h"
#include "null/Order.h"
#include "null/RankWalk.h"

namespace fsdprt {

struct NullOptions {
  uint64_t steps = 3; // number of steps to walk, at least 1

  /// The artifact of each rank that does not run the argument `artifact`. The key is the number of
  /// the rank.
  std::map<uint64_t, std::shared_ptr<const Artifact>> peers;
};

struct NullResult {
  // `kinds` is the number of groups of ranks that access equal ranges. `walked` is the number of
  // these groups that were walked.
  uint64_t ranks = 0, kinds = 0, walked = 0;
  WalkCounts counts;
  OrderCounts order;
  std::vector<Finding> findings;
};

/// Walks all programs. It is sufficient that the artifacts were opened with Rules::form. Throws an
/// Error if the artifact of a peer has another mesh, or if the peer's rank does not exist.
NullResult walkPrograms(const Artifact &artifact, const NullOptions &options);

} // namespace fsdprt

#endif // FSDPRT_NULL_NULLDEVICE_H
