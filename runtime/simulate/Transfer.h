//===- Transfer.h - A collective as work for links --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A transfer moves chunks one after another, each over all levels of links that it crosses:
//
//   |  head  | chunk | gap | chunk | gap | chunk | gap |
//    latency   links         links         links        links are free for others in head and gaps
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_SIMULATE_TRANSFER_H
#define FSDPRT_SIMULATE_TRANSFER_H

#include "fsdprt/artifact_generated.h"
#include "simulate/Cluster.h"

namespace fsdprt {

/// The ranks first, first + stride, first + 2 * stride, ...
struct CollectiveGroup {
  uint64_t ranks = 1, stride = 1;
};

struct Transfer {
  std::string protocol;   // for reports; empty: a ring at plain rates
  double headSeconds = 0; // latency before the first chunk
  uint64_t chunks = 0;    // number of chunks, all of one size
  std::vector<double>
      chunkSeconds;      // by level: seconds that a chunk occupies a rank's links; 0: unused
  double gapSeconds = 0; // idle time of the links after each chunk

  /// Returns the seconds from begin to end if no other transfer uses the links.
  double aloneSeconds() const;
};

/// Plans the fastest transfer of a collective: a ring over each protocol, or a reduction in a
/// switch. `bytes` is the size of the full buffer: the result, or of a reduce-scatter the source.
Transfer planTransfer(const Cluster &cluster, fb::CollectiveKind kind, double bytes,
                      CollectiveGroup group);

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_TRANSFER_H
