//===- Transfer.cpp - A collective as work for links ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A collective over a ring of n ranks has n - 1 steps. In each step, every rank sends the same
// number of bytes to the next rank. An all-reduce has 2 (n - 1) steps. In a broadcast, each rank
// sends the whole buffer to the next rank once. A shift has one step, in which each rank sends its
// buffer to the next rank. The last rank of a block of links sends over its own uplink.
//
//   head    the base latency of the protocol plus, for each step, the latency of the level of
//           links that the step crosses
//   links   bytes * (n - 1) / n that each rank sends at the rate of the slowest level; steps of one
//           chunk overlap with steps of the next chunk
//
// If m ranks of the group are in the same block of links, the ring leaves this block through the
// uplinks of all m ranks. The model follows the cost model of NCCL 2.30 (src/graph/tuning.cc).
// Instead of a ring, a switch may add up the data of all ranks. The switch works in rounds, whose
// size depends on the number of bytes (src/enqueue.cc). After each round, the links are idle for a
// fixed latency.
//
// With copy engines, each rank writes its part of an all-gather to all others, without
// multiprocessors.
//
// The transfer uses the protocol with the least estimated time, as in NCCL. The estimate is head +
// bytes / bandwidth.
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

/// Returns the number of bytes that each rank of a ring sends.
static double sentBytes(fb::CollectiveKind kind, double bytes, uint64_t ranks) {
  if (kind == fb::CollectiveKind::broadcast || kind == fb::CollectiveKind::shift)
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

/// Plans a transfer over a ring. The links have the rates of the protocol `protocol`, or their
/// rates without a protocol if the name is empty. Returns false if a level of links that the ring
/// crosses does not support the protocol.
static bool planRing(const Cluster &cluster, fb::CollectiveKind kind, double bytes,
                     CollectiveGroup group, const std::string &protocol, Transfer &transfer) {
  std::vector<double> levelSeconds(cluster.links.size(), 0);
  double sent = sentBytes(kind, bytes, group.ranks);
  // `inner` is the number of ranks in a block of the level below. `steps` is the number of steps of
  // the ring that have not been assigned to a level yet.
  uint64_t inner = 1, steps = group.ranks - 1;
  transfer.protocol = protocol;
  transfer.headSeconds = protocol.empty() ? 0 : cluster.protocols.at(protocol);
  for (size_t level = 0; level < cluster.links.size(); ++level) {
    const ClusterLink &link = cluster.links[level];
    // `here` is the number of members of the group in a block of this level, and `below` is the
    // number of members in a block of the level below.
    uint64_t below = std::clamp<uint64_t>(inner / group.stride, 1, group.ranks);
    uint64_t here = std::clamp<uint64_t>(link.ranks / group.stride, 1, group.ranks);
    inner = link.ranks;
    if (here <= below)
      continue;
    auto known = link.protocols.find(protocol);
    if (!protocol.empty() && known == link.protocols.end())
      return false;
    const LinkRate &rate = protocol.empty() ? link.plain : known->second;
    bool isShift = kind == fb::CollectiveKind::shift;
    levelSeconds[level] = sent / (rate.bytesPerSecond * (isShift ? 1 : static_cast<double>(below)));
    transfer.multiprocessors = link.multiprocessors;
    if (isShift) { // its step takes as long as that of the highest level
      transfer.headSeconds =
          (protocol.empty() ? 0 : cluster.protocols.at(protocol)) + rate.stepSeconds;
      continue;
    }
    // `crossings` is the number of steps of the ring that cross links of this level, but no links
    // of a higher level.
    uint64_t crossings =
        std::min(steps, (group.ranks + below - 1) / below - (group.ranks + here - 1) / here);
    transfer.headSeconds += roundsOf(kind) * static_cast<double>(crossings) * rate.stepSeconds;
    steps -= crossings;
  }
  setBytes(transfer, bytes, ringChunkBytes, levelSeconds);
  return true;
}

/// Plans an all-reduce whose sums are computed by the switch of the lowest level of links. Returns
/// false if the collective is no all-reduce, if this level has no such switch or does not connect
/// the whole group, or if the group has too few ranks for the switch.
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
  transfer.multiprocessors = reduce.multiprocessors;
  return true;
}

/// Plans an all-gather by copy engines.
static Transfer planCopies(const Cluster &cluster, double bytes, CollectiveGroup group) {
  const fsdpcommon::CopyEngines &engines = cluster.links[0].copyEngines;
  std::vector<double> levelSeconds(cluster.links.size(), 0);
  levelSeconds[0] =
      sentBytes(fb::CollectiveKind::all_gather, bytes, group.ranks) / engines.bytesPerSecond;
  Transfer transfer;
  transfer.protocol = "copy engines";
  transfer.headSeconds = engines.seconds;
  setBytes(transfer, bytes, ringChunkBytes, levelSeconds);
  return transfer;
}

Transfer fsdprt::planTransfer(const Cluster &cluster, fb::CollectiveKind kind, double bytes,
                              CollectiveGroup group, bool copies) {
  if (copies && kind == fb::CollectiveKind::all_gather &&
      cluster.canCopy(group.ranks, group.stride))
    return planCopies(cluster, bytes, group);
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
