//===- NullDevice.h - Programs of all ranks, walked -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Walks what a run would do, on all ranks, and executes no kernel: initial values, steps, an
// evaluation between them, and steps after a save that was loaded; then the unsharded reference.
// It takes an artifact's word for nothing but what its kernels read and write.
//
//  1. The collectives of all ranks are let meet (Order.h).
//  2. Ranks for which no range of their commands differs are alike: one of each kind is walked
//     (RankWalk.h).
//  3. What sets the first values differs by rank more than that: it is walked for every rank that
//     has other parts of parameters, and has to write the whole of every state.
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
  uint64_t steps = 3;                                        // at least 1
  std::map<uint64_t, std::shared_ptr<const Artifact>> peers; // ranks that run another artifact
};

struct NullResult {
  uint64_t ranks = 0, kinds = 0, walked = 0; // kinds of ranks, and how many of them were walked
  WalkCounts counts;
  OrderCounts order;
  std::vector<Finding> findings;
};

/// Artifacts that were opened with Rules::form suffice. Throws Error where ranks do not fit
/// together.
NullResult walkPrograms(const Artifact &artifact, const NullOptions &options);

} // namespace fsdprt

#endif // FSDPRT_NULL_NULLDEVICE_H
