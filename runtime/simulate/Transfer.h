//===- Transfer.h - A collective as work for links --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A transfer moves chunks one after another. While it moves a chunk, it occupies all levels of
// links that the chunk crosses:
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

/// A group that consists of `ranks` ranks: first, first + stride, first + 2 * stride, ...
struct CollectiveGroup {
  uint64_t ranks = 1, stride = 1;
};

struct Transfer {
  // Name of the protocol in reports. The name is empty for a ring that uses no protocol.
  std::string protocol;
  double headSeconds = 0; // latency before the first chunk
  uint64_t chunks = 0;    // number of chunks, which all have the same size

  /// For each level: time in seconds for which a chunk occupies the links of a rank, or 0 if the
  /// transfer does not use the level.
  std::vector<double> chunkSeconds;
  double gapSeconds = 0;        // time in seconds for which the links are idle after each chunk
  uint64_t multiprocessors = 0; // which the transfer occupies from its beginning to its end

  /// Returns for how many seconds the transfer lasts if no other transfer uses the links.
  double aloneSeconds() const;
};

/// Plans the transfer of a collective. Chooses the fastest method: a ring with one of the
/// protocols, or a reduction in a switch. If `copies` is true, copy engines do the all-gathers that
/// they can do, as with NCCL's policy zero. `bytes` is the size of the full buffer. The full buffer
/// is the source of a reduce-scatter, and the result of any other collective.
Transfer planTransfer(const Cluster &cluster, fb::CollectiveKind kind, double bytes,
                      CollectiveGroup group, bool copies = false);

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_TRANSFER_H
