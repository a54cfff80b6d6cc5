//===- NvtxStub.cpp - A stub of a profiler that reads NVTX ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A library that acts as a profiling tool in tests. NVTX_INJECTION64_PATH must contain the path of
// this library. The library writes the ranges of all threads to the file FSDPRT_NVTX_STUB_LOG: the
// line "THREAD DEPTH NAME" when a range begins, and the line "THREAD DEPTH" when a range ends. Like
// some real tools, the library writes to the function tables of NVTX without checking their sizes.
// If FSDPRT_NVTX_STUB_REFUSES is set, the library records no ranges.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace {
using Function = void (*)();
struct Callbacks {
  size_t bytes;
  int (*table)(unsigned module, Function ***table, unsigned *size);
};

thread_local int depth = 0, number = -1;
std::atomic<int> threads{0};

void write(const char *name) {
  static std::mutex lock;
  std::lock_guard<std::mutex> guard(lock);
  const char *path = std::getenv("FSDPRT_NVTX_STUB_LOG");
  static std::FILE *file = path ? std::fopen(path, "w") : nullptr;
  if (number < 0)
    number = threads++;
  if (file)
    std::fprintf(file, *name ? "%d %d %s\n" : "%d %d\n", number, depth, name), std::fflush(file);
}

int push(const char *name) {
  write(name);
  return depth++;
}

int pop() {
  --depth;
  write("");
  return depth;
}

void unwanted() { std::abort(); }
} // namespace

extern "C" int InitializeInjectionNvtx2(const void *(*exportTable)(uint32_t)) {
  if (std::getenv("FSDPRT_NVTX_STUB_REFUSES"))
    return 0;
  auto *callbacks = static_cast<const Callbacks *>(exportTable(/*callbacks=*/1));
  for (auto [module, last] : {std::pair(2u, 8u), std::pair(3u, 14u), std::pair(4u, 6u),
                              std::pair(5u, 15u), std::pair(6u, 6u)}) {
    Function **table = nullptr;
    callbacks->table(module, &table, nullptr);
    for (unsigned i = 1; i <= last; ++i)
      *table[i] = unwanted;
  }
  Function **core = nullptr;
  unsigned size = 0;
  if (!callbacks->table(/*core=*/1, &core, &size) || size != 16)
    return 0;
  *core[9] = reinterpret_cast<Function>(push);
  *core[11] = reinterpret_cast<Function>(pop);
  return 1;
}
