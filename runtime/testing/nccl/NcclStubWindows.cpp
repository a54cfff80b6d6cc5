//===- NcclStubWindows.cpp - Memory and windows of the NCCL stub *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Memory of ncclMemAlloc, and registrations of memory with communicators. A window exists after all
// members of its communicator have registered memory of one size. From then on, all collectives of
// the communicator must be within windows, at the same offsets on all members.
//
//===----------------------------------------------------------------------===//

#include "testing/nccl/NcclStub.h"
#include "testing/nccl/NcclStubCalls.h"

using namespace fsdprt;
using namespace fsdprt::stub;

static const char *endOf(const Window &window) { return window.base + window.bytes; }

void stub::takeWindow(Comm *comm) {
  if (!comm->windowTo || comm->shared().windowRounds == comm->windowRound)
    return;
  if (comm->self().error == ncclOk && comm->pending.bytes) {
    comm->windows.push_back(comm->pending);
    // Windows are never freed, so that a late call on a window is detected.
    *comm->windowTo = reinterpret_cast<NcclWindow>(new char);
    comm->windows.back().handle = *comm->windowTo;
    ++state().windows;
  }
  comm->windowTo = nullptr;
  comm->self().underWay = false;
}

void stub::dropWindows(Comm *comm) {
  state().windows -= comm->windows.size();
  comm->windows.clear();
}

/// Returns the offset of a range in the window that contains it. Returns -1 if there is none.
static int64_t offsetIn(const Comm &comm, const void *base, size_t bytes) {
  const char *begin = static_cast<const char *>(base);
  for (const Window &window : comm.windows)
    if (begin >= window.base && begin + bytes <= endOf(window))
      return begin - window.base;
  return -1;
}

bool stub::findOffsets(const Comm &comm, Call &call, const void *source, const void *target) {
  if (comm.windows.empty())
    return true;
  size_t members = comm.shared().size, bytes = call.count * sizeOf(call.type);
  call.sourceOffset = offsetIn(
      comm, source, bytes * (call.kind == fb::CollectiveKind::reduce_scatter ? members : 1));
  call.targetOffset =
      offsetIn(comm, target, bytes * (call.kind == fb::CollectiveKind::all_gather ? members : 1));
  return call.sourceOffset >= 0 && call.targetOffset >= 0;
}

/// Returns what is wrong with a registration, or an empty text.
static std::string problemOf(const Comm &comm, const char *base, size_t bytes, int flags) {
  if (flags != ncclWindowSymmetric)
    return "expected the flag of symmetric windows";
  auto memory = state().allocated.upper_bound(base);
  if (bytes == 0 || memory == state().allocated.begin())
    return "expected memory of ncclMemAlloc";
  --memory;
  if (base + bytes > memory->first + memory->second)
    return "expected memory of ncclMemAlloc";
  if ((base - memory->first) % 4096 != 0)
    return "expected memory at a multiple of 4096 bytes";
  for (const Window &window : comm.windows)
    if (base < endOf(window) && window.base < base + bytes)
      return "the memory is in a window of this communicator already";
  return "";
}

/// Completes a registration after all members have called it. Reports different sizes.
static void completeWindows(CommunicatorGroup &clique) {
  for (const Member &member : clique.members)
    if (member.isThere && member.windowBytes != clique.members[0].windowBytes)
      state().wrong("ncclCommWindowRegister: the sizes of members differ");
  clique.windows = 0;
  ++clique.windowRounds;
}

extern "C" {

NcclResult ncclMemAlloc(void **memory, size_t bytes) {
  {
    Guard guard("ncclMemAlloc");
    if (int64_t error = state().value("alloc_error", 0))
      return static_cast<NcclResult>(error);
  }
  CudaPointer made = 0;
  if (!currentContext() || allocate(&made, bytes) != cudaOk)
    return ncclUnhandledCudaError;
  *memory = reinterpret_cast<void *>(made);
  Guard guard("");
  state().allocated[static_cast<char *>(*memory)] = bytes;
  return ncclOk;
}

NcclResult ncclMemFree(void *memory) {
  {
    Guard guard("ncclMemFree");
    if (!state().allocated.erase(static_cast<char *>(memory)))
      return state().wrong("ncclMemFree: expected memory of ncclMemAlloc");
    if (state().windows > 0)
      return state().wrong("ncclMemFree: windows still exist");
  }
  return release(reinterpret_cast<CudaPointer>(memory)) == cudaOk ? ncclOk : ncclUnhandledCudaError;
}

NcclResult ncclCommWindowRegister(NcclComm handle, void *base, size_t bytes, NcclWindow *window,
                                  int flags) {
  CommCall call("ncclCommWindowRegister", handle, false);
  if (call.result != ncclOk)
    return call.result;
  Comm *comm = call.comm;
  std::string problem = problemOf(*comm, static_cast<char *>(base), bytes, flags);
  if (!problem.empty())
    return state().wrong("ncclCommWindowRegister: " + problem);
  *window = nullptr;
  if (int64_t error = state().value("window_error", 0)) {
    state().lastError = "the memory cannot be exported";
    return static_cast<NcclResult>(error);
  }
  WorldLock lock(*comm->world);
  if (!lock)
    return standsStill();
  bool fails = state().value("window_fails_on", -1) == comm->worldRank;
  comm->windowTo = window;
  comm->windowRound = comm->shared().windowRounds;
  comm->pending = {static_cast<char *>(base), state().value("windows", 1) && !fails ? bytes : 0,
                   nullptr};
  comm->self().windowBytes = bytes;
  NcclResult result = began(comm);
  if (++comm->shared().windows == comm->shared().size)
    completeWindows(comm->shared());
  return result;
}

NcclResult ncclCommWindowDeregister(NcclComm handle, NcclWindow window) {
  CommCall call("ncclCommWindowDeregister", handle, false);
  if (call.result != ncclOk)
    return call.result;
  auto &windows = call.comm->windows;
  auto known = std::find_if(windows.begin(), windows.end(),
                            [&](const Window &each) { return each.handle == window; });
  if (known == windows.end())
    return state().wrong("ncclCommWindowDeregister: expected a window of this communicator");
  if (hasWork(call.comm))
    return state().wrong("ncclCommWindowDeregister: a collective has not ended");
  windows.erase(known);
  --state().windows;
  return ncclOk;
}

NcclResult ncclCommRegister(NcclComm handle, void *base, size_t bytes, void **registration) {
  CommCall call("ncclCommRegister", handle, false);
  if (call.result != ncclOk)
    return call.result;
  if (!isOnDevice(base, bytes))
    return state().wrong("ncclCommRegister: expected memory of the device");
  ++call.comm->registrations;
  ++state().registered;
  *registration = base;
  return ncclOk;
}

NcclResult ncclCommDeregister(NcclComm handle, void *) {
  CommCall call("ncclCommDeregister", handle, false);
  if (call.result != ncclOk)
    return call.result;
  --call.comm->registrations;
  --state().registered;
  return ncclOk;
}

} // extern "C"
