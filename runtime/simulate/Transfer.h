//===- Transfer.h - A collective as work for links --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A transfer moves chunks one after another. A chunk occupies all levels of links that it crosses:
//
//   |  head  | chunk | gap | chunk | gap | chunk | gap |
//    latency   links         links         links        other transfers use the links in gaps
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_SIMULATE_TRANSFER_H
#define FSDPRT_SIMULATE_TRANSFER_H

#include "fsdprt/artifact_generated.h"
#include "simulate/Cluster.h"

namespace fsdprt {

/// A group of `ranks` ranks: first, first + stride, first + 2 * stride, ...
struct CollectiveGroup {
  uint64_t ranks = 1, stride = 1;
};

struct Transfer {
  std::string protocol;   // name for reports; empty for a ring without protocol
  double headSeconds = 0; // latency before the first chunk
  uint64_t chunks = 0;    // number of chunks, which have equal sizes

  /// Time in seconds for which a chunk occupies a rank's links, by level, or 0 for an unused level.
  std::vector<double> chunkSeconds;
  double gapSeconds = 0; // idle time of the links after each chunk

  /// Returns the time in seconds from begin to end if no other transfer uses the links.
  double aloneSeconds() const;
};

/// Plans the fastest transfer of a collective: a ring with a protocol, or a reduction in a switch.
/// `bytes` is the size of the full buffer: the source of a reduce-scatter, otherwise the result.
Transfer planTransfer(const Cluster &cluster, fb::CollectiveKind kind, double bytes,
                      CollectiveGroup group);

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_TRANSFER_H
