//===- NcclStubDevice.cpp - Streams and memory of the stand-in --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Of CUDA's driver: devices that are the host. And what NCCL does on them.
//
//===----------------------------------------------------------------------===//

#include "NcclStubState.h"
#include "collectives/Reduce.h"
#include "device/Futex.h"
#include <cstdlib>
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::stub;

thread_local CudaContext State::current = nullptr;

//===- Moving data ----------------------------------------------------------===//

static DType dtypeOf(NcclType type) {
  return type == ncclF64 ? DType::f64 : type == ncclF32 ? DType::f32 : type == ncclF16 ? DType::f16 : DType::bf16;
}

/// What all have to say the same of.
static std::string textOf(const Work &work) {
  return format("%s(%zu, type %d, op %d, root %d)", work.function, work.count,
                static_cast<int>(work.type), static_cast<int>(work.operation), work.root);
}

static bool agree(Clique &clique, Meeting &meeting) {
  const std::string first = textOf(meeting.parts[0].work);
  for (size_t i = 1; i < meeting.parts.size(); ++i) {
    std::string other = textOf(meeting.parts[i].work);
    if (other == first)
      continue;
    state().wrong(format("collectives differ: rank %u has %s, rank %u %s", clique.members[0]->worldRank,
                         first.c_str(), clique.members[i]->worldRank, other.c_str()));
    for (Comm *member : clique.members)
      member->error = ncclInvalidUsage;
    return false;
  }
  return true;
}

/// All results first, since a target may be a source.
static void execute(Meeting &meeting) {
  const Work &first = meeting.parts[0].work;
  size_t members = meeting.parts.size(), bytes = first.count * stub::sizeOf(first.type);
  std::vector<const std::byte *> sources;
  for (const Part &part : meeting.parts)
    sources.push_back(static_cast<const std::byte *>(part.work.source));
  std::vector<std::byte> result;
  if (first.kind == fb::CollectiveKind::all_gather) {
    for (const std::byte *source : sources)
      result.insert(result.end(), source, source + bytes);
  } else if (first.kind == fb::CollectiveKind::broadcast) {
    result.assign(sources[first.root], sources[first.root] + bytes);
  } else {
    size_t pieces = first.kind == fb::CollectiveKind::reduce_scatter ? members : 1;
    result.resize(bytes * pieces);
    reduceInOrder(dtypeOf(first.type), first.operation == ncclAvg, sources.data(), static_cast<uint32_t>(members), 0,
                  first.count * pieces, result.data());
  }
  for (size_t i = 0; i < members; ++i) {
    bool scatters = first.kind == fb::CollectiveKind::reduce_scatter;
    size_t size = scatters ? bytes : result.size();
    if (size)
      std::memcpy(meeting.parts[i].work.target, result.data() + (scatters ? i * bytes : 0), size);
  }
}

void stub::submit(Comm *comm, Stream &stream, const Work &work) {
  uint64_t number = comm->submitted++;
  Meeting &meeting = comm->clique->meetings[number];
  meeting.parts.resize(comm->clique->members.size());
  bool isLate = state().value("late_rank", -1) == comm->worldRank;
  double delay = isLate ? static_cast<double>(state().value("late_ms", 0)) / 1000 : 0;
  meeting.parts[comm->place] = {true, false, work, monotonicSeconds() + delay};
  Command command;
  command.comm = comm;
  command.number = number;
  stream.commands.push_back(command);
  advance();
}

/// The collective at the front of a stream. True when it has ended.
static bool arrive(const Command &command) {
  Clique &clique = *command.comm->clique;
  Meeting &meeting = clique.meetings[command.number];
  if (meeting.isDone)
    return true;
  Part &part = meeting.parts[command.comm->place];
  if (!part.hasArrived && monotonicSeconds() >= part.notBefore) {
    part.hasArrived = true;
    ++meeting.arrived;
  }
  if (meeting.arrived < meeting.parts.size() || meeting.hangs || clique.isBroken)
    return false;
  meeting.hangs = static_cast<int64_t>(++state().executed) == state().value("hang_at", 0) || !agree(clique, meeting);
  if (!meeting.hangs)
    execute(meeting);
  return meeting.isDone = !meeting.hangs;
}

