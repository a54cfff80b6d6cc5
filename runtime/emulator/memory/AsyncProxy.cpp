//===- AsyncProxy.cpp - Copies through the async proxy ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Copy number k of a cluster uses the agent of thread k modulo the number of threads. An agent's
// writes for a copy have a later time than its reads. A thread that has waited for the reads of a
// group is therefore ordered after these reads, but not after the group's writes.
//
//===----------------------------------------------------------------------===//

#include "emulator/memory/AsyncProxy.h"

using namespace fsdprt::emulate;

static uint32_t nextAgent(Cluster &cluster) {
  return cluster.agentOf(cluster.bulkCopies++ % cluster.threads);
}

AsyncCopy::AsyncCopy(Warp &warp, unsigned lane, bool isAsyncProxy)
    : warp(warp), lane(lane), agent(nextAgent(warp.block.cluster)), reads(warp, Touch::Reads),
      writes(warp, Touch::Writes), updates(warp, Touch::Updates) {
  warp.block.cluster.clocks.fork(warp.thread(lane), agent);
  reads.isAsync = writes.isAsync = updates.isAsync = isAsyncProxy;
  updates.isStrong = true;
}

void AsyncCopy::checkRead(const Place &place, unsigned bytes) {
  reads.check(place, bytes, lane, agent);
  Counters &counters = warp.block.cluster.grid.counters;
  (place.isGlobal ? counters.globalLoadBytes : counters.sharedLoadBytes) += bytes;
}

Place AsyncCopy::read(Space space, uint64_t address, unsigned bytes, unsigned alignment) {
  Place place = this->place(space, address, bytes, alignment);
  checkRead(place, bytes);
  return place;
}

void AsyncCopy::noteReadsAreDone() {
  if (!readTime)
    readTime = warp.block.cluster.clocks.finish(agent);
}

Place AsyncCopy::writeTo(Space space, uint64_t address, unsigned bytes, unsigned alignment) {
  noteReadsAreDone();
  return writes.resolve(space, address, bytes, lane, alignment);
}

void AsyncCopy::write(const Place &place, const uint8_t *data, unsigned bytes) {
  writes.check(place, bytes, lane, agent, data);
  std::memcpy(place.bytes(), data, bytes);
  Counters &counters = warp.block.cluster.grid.counters;
  (place.isGlobal ? counters.globalStoreBytes : counters.sharedStoreBytes) += bytes;
}

void AsyncCopy::reduce(const Place &place, const uint8_t *data, unsigned bytes,
                       const Reduction &reduction) {
  updates.check(place, bytes, lane, agent);
  unsigned size = sizeOf(reduction.type);
  for (unsigned at = 0; at < bytes; at += size) {
    uint64_t old = 0, operand = 0;
    std::memcpy(&old, place.bytes() + at, size);
    std::memcpy(&operand, data + at, size);
    uint64_t value = combine(reduction.op, reduction.type, place.isGlobal, old, operand);
    std::memcpy(place.bytes() + at, &value, size);
  }
  Counters &counters = warp.block.cluster.grid.counters;
  (place.isGlobal ? counters.globalStoreBytes : counters.sharedStoreBytes) += bytes;
}

void AsyncCopy::write(const Place &place, const uint8_t *data, unsigned bytes,
                      const std::optional<Reduction> &reduction) {
  if (reduction)
    reduce(place, data, bytes, *reduction);
  else
    write(place, data, bytes);
}

void AsyncCopy::complete(uint64_t mbarrier, unsigned bytes, const Storage &destination) {
  MbarrierRef barrier(warp, lane, agent, Space::Shared, mbarrier);
  if (&barrier.block().shared != &destination)
    warp.fail(LaneMask(1) << lane,
              "the mbarrier is in the shared memory of another block than the destination");
  if (writes.isAsync)
    barrier.checkVisible(agent);
  barrier.release(agent);
  barrier.complete(bytes);
  barrier.finish();
}

void AsyncCopy::joinGroup() {
  noteReadsAreDone();
  if (warp.bulk.empty())
    warp.bulk.resize(warpSize);
  warp.bulk[lane].open.push_back({agent, readTime, warp.block.cluster.clocks.finish(agent)});
}

std::vector<uint32_t> fsdprt::emulate::multicastRanks(Warp &warp, unsigned lane, Slot mask) {
  uint32_t bits = warp.at<uint16_t>(mask)[lane], count = warp.block.cluster.blocks.size();
  if (!bits || bits >> count)
    warp.fail(LaneMask(1) << lane, "the mask 0x%x names %s", bits,
              bits ? format("blocks outside of the cluster of %u", count).c_str() : "no block");
  std::vector<uint32_t> ranks;
  for (; bits; bits &= bits - 1)
    ranks.push_back(__builtin_ctz(bits));
  return ranks;
}
