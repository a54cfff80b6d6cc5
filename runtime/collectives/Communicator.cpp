//===- Communicator.cpp - Collectives between ranks -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the parts of a communicator that are the same in all backends: groups, counters and
// texts for messages.
//
//===----------------------------------------------------------------------===//

#include "collectives/Communicator.h"
#include "device/cuda/CudaTimeline.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;

uint32_t Communicator::add(CollectiveKey key) {
  const Groups *over = groupsOver(key.axes);
  collectives.push_back({std::move(key), over});
  return static_cast<uint32_t>(collectives.size() - 1);
}

const Communicator::Groups *Communicator::groupsOver(const std::vector<uint32_t> &axes) {
  for (const auto &known : groups)
    if (known->axes == axes)
      return known.get();
  auto made = std::make_unique<Groups>();
  made->axes = axes;
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    made->members.push_back(mesh.group(rank, axes));
    const std::vector<uint32_t> &members = made->members.back();
    made->index.push_back(
        static_cast<uint32_t>(std::find(members.begin(), members.end(), rank) - members.begin()));
  }
  groups.push_back(std::move(made));
  return groups.back().get();
}

void Communicator::start(uint32_t collective, uint32_t rank, const std::byte *source,
                         std::byte *target) {
  watchdog->beginCollective(rank, collective);
  begin(collective, rank, source, target);
}

void Communicator::wait(uint32_t collective, uint32_t rank, WorkerPool &pool) {
  finish(collective, rank, pool);
  watchdog->endCollective(rank, collective);
  if (rank != localRange.first)
    return;
  const CollectiveKey &key = collectives[collective].key;
  bool grows =
      key.kind == fb::CollectiveKind::all_gather || key.kind == fb::CollectiveKind::reduce_scatter;
  // Add atomically, because two threads of a rank may wait for collectives at the same time (R9).
  __atomic_fetch_add(&exchanged[static_cast<size_t>(key.kind)],
                     key.count * sizeOf(key.dtype) *
                         (grows ? membersOf(collective, rank).size() : 1),
                     __ATOMIC_RELAXED);
}

void Communicator::countExchanged(const uint64_t (&bytes)[collectiveKinds], int64_t times) {
  for (size_t kind = 0; kind < collectiveKinds; ++kind)
    exchanged[kind] += bytes[kind] * static_cast<uint64_t>(times);
}

uint64_t Communicator::wireBytes(uint32_t collective) const {
  const CollectiveKey &key = collectives[collective].key;
  uint64_t members = membersOf(collective, localRange.first).size(),
           bytes = key.count * sizeOf(key.dtype) * (members - 1);
  if (key.kind == fb::CollectiveKind::all_gather || key.kind == fb::CollectiveKind::reduce_scatter)
    // For an all_gather or a reduce_scatter, `count` is the number of elements that a single member
    // contributes or receives.
    return bytes;
  if (key.kind == fb::CollectiveKind::shift)
    return members == 1 ? 0 : bytes / (members - 1);
  return bytes / members * (key.kind == fb::CollectiveKind::all_reduce ? 2 : 1);
}

DeviceSpan Communicator::spanOnDevice(uint32_t, uint32_t) const { return {}; }

std::string Communicator::describe(uint32_t collective) const {
  const CollectiveKey &key = collectives[collective].key;
  std::string text = format("collective %u (%s", key.id, fb::EnumNameCollectiveKind(key.kind));
  if (!key.label.empty())
    text += " '" + printable(key.label) + "'";
  if (!key.unit.empty())
    text += ", unit '" + printable(key.unit) + "'";
  return text + ")";
}

std::string Communicator::describeProgress(uint32_t rank) const {
  std::string text = watchdog->describeProgress(rank);
  uint32_t last = watchdog->lastCollective(rank);
  if (last < collectives.size())
    text += ", which last started " + describe(last);
  return text;
}

void Communicator::reportMissing(uint32_t collective, uint32_t rank,
                                 const std::vector<uint32_t> &missing) const {
  std::string names;
  for (uint32_t member : missing)
    names += (names.empty() ? "" : ", ") + describeProgress(member);
  throw Error(FSDPRT_HUNG,
              format("rank %u waited %g s at %s for %s; it made no progress", rank,
                     watchdog->timeoutSeconds(), describe(collective).c_str(), names.c_str()));
}

void Communicator::exchange(const void *mine, size_t bytes, void *all) {
  if (bytes)
    std::memcpy(all, mine, bytes);
}

void Communicator::collect(uint32_t, const void *data, size_t bytes, void *into) {
  if (bytes)
    std::memcpy(into, data, bytes);
}