static bool step(Stream &stream) {
  Command &command = stream.commands.front();
  if (command.comm && !arrive(command))
    return false;
  if (command.comm) {
    auto &meetings = command.comm->clique->meetings;
    auto found = meetings.find(command.number);
    found->second.parts[command.comm->place].isThere = false;
    if (std::none_of(found->second.parts.begin(), found->second.parts.end(), [](const Part &p) { return p.isThere; }))
      meetings.erase(found); // all have passed it
  }
  if (command.event)
    command.event->reached = std::max(command.event->reached, command.number);
  if (command.fill)
    std::memset(command.fill, command.value, command.bytes);
  stream.commands.pop_front();
  return true;
}

void stub::advance() {
  for (bool moves = true; moves;) {
    moves = false;
    for (Stream *stream : state().streams)
      while (!stream->commands.empty() && step(*stream))
        moves = true;
  }
}

bool stub::hasWork(const Comm *comm) {
  for (Stream *stream : state().streams)
    for (const Command &command : stream->commands)
      if (command.comm == comm)
        return true;
  return false;
}

void stub::forget(const Comm *comm) {
  for (Stream *stream : state().streams) {
    auto &commands = stream->commands;
    commands.erase(std::remove_if(commands.begin(), commands.end(),
                                  [&](const Command &command) { return command.comm == comm; }),
                   commands.end());
  }
}

//===- Memory ---------------------------------------------------------------===//

static bool isWithin(const std::map<const char *, size_t> &ranges, const void *base, size_t bytes) {
  const char *begin = static_cast<const char *>(base);
  auto after = ranges.upper_bound(begin);
  if (after == ranges.begin())
    return false;
  --after;
  return begin + bytes <= after->first + after->second;
}

bool stub::isOnDevice(const void *base, size_t bytes) { return isWithin(state().onDevice, base, bytes); }

bool stub::canReach(const void *base, size_t bytes) {
  return bytes == 0 || state().value("pageable", 0) || isOnDevice(base, bytes) || isWithin(state().pinned, base, bytes);
}

extern "C" {

CudaResult cuInit(unsigned) { return cudaOk; }

CudaResult cuDriverGetVersion(int *version) {
  *version = 12080;
  return cudaOk;
}

CudaResult cuGetErrorString(CudaResult result, const char **text) {
  *text = result == cudaOutOfMemory ? "out of memory" : result == cudaInvalidValue ? "invalid argument" : "an error";
  return cudaOk;
}

CudaResult cuDeviceGetCount(int *count) {
  Guard guard("cuDeviceGetCount");
  *count = static_cast<int>(state().value("devices", 8));
  return cudaOk;
}

CudaResult cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return cudaOk;
}

CudaResult cuDeviceGetAttribute(int *value, int attribute, int) {
  Guard guard("cuDeviceGetAttribute");
  *value = attribute == cudaPageableMemoryAccess ? static_cast<int>(state().value("pageable", 0)) : 0;
  return cudaOk;
}

CudaResult cuDevicePrimaryCtxRetain(CudaContext *context, int device) {
  Guard guard("cuDevicePrimaryCtxRetain");
  *context = reinterpret_cast<CudaContext>(static_cast<uintptr_t>(device) + 1);
  return cudaOk;
}

CudaResult cuDevicePrimaryCtxRelease_v2(int) {
  Guard guard("cuDevicePrimaryCtxRelease");
  return cudaOk;
}

CudaResult cuCtxSetCurrent(CudaContext context) {
  State::current = context;
  return cudaOk;
}

CudaResult cuStreamCreate(CudaStream *stream, unsigned) {
  Guard guard("cuStreamCreate");
  if (!State::current)
    return cudaInvalidValue;
  auto *made = new Stream{State::current, {}};
  state().streams.insert(made);
  *stream = reinterpret_cast<CudaStream>(made);
  return cudaOk;
}

