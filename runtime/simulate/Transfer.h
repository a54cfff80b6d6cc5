//===- Transfer.h - A collective as work for links --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chunks, one after another, each on all levels of links that the collective crosses:
//
//   |  head  | chunk | gap | chunk | gap | chunk | gap |
//     hops     links         links         links          head and gaps leave the links to others
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_SIMULATE_TRANSFER_H
#define FSDPRT_SIMULATE_TRANSFER_H

#include "fsdprt/artifact_generated.h"
#include "simulate/Cluster.h"

namespace fsdprt {

/// Ranks first, first + stride, ..
struct CollectiveGroup {
  uint64_t ranks = 1, stride = 1;
};

struct Transfer {
  std::string protocol;   // how, for reports; empty: as a plain ring
  double headSeconds = 0; // before the first chunk
  uint64_t chunks = 0;    // all of one size
  std::vector<double>
      chunkSeconds;      // by level: how long a chunk occupies the links of a rank; 0: not at all
  double gapSeconds = 0; // after each chunk

  /// With the links for itself.
  double aloneSeconds() const;
};

/// The fastest way for a collective in which `bytes` are at a rank in the end (of a reduce-scatter:
/// in the beginning), among a ring of each protocol, and a reduction in a switch.
Transfer planTransfer(const Cluster &cluster, fb::CollectiveKind kind, double bytes,
                      CollectiveGroup group);

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_TRANSFER_H
