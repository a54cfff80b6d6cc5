//===- Transfer.cpp - A collective as work for links ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A ring of n ranks passes n - 1 times on what it has (an all-reduce: 2 (n - 1) times, a broadcast:
// all of it at once):
//
//   head   base of the protocol + the sum of its steps' seconds, by the level of links of each step
//   links  bytes (n - 1) / n of each rank, at most as fast as each level carries them; pipelined,
//          so that steps of one chunk overlap with those of the next
//
// Where the ring leaves a level, the m members within it share the ways out of m ranks. That is how
// NCCL 2.30 rates its rings (src/graph/tuning.cc). In a switch, what one rank sends comes back
// added up: rounds of bytes, with a step after each that nothing hides (src/enqueue.cc: chunk
// sizes by payload).
//
// The way is chosen as NCCL chooses it: the least head + bytes / bandwidth.
//
//===----------------------------------------------------------------------===//

#include "simulate/Transfer.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace fsdprt;

static constexpr double ringChunkBytes = 8 << 20, mostChunks = 4096;

double Transfer::aloneSeconds() const {
  double chunk = 0;
  for (double seconds : chunkSeconds)
    chunk = std::max(chunk, seconds);
  return headSeconds + static_cast<double>(chunks) * (chunk + gapSeconds);
}

static double roundsOf(fb::CollectiveKind kind) {
  return kind == fb::CollectiveKind::all_reduce ? 2 : 1;
}

/// Bytes that each rank sends.
static double sentBytes(fb::CollectiveKind kind, double bytes, uint64_t ranks) {
  if (kind == fb::CollectiveKind::broadcast)
    return bytes;
  return roundsOf(kind) * bytes * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

static void setBytes(Transfer &transfer, double bytes, double chunkBytes,
                     const std::vector<double> &levelSeconds) {
  double chunks = std::clamp(std::round(bytes / chunkBytes), 1.0, mostChunks);
  transfer.chunks = static_cast<uint64_t>(chunks);
  for (double seconds : levelSeconds)
    transfer.chunkSeconds.push_back(seconds / chunks);
}

/// Over links of `protocol`; without one, of their plain rates. False: a level has no such
/// protocol.
static bool planRing(const Cluster &cluster, fb::CollectiveKind kind, double bytes,
                     CollectiveGroup group, const std::string &protocol, Transfer &transfer) {
  std::vector<double> levelSeconds(cluster.links.size(), 0);
  double sent = sentBytes(kind, bytes, group.ranks);
  uint64_t inner = 1,
           steps = group.ranks - 1; // ranks that the levels so far join; steps not yet attributed
  transfer.protocol = protocol;
  transfer.headSeconds = protocol.empty() ? 0 : cluster.protocols.at(protocol);
  for (size_t level = 0; level < cluster.links.size(); ++level) {
    const ClusterLink &link = cluster.links[level];
    // Members of the group that the levels below join, and those that this one does.
    uint64_t below = std::clamp<uint64_t>(inner / group.stride, 1, group.ranks);
    uint64_t here = std::clamp<uint64_t>(link.ranks / group.stride, 1, group.ranks);
    inner = link.ranks;
    if (here <= below)
      continue;
    auto known = link.protocols.find(protocol);
    if (!protocol.empty() && known == link.protocols.end())
      return false;
    const LinkRate &rate = protocol.empty() ? link.plain : known->second;
    levelSeconds[level] = sent / (rate.bytesPerSecond * static_cast<double>(below));
    // Of the whole ring, the steps between the blocks below within each block here.
    uint64_t crossings =
        std::min(steps, (group.ranks + below - 1) / below - (group.ranks + here - 1) / here);
    transfer.headSeconds += roundsOf(kind) * static_cast<double>(crossings) * rate.stepSeconds;
    steps -= crossings;
  }
  setBytes(transfer, bytes, ringChunkBytes, levelSeconds);
  return true;
}

/// Within one level that can. False: there is none.
static bool planSwitch(const Cluster &cluster, fb::CollectiveKind kind, double bytes,
                       CollectiveGroup group, Transfer &transfer) {
  const ClusterLink &link = cluster.links[0];
  const SwitchReduce &reduce = link.switchReduce;
  if (kind != fb::CollectiveKind::all_reduce || reduce.leastRanks == 0 ||
      group.ranks < reduce.leastRanks || group.ranks * group.stride > link.ranks)
    return false;
  double roundBytes = 0;
  for (const RoundSize &round : reduce.rounds)
    roundBytes = bytes >= round.fromBytes ? round.bytes : roundBytes;
  std::vector<double> levelSeconds(cluster.links.size(), 0);
  levelSeconds[0] = sentBytes(kind, bytes, group.ranks) / reduce.bytesPerSecond;
  transfer.protocol = "switch";
  transfer.headSeconds = reduce.seconds;
  setBytes(transfer, bytes, roundBytes, levelSeconds);
  transfer.gapSeconds = reduce.roundSeconds;
  return true;
}

Transfer fsdprt::planTransfer(const Cluster &cluster, fb::CollectiveKind kind, double bytes,
                              CollectiveGroup group) {
  Transfer best;
  best.chunkSeconds.assign(cluster.links.size(), 0);
  if (group.ranks < 2)
    return best;
  double least = std::numeric_limits<double>::infinity();
  auto offer = [&](const Transfer &way) {
    double rated = way.aloneSeconds() - static_cast<double>(way.chunks) * way.gapSeconds;
    if (rated >= least)
      return;
    least = rated;
    best = way;
  };
  for (const auto &[protocol, seconds] : cluster.protocols)
    if (Transfer way; planRing(cluster, kind, bytes, group, protocol, way))
      offer(way);
  if (Transfer way; planSwitch(cluster, kind, bytes, group, way))
    offer(way);
  if (least == std::numeric_limits<double>::infinity())
    planRing(cluster, kind, bytes, group, "", best = Transfer());
  return best;
}
