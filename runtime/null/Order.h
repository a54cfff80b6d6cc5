//===- Order.h - Order of collectives across ranks --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks that all ranks start matching collectives in a compatible order. A communicator is a group
// of ranks and a channel. Ranks advance together:
//  1. A rank stops at its next collective.
//  2. A collective completes when all members of its group have stopped at it.
//  3. When no rank can advance, the check reports the first rank that has not finished.
// If no rank is reported, members start equal collectives in equal order, and there is no cycle of
// waits across communicators. A rank's transfer worker obeys these rules; backends permit more.
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
  uint64_t collectives = 0, communicators = 0; // completed collectives; pairs of axes and channel
};

/// Checks the program `name`. `manifests` has each rank's manifest. Appends at most one finding.
OrderCounts checkOrder(const std::vector<const fb::Manifest *> &manifests, const Mesh &mesh,
                       const std::string &name, Findings &findings);

} // namespace fsdprt

#endif // FSDPRT_NULL_ORDER_H
