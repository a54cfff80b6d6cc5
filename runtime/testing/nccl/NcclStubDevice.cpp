//===- NcclStubDevice.cpp - Streams and memory of the NCCL stub -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements functions of CUDA's driver. The host executes the work of all devices.
//
//===----------------------------------------------------------------------===//

#include "core/FutexEvent.h"
#include "testing/nccl/NcclStubState.h"
#include <cstdlib>
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::stub;

extern "C" {
CudaResult cuMemAlloc_v2(CudaPointer *memory, size_t bytes);
CudaResult cuMemFree_v2(CudaPointer memory);
}

thread_local CudaContext State::current = nullptr;

CudaContext stub::currentContext() { return State::current; }

CudaContext stub::contextOf(CudaStream stream) {
  Stream *known = state().stream(stream);
  return known ? known->context : nullptr;
}

bool stub::submit(Comm *comm, CudaStream stream, const Call &call, const void *source,
                  void *target) {
  Command command;
  command.comm = comm;
  command.number = comm->submitted++;
  command.call = call;
  command.source = source;
  command.target = target;
  command.notBefore = monotonicSeconds() + delayOf(*comm);
  state().stream(stream)->commands.push_back(command);
  advance();
  return true;
}

static bool step(Stream &stream) {
  Command &command = stream.commands.front();
  if (command.comm && !arrive(command))
    return false;
  if (command.waits && command.event && command.event->reached < command.number)
    return false;
  if (command.event && !command.waits)
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

static bool isWithin(const std::map<const char *, size_t> &ranges, const void *base, size_t bytes) {
  const char *begin = static_cast<const char *>(base);
  auto after = ranges.upper_bound(begin);
  if (after == ranges.begin())
    return false;
  --after;
  return begin + bytes <= after->first + after->second;
}

bool stub::isOnDevice(const void *base, size_t bytes) {
  return isWithin(state().onDevice, base, bytes);
}

bool stub::canReach(const void *base, size_t bytes) {
  return bytes == 0 || state().value("pageable", 0) || isOnDevice(base, bytes) ||
         isWithin(state().pinned, base, bytes);
}

CudaResult stub::allocate(CudaPointer *memory, size_t bytes) {
  return cuMemAlloc_v2(memory, bytes);
}

CudaResult stub::release(CudaPointer memory) { return cuMemFree_v2(memory); }

extern "C" {

CudaResult cuInit(unsigned) { return cudaOk; }

CudaResult cuDriverGetVersion(int *version) {
  *version = 12080;
  return cudaOk;
}

CudaResult cuGetErrorString(CudaResult result, const char **text) {
  *text = result == cudaOutOfMemory    ? "out of memory"
          : result == cudaInvalidValue ? "invalid argument"
                                       : "an error";
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

CudaResult cuDeviceGetUuid_v2(void *uuid, int device) {
  std::memset(uuid, 0, 16);
  std::memcpy(uuid, &device, sizeof device);
  return cudaOk;
}

CudaResult cuDeviceGetAttribute(int *value, int attribute, int) {
  Guard guard("cuDeviceGetAttribute");
  *value =
      attribute == cudaPageableMemoryAccess ? static_cast<int>(state().value("pageable", 0)) : 0;
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

CudaResult cuStreamCreateWithPriority(CudaStream *stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}

CudaResult cuStreamWaitEvent(CudaStream stream, CudaEvent event, unsigned) {
  Guard guard("cuStreamWaitEvent");
  Stream *on = state().stream(stream);
  if (!on)
    return cudaInvalidValue;
  Command command;
  command.event = reinterpret_cast<Event *>(event);
  command.number = command.event->recorded;
  command.waits = true;
  on->commands.push_back(command);
  advance();
  return cudaOk;
}

CudaResult cuStreamQuery(CudaStream stream) {
  Guard guard("cuStreamQuery");
  advance();
  Stream *on = state().stream(stream);
  return !on ? cudaInvalidValue : on->commands.empty() ? cudaOk : cudaNotReady;
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
  if (state().allocated.count(known))
    state().wrong("cuMemFree: expected ncclMemFree for memory of ncclMemAlloc");
  if (!state().onDevice.erase(known))
    return cudaInvalidValue;
  std::free(known);
  return cudaOk;
}

CudaResult cuMemsetD8Async(CudaPointer memory, unsigned char value, size_t bytes,
                           CudaStream stream) {
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