CudaResult cuStreamDestroy_v2(CudaStream stream) {
  Guard guard("cuStreamDestroy");
  Stream *known = state().stream(stream);
  if (!known)
    return cudaInvalidValue;
  state().streams.erase(known);
  delete known;
  return cudaOk;
}

CudaResult cuEventCreate(CudaEvent *event, unsigned) {
  *event = reinterpret_cast<CudaEvent>(new Event);
  return cudaOk;
}

CudaResult cuEventDestroy_v2(CudaEvent event) {
  Guard guard("cuEventDestroy");
  auto *known = reinterpret_cast<Event *>(event);
  for (Stream *stream : state().streams)
    for (Command &command : stream->commands)
      if (command.event == known)
        command.event = nullptr;
  delete known;
  return cudaOk;
}

CudaResult cuEventRecord(CudaEvent event, CudaStream stream) {
  Guard guard("cuEventRecord");
  Stream *on = state().stream(stream);
  if (!on || on->context != State::current)
    return cudaInvalidValue;
  Command command;
  command.event = reinterpret_cast<Event *>(event);
  command.number = ++command.event->recorded;
  on->commands.push_back(command);
  advance();
  return cudaOk;
}

CudaResult cuEventQuery(CudaEvent event) {
  Guard guard("cuEventQuery");
  advance();
  auto *known = reinterpret_cast<Event *>(event);
  return known->reached == known->recorded ? cudaOk : cudaNotReady;
}

CudaResult cuMemAlloc_v2(CudaPointer *memory, size_t bytes) {
  Guard guard("cuMemAlloc");
  void *made = nullptr;
  if (posix_memalign(&made, 4096, bytes ? bytes : 1) != 0)
    return cudaOutOfMemory;
  std::memset(made, 0x77, bytes);
  state().onDevice[static_cast<char *>(made)] = bytes;
  *memory = reinterpret_cast<CudaPointer>(made);
  return cudaOk;
}

CudaResult cuMemFree_v2(CudaPointer memory) {
  Guard guard("cuMemFree");
  auto *known = reinterpret_cast<char *>(memory);
  if (!state().onDevice.erase(known))
    return cudaInvalidValue;
  std::free(known);
  return cudaOk;
}

CudaResult cuMemsetD8Async(CudaPointer memory, unsigned char value, size_t bytes, CudaStream stream) {
  Guard guard("cuMemsetD8Async");
  Stream *on = state().stream(stream);
  if (!on || !isOnDevice(reinterpret_cast<void *>(memory), bytes))
    return cudaInvalidValue;
  Command command;
  command.fill = reinterpret_cast<void *>(memory);
  command.value = value;
  command.bytes = bytes;
  on->commands.push_back(command);
  return cudaOk;
}

CudaResult cuPointerGetAttribute(void *value, int attribute, CudaPointer pointer) {
  Guard guard("cuPointerGetAttribute");
  const void *memory = reinterpret_cast<const void *>(pointer);
  bool isDevice = isOnDevice(memory, 1);
  if (attribute != cudaPointerMemoryType || (!isDevice && !isWithin(state().pinned, memory, 1)))
    return cudaInvalidValue;
  uint32_t type = isDevice ? cudaMemoryOnDevice : 1;
  std::memcpy(value, &type, sizeof type);
  return cudaOk;
}

CudaResult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned) {
  Guard guard("cuMemHostRegister");
  if (!state().value("pin", 1))
    return cudaOutOfMemory;
  state().pinned[static_cast<char *>(memory)] = bytes;
  return cudaOk;
}

CudaResult cuMemHostUnregister(void *memory) {
  Guard guard("cuMemHostUnregister");
  return state().pinned.erase(static_cast<char *>(memory)) ? cudaOk : cudaInvalidValue;
}

CudaResult cuMemHostGetDevicePointer_v2(CudaPointer *seen, void *memory, unsigned) {
  *seen = reinterpret_cast<CudaPointer>(memory);
  return cudaOk;
}

} // extern "C"
