//===- LocalCuda.cpp - Ranks of one process on GPUs -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A collective is enqueued only after all members of its group have started it. Streams therefore
// wait only for events that are already recorded, and these waits cannot form a cycle.
//
//===----------------------------------------------------------------------===//

#include "collectives/local/LocalCuda.h"
#include "core/Error.h"
#include "device/cuda/CudaSums.h"
#include <algorithm>
#include <set>

using namespace fsdprt;

static constexpr uint32_t pollMilliseconds = 20;
static constexpr uint64_t pieceElements = 16; // segments begin at multiples of this many elements

static bool reduces(fb::CollectiveKind kind) {
  return kind == fb::CollectiveKind::reduce_scatter || kind == fb::CollectiveKind::all_reduce;
}

LocalCuda::LocalCuda(Mesh mesh, std::unique_ptr<Watchdog> watchdog, uint32_t spins)
    : Communicator(std::move(mesh), LocalRanks{}, std::move(watchdog)), spins(spins),
      queues(this->mesh.ranks()) {
  localRange.count = ranks();
}

LocalCuda::LocalCuda(Mesh mesh, double timeoutSeconds, uint32_t spins)
    : LocalCuda(mesh,
                std::make_unique<Watchdog>(static_cast<uint32_t>(mesh.ranks()), timeoutSeconds),
                spins) {}

LocalCuda::~LocalCuda() = default;

void LocalCuda::checkGroups() const {
  for (const Collective &each : collectives)
    for (const std::vector<uint32_t> &members : each.groups->members)
      if (reduces(each.key.kind) && members.size() > CudaSums::mostSources)
        badInput("expected at most %u ranks in a reduction on GPUs of one process, found %zu; use "
                 "--backend=nccl",
                 CudaSums::mostSources, members.size());
}

/// Enables peer access between the GPUs of all ranks. Throws Error if two GPUs lack peer access.
void LocalCuda::reachPeers() const {
  std::set<std::pair<CudaContext, CudaContext>> known;
  for (const CudaQueue *from : queues)
    for (const CudaQueue *to : queues) {
      if (from->getContext() == to->getContext() ||
          !known.emplace(from->getContext(), to->getContext()).second)
        continue;
      from->use();
      const CudaDriver &cuda = from->driver();
      int canReach = 0;
      cuda.check(cuda.deviceCanAccessPeer(&canReach, from->getDevice(), to->getDevice()),
                 "query peer access between GPUs");
      if (!canReach)
        badInput("expected GPUs with peer access to each other for the ranks of one process, found "
                 "%d and %d without; use --backend=nccl, or one GPU (CUDA_VISIBLE_DEVICES)",
                 from->getDevice(), to->getDevice());
      CudaResult result = cuda.enablePeerAccess(to->getContext(), 0);
      if (result != cudaPeerEnabled)
        cuda.check(result, "enable peer access between GPUs");
    }
}

void LocalCuda::connect() {
  checkGroups();
  reachPeers();
  for (uint32_t rank = 0; rank < ranks(); ++rank)
    for (uint32_t i = 0; i < numCollectives(); ++i)
      slots.push_back(std::make_unique<CollectiveSlot>(queueOf(rank)));
  tables = std::make_unique<Table[]>(ranks() * numCollectives());
}

CudaQueue::Lane LocalCuda::laneOf(uint32_t collective) const {
  return reduces(getKey(collective).kind) ? CudaQueue::reduce : CudaQueue::gather;
}

void LocalCuda::copy(const CudaQueue &queue, CudaQueue::Lane lane, CudaPointer to, CudaPointer from,
                     uint64_t bytes) const {
  if (to != from && bytes != 0)
    queue.driver().check(queue.driver().memcpyAsync(to, from, bytes, queue.stream(lane)),
                         "copy between ranks");
}

/// Enqueues the copies that an all-gather, a broadcast or a shift makes to the target of `rank`.
void LocalCuda::gather(uint32_t collective, uint32_t rank) {
  const CollectiveKey &key = getKey(collective);
  const std::vector<uint32_t> &members = membersOf(collective, rank);
  uint64_t bytes = key.count * sizeOf(key.dtype);
  CudaPointer target = slotOf(collective, rank).target;
  bool isWhole = key.hasOneSender();
  uint32_t sender =
      isWhole ? key.senderFor(collectives[collective].groups->index[rank], members.size()) : 0;
  for (uint32_t j = 0; j < members.size(); ++j)
    if (!isWhole || j == sender)
      copy(queueOf(rank), CudaQueue::gather, target + (isWhole ? 0 : j * bytes),
           slotOf(collective, members[j]).source, bytes);
}

/// Enqueues a kernel on the reduce stream of `rank`. It adds up the elements [first, first + count)
/// of the sources of all members, and writes the sums to `target`.
void LocalCuda::sum(uint32_t collective, uint32_t rank, uint64_t first, uint64_t count,
                    CudaPointer target) {
  const CollectiveKey &key = getKey(collective);
  CudaSums::Sources sources;
  for (uint32_t member : membersOf(collective, rank))
    sources.add(member == collectives[collective].dropped
                    ? 0
                    : slotOf(collective, member).source + first * sizeOf(key.dtype));
  queueOf(rank).getSums().launch(queueOf(rank).stream(CudaQueue::reduce), key.dtype,
                                 key.reduction == fb::Reduction::avg, sources, count, target);
}

