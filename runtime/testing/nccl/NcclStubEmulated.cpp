//===- NcclStubEmulated.cpp - The NCCL stub on emulated GPUs ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Uses streams and memory of the emulated driver, which FSDPRT_CUDA_LIBRARY must name. A collective
// is work on the stream of its member. The driver runs the work in the order of the stream, repeats
// the work at each launch of a graph that has captured the work, and checks the accesses of the
// work for races. During a wait for the stream, the driver attempts the work while it holds its
// lock. If another thread holds the lock of the stub at this time, the attempt fails, because the
// other thread may be about to take the lock of the driver.
//
//===----------------------------------------------------------------------===//

#include "core/FutexEvent.h"
#include "testing/cuda/Peers.h"
#include "testing/nccl/NcclStubState.h"
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

using namespace fsdprt;
using namespace fsdprt::stub;

namespace {
/// An object Work is a collective that was submitted to a stream. An object Begun is one execution
/// of this collective, which a graph may execute many times.
struct Work {
  Comm *comm;
  Call call;
  double delay;
};
struct Begun : Move {
  bool isOver = false;
};

template <typename Function>
Function *driver(const char *name) {
  const char *path = std::getenv("FSDPRT_CUDA_LIBRARY");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  void *found = library ? dlsym(library, name) : nullptr;
  if (!found) {
    std::fprintf(stderr, "NCCL stub: expected %s in FSDPRT_CUDA_LIBRARY, found none\n", name);
    std::abort();
  }
  return reinterpret_cast<Function *>(found);
}

/// All work and all executions. The objects are never freed, because streams may use them at exit.
struct All {
  std::mutex lock;
  std::deque<Work> works;
  std::deque<Begun> begun;
};
All &all() {
  static All *it = new All;
  return *it;
}

void *begin(void *user) {
  auto &work = *static_cast<Work *>(user);
  std::lock_guard<std::mutex> guard(all().lock);
  Begun &begun = all().begun.emplace_back();
  begun.comm = work.comm;
  begun.number = work.comm->submitted++;
  begun.call = work.call;
  begun.notBefore = monotonicSeconds() + work.delay;
  begun.isOver = work.comm->isGone;
  return &begun;
}

int attempt(void *user, const void *source, void *target) {
  auto &begun = *static_cast<Begun *>(user);
  std::unique_lock<std::mutex> guard(state().lock, std::try_to_lock);
  if (!guard)
    return 0;
  begun.source = source;
  begun.target = target;
  begun.isOver = begun.isOver || arrive(begun);
  return begun.isOver;
}
} // namespace

CudaContext stub::currentContext() {
  static auto *get = driver<CudaResult(CudaContext *)>("cuCtxGetCurrent");
  CudaContext context = nullptr;
  get(&context);
  return context;
}

CudaContext stub::contextOf(CudaStream stream) {
  static auto *get = driver<CudaResult(CudaStream, CudaContext *)>("cuStreamGetCtx");
  CudaContext context = nullptr;
  return get(stream, &context) == cudaOk ? context : nullptr;
}

bool stub::isOnDevice(const void *base, size_t bytes) {
  static auto *get = driver<CudaResult(void *, int, CudaPointer)>("cuPointerGetAttribute");
  auto isThere = [&](size_t at) {
    uint32_t type = 0;
    return get(&type, cudaPointerMemoryType, reinterpret_cast<CudaPointer>(base) + at) == cudaOk &&
           type == cudaMemoryOnDevice;
  };
  return isThere(0) && (bytes == 0 || isThere(bytes - 1));
}

CudaResult stub::allocate(CudaPointer *memory, size_t bytes) {
  static auto *make = driver<CudaResult(CudaPointer *, size_t)>("cuMemAlloc_v2");
  return make(memory, bytes);
}

CudaResult stub::release(CudaPointer memory) {
  static auto *free = driver<CudaResult(CudaPointer)>("cuMemFree_v2");
  return free(memory);
}

bool stub::canReach(const void *base, size_t bytes) {
  return bytes == 0 || isOnDevice(base, bytes);
}

bool stub::submit(Comm *comm, CudaStream stream, const Call &call, const void *source,
                  void *target) {
  static auto *enqueue =
      driver<int(void *, const fsdp_emulated_cuda_work *)>("fsdp_emulated_cuda_enqueue");
  uint64_t members = comm->shared().size, bytes = call.count * sizeOf(call.type);
  bool gathers = call.kind == fb::CollectiveKind::all_gather,
       scatters = call.kind == fb::CollectiveKind::reduce_scatter;
  bool gives =
      call.kind != fb::CollectiveKind::broadcast || static_cast<uint32_t>(call.root) == comm->place;
  Work *work;
  {
    std::lock_guard<std::mutex> guard(all().lock);
    work = &all().works.emplace_back(Work{comm, call, delayOf(*comm)});
  }
  fsdp_emulated_cuda_work asked = {work->call.function,
                                   reinterpret_cast<uint64_t>(source),
                                   gives ? bytes * (scatters ? members : 1) : 0,
                                   reinterpret_cast<uint64_t>(target),
                                   bytes * (gathers ? members : 1),
                                   work,
                                   begin,
                                   attempt};
  return enqueue(stream, &asked) == cudaOk;
}

/// Does nothing, because the driver advances its streams.
void stub::advance() {}

bool stub::hasWork(const Comm *comm) {
  std::lock_guard<std::mutex> guard(all().lock);
  return std::any_of(all().begun.begin(), all().begun.end(),
                     [&](const Begun &begun) { return begun.comm == comm && !begun.isOver; });
}

void stub::forget(const Comm *comm) {
  std::lock_guard<std::mutex> guard(all().lock);
  for (Begun &begun : all().begun)
    begun.isOver |= begun.comm == comm;
}
