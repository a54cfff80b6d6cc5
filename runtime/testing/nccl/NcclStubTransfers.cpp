//===- NcclStubTransfers.cpp - Data of the NCCL stub's collectives *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A member writes its contribution when it arrives, and reads its result after all members have
// arrived.
//
//===----------------------------------------------------------------------===//

#include "collectives/local/Reduce.h"
#include "core/FutexEvent.h"
#include "testing/nccl/NcclStubState.h"

using namespace fsdprt;
using namespace fsdprt::stub;

static DType dtypeOf(NcclType type) {
  return type == ncclF64   ? DType::f64
         : type == ncclF32 ? DType::f32
         : type == ncclF16 ? DType::f16
                           : DType::bf16;
}

/// Returns a text that contains the arguments that must be equal on all members.
static std::string textOf(const Call &call) {
  std::string offsets = call.sourceOffset < 0 ? ""
                                              : format(", offsets %lld and %lld",
                                                       static_cast<long long>(call.sourceOffset),
                                                       static_cast<long long>(call.targetOffset));
  return format("%s(%zu, type %d, op %d, root %d%s)", call.function,
                static_cast<size_t>(call.count), static_cast<int>(call.type),
                static_cast<int>(call.operation), call.root, offsets.c_str());
}

static bool agree(CommunicatorGroup &clique, const Slot &slot) {
  const std::string first = textOf(slot.calls[0]);
  for (uint32_t i = 1; i < clique.size; ++i) {
    std::string other = textOf(slot.calls[i]);
    if (other == first)
      continue;
    std::string problem =
        format("collectives differ: rank %u has %s, rank %u %s", clique.members[0].worldRank,
               first.c_str(), clique.members[i].worldRank, other.c_str());
    state().wrong(problem);
    std::snprintf(clique.problem, sizeof clique.problem, "%s", problem.c_str());
    for (Member &member : clique.members)
      member.error = ncclInvalidUsage;
    return false;
  }
  return true;
}

static size_t bytesOf(const Call &call) { return call.count * stub::sizeOf(call.type); }

static bool give(const Move &move, uint32_t slot) {
  const Comm &comm = *move.comm;
  const Call &call = move.call;
  bool scatters = call.kind == fb::CollectiveKind::reduce_scatter;
  if (call.kind == fb::CollectiveKind::broadcast && static_cast<uint32_t>(call.root) != comm.place)
    return true;
  return comm.world->leave(comm.clique, slot, comm.place, move.source,
                           bytesOf(call) * (scatters ? comm.shared().size : 1));
}

/// Reads the contributions from which the result of a member is computed.
static bool take(const Move &move, uint32_t slot) {
  const Comm &comm = *move.comm;
  const Call &call = move.call;
  uint32_t members = comm.shared().size;
  size_t bytes = bytesOf(call);
  auto *target = static_cast<std::byte *>(move.target);
  if (call.kind == fb::CollectiveKind::broadcast || call.kind == fb::CollectiveKind::shift) {
    uint32_t before = (comm.place + members - 1) % members,
             sender =
                 call.kind == fb::CollectiveKind::shift ? before : static_cast<uint32_t>(call.root);
    return comm.world->take(comm.clique, slot, sender, 0, target, bytes);
  }
  bool sums = call.kind != fb::CollectiveKind::all_gather, isRight = true;
  std::vector<std::byte> sources(sums ? members * bytes : 0);
  std::vector<const std::byte *> parts;
  for (uint32_t i = 0; i < members; ++i) {
    size_t from = call.kind == fb::CollectiveKind::reduce_scatter ? comm.place * bytes : 0;
    std::byte *into = (sums ? sources.data() : target) + i * bytes;
    isRight = isRight && comm.world->take(comm.clique, slot, i, from, into, bytes);
    parts.push_back(into);
  }
  if (sums)
    reduceInOrder(dtypeOf(call.type), call.operation == ncclAvg, parts.data(), members, 0,
                  call.count, target);
  return isRight;
}

/// Marks a member as arrived at its collective. Returns false if the member cannot arrive at this
/// time.
static bool come(Move &move, Slot &slot, uint32_t place) {
  if (move.hasArrived)
    return true;
  if (monotonicSeconds() < move.notBefore || slot.uses != move.number / mostUnderWay)
    return false;
  if (!give(move, place)) {
    move.comm->self().error = ncclSystemError;
    return false;
  }
  slot.calls[move.comm->place] = move.call;
  ++slot.arrived;
  return move.hasArrived = true;
}

bool stub::arrive(Move &move) {
  Comm &comm = *move.comm;
  WorldLock lock(*comm.world);
  if (!lock || (*comm.world)->isBroken)
    return false;
  CommunicatorGroup &clique = comm.shared();
  uint32_t place = static_cast<uint32_t>(move.number % mostUnderWay);
  Slot &slot = clique.slots[place];
  if (!come(move, slot, place) || slot.arrived < clique.size || clique.isBroken)
    return false;
  if (slot.verdict == Slot::open) {
    bool hangs = static_cast<int64_t>(++(*comm.world)->executed) == state().value("hang_at", 0) ||
                 !agree(clique, slot);
    slot.verdict = hangs ? Slot::hangs : Slot::agreed;
  }
  if (slot.verdict == Slot::hangs)
    return false;
  if (!take(move, place)) {
    comm.self().error = ncclSystemError;
    return false;
  }
  if (++slot.passed < clique.size)
    return true;
  for (uint32_t i = 0; i < clique.size; ++i)
    comm.world->forget(comm.clique, place, i);
  slot.arrived = slot.passed = 0;
  slot.verdict = Slot::open;
  ++slot.uses;
  return true;
}

double stub::delayOf(const Comm &comm) {
  bool isLate = state().value("late_rank", -1) == comm.worldRank;
  return isLate ? static_cast<double>(state().value("late_ms", 0)) / 1000 : 0;
}