/// Enqueues the second half of an all-reduce: the target of `rank` receives the segments that other
/// members have summed.
void LocalCuda::collectPieces(uint32_t collective, uint32_t rank) {
  const CollectiveKey &key = getKey(collective);
  const std::vector<uint32_t> &members = membersOf(collective, rank);
  for (uint32_t j = 0; j < members.size(); ++j) {
    uint64_t begin, end, size = sizeOf(key.dtype);
    WorkerPool::split(key.count, pieceElements, static_cast<uint32_t>(members.size()), j, begin,
                      end);
    if (members[j] == rank)
      continue;
    slotOf(collective, members[j]).summed.hold(queueOf(rank), CudaQueue::reduce);
    if (begin < end)
      copy(queueOf(rank), CudaQueue::reduce, slotOf(collective, rank).target + begin * size,
           slotOf(collective, members[j]).target + begin * size, (end - begin) * size);
  }
}

/// Enqueues a collective on the streams of all members. All members must have started it.
void LocalCuda::issue(uint32_t collective, uint32_t anyMember) {
  const CollectiveKey &key = getKey(collective);
  const std::vector<uint32_t> &members = membersOf(collective, anyMember);
  CudaQueue::Lane lane = laneOf(collective);
  bool isAllReduce = key.kind == fb::CollectiveKind::all_reduce;
  for (uint32_t j = 0; j < members.size(); ++j) {
    uint32_t rank = members[j];
    for (uint32_t member : members)
      slotOf(collective, member).begun.hold(queueOf(rank), lane);
    uint64_t begin = j * key.count, end = begin + key.count, size = sizeOf(key.dtype);
    if (isAllReduce)
      WorkerPool::split(key.count, pieceElements, static_cast<uint32_t>(members.size()), j, begin,
                        end);
    CollectiveSlot &slot = slotOf(collective, rank);
    queueOf(rank).use();
    slot.span.from = queueOf(rank).stamp(lane);
    if (!reduces(key.kind))
      gather(collective, rank);
    else if (begin < end)
      sum(collective, rank, begin, end - begin, slot.target + (isAllReduce ? begin * size : 0));
    slot.span.to = isAllReduce ? 0 : queueOf(rank).stamp(lane);
    (isAllReduce ? slot.summed : slot.done).record(lane);
  }
  for (uint32_t rank : members) {
    if (!isAllReduce)
      break;
    queueOf(rank).use();
    collectPieces(collective, rank);
    slotOf(collective, rank).span.to = queueOf(rank).stamp(lane);
    slotOf(collective, rank).done.record(lane);
  }
}

void LocalCuda::begin(uint32_t collective, uint32_t rank, const std::byte *source,
                      std::byte *target) {
  CollectiveSlot &slot = slotOf(collective, rank);
  slot.source = reinterpret_cast<CudaPointer>(source);
  slot.target = reinterpret_cast<CudaPointer>(target);
  slot.begun.record(CudaQueue::compute);
  slot.begins.fetch_add(1, std::memory_order_release);
  Table &table = tableOf(collective, rank);
  std::lock_guard<std::mutex> guard(table.mutex);
  if (++table.arrived != membersOf(collective, rank).size())
    return;
  table.arrived = 0;
  issue(collective, rank);
  queueOf(rank).use();
  table.issued.fetch_add(1, std::memory_order_release);
  table.event.notify();
}

std::vector<uint32_t> LocalCuda::missingAt(uint32_t collective, uint32_t rank) const {
  std::vector<uint32_t> missing;
  uint64_t begins = slotOf(collective, rank).begins.load(std::memory_order_relaxed);
  for (uint32_t member : membersOf(collective, rank))
    if (slotOf(collective, member).begins.load(std::memory_order_acquire) < begins)
      missing.push_back(member);
  return missing;
}

void LocalCuda::finish(uint32_t collective, uint32_t rank, WorkerPool &) {
  Table &table = tableOf(collective, rank);
  uint64_t begins = slotOf(collective, rank).begins.load(std::memory_order_relaxed);
  ProgressTimeout progressTimeout(*watchdog);
  auto isIssued = [&] { return table.issued.load(std::memory_order_acquire) >= begins; };
  waitFor(table.event, spins, pollMilliseconds, isIssued, [&] {
    poll();
    std::vector<uint32_t> missing = missingAt(collective, rank);
    uint64_t beats = 0;
    for (uint32_t member : missing)
      beats += watchdog->beats(member);
    if (progressTimeout.hasExpired(beats) && !missing.empty() && !isIssued())
      reportMissing(collective, rank, missing);
  });
  for (uint32_t member : membersOf(collective, rank))
    slotOf(collective, member).done.hold(queueOf(rank), CudaQueue::compute);
  queueOf(rank).use();
}
