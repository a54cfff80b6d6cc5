//===- Order.h - Order of collectives across ranks --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks that all ranks start matching collectives in a compatible order. A communicator is a group
// of ranks and a channel. Ranks advance together:
//  1. A rank stops at its next collective.
//  2. A collective completes when all members of its group have stopped at the collective.
//  3. When no rank can advance, the check reports the first rank that has not finished.
// If no rank is reported, members start equal collectives in equal order, and the communicators
// have no cycle of waits. A rank's transfer worker runs collectives in this way; backends permit
// other orders.
//
// The check takes time O(ranks * collectives).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_ORDER_H
#define FSDPRT_NULL_ORDER_H

#include "artifact/Mesh.h"
#include "fsdprt/artifact_generated.h"
#include "null/Findings.h"

namespace fsdprt {

struct OrderCounts {
  uint64_t collectives = 0, communicators = 0; // communicators: pairs of axes and channel
};

/// Checks the program `name`. `manifests` has each rank's manifest. Appends at most one finding.
OrderCounts checkOrder(const std::vector<const fb::Manifest *> &manifests, const Mesh &mesh,
                       const std::string &name, Findings &findings);

} // namespace fsdprt

#endif // FSDPRT_NULL_ORDER_H
