//===- Order.h - Whether the collectives of all ranks meet ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A communicator is a group of ranks and a channel. Its members have to start the same collectives
// in the same order, and what a rank starts on all of its communicators must not be in a circle
// with what others do. So ranks are let go on together: a rank stands at its first collective that
// has not met; one meets when all members stand at it, which is what a rank's transfer worker does,
// and stricter than any backend.
//
// O(ranks x collectives).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_ORDER_H
#define FSDPRT_NULL_ORDER_H

#include "artifact/Mesh.h"
#include "fsdprt/artifact_generated.h"
#include "null/Findings.h"

namespace fsdprt {

struct OrderCounts {
  uint64_t collectives = 0, communicators = 0; // that met; with their groups
};

/// A program with the name `name` on all ranks: `manifests` has that of each rank.
OrderCounts checkOrder(const std::vector<const fb::Manifest *> &manifests, const Mesh &mesh,
                       const std::string &name, Findings &findings);

} // namespace fsdprt

#endif // FSDPRT_NULL_ORDER_H
