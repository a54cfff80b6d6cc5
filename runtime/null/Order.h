//===- Order.h - Order of collectives across ranks --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks that all members of a group start the same collectives and that no order of the
// collectives leads to a deadlock. A communicator is a group of ranks and a channel. The check
// advances all ranks through their programs:
//  1. A rank stops at its next collective.
//  2. A collective completes when all members of its group have stopped at this collective.
//  3. When no rank can advance, the check reports the first rank that has not finished.
// If no rank is reported, the members of each communicator start equal collectives in the same
// order, and no ranks wait for each other in a cycle. The check assumes that a rank runs one
// collective after another, as the transfer worker of a rank does. Backends also permit other
// orders.
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
  uint64_t collectives = 0, communicators = 0; // a communicator is a pair (axes, channel)
};

/// Checks the program `name`. `manifests` contains the manifest of each rank. Adds at most one
/// finding to `findings`.
OrderCounts checkOrder(const std::vector<const fb::Manifest *> &manifests, const Mesh &mesh,
                       const std::string &name, Findings &findings);

} // namespace fsdprt

#endif // FSDPRT_NULL_ORDER_H
