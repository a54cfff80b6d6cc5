//===- Workers.h - Threads, memory and clocks of benchmarks -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_BENCHMARKS_CPU_GEMM_WORKERS_H
#define FSDP_BENCHMARKS_CPU_GEMM_WORKERS_H

#include "Peak.h"
#include "fsdp/Codegen/CpuTarget.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <sys/mman.h>
#include <thread>

inline double threadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Allocates zeroed memory in huge pages if possible, like the runtime's arena.
inline void *allocate(int64_t bytes) {
  constexpr int64_t hugePage = 2 << 20;
  bytes = llvm::alignTo(bytes, hugePage);
  void *memory = aligned_alloc(hugePage, bytes);
  madvise(memory, bytes, MADV_HUGEPAGE);
  memset(memory, 0, bytes);
  return memory;
}

/// Threads that poll for work between runs, so that they need not be woken up at the start of a
/// run.
class Workers {
public:
  explicit Workers(int count) : done(0) {
    for (int i = 1; i < count; ++i)
      threads.emplace_back([this, i] { serve(i); });
  }
  ~Workers() {
    work = nullptr;
    ++round;
    for (std::thread &thread : threads)
      thread.join();
  }
  void run(const std::function<void(int)> &body) {
    work = &body;
    done = 0;
    ++round;
    body(0);
    while (done.load(std::memory_order_acquire) < int(threads.size()))
      __builtin_ia32_pause();
  }
  int count() const { return threads.size() + 1; }

private:
  void serve(int index) {
    for (int seen = 0;;) {
      while (round.load(std::memory_order_acquire) == seen)
        __builtin_ia32_pause();
      ++seen;
      if (!work)
        return;
      (*work)(index);
      ++done;
    }
  }
  const std::function<void(int)> *work = nullptr;
  std::atomic<int> round{0}, done;
  std::vector<std::thread> threads;
};

/// Measures the peak on all threads at once, and returns the GFLOP/s of the fastest thread.
inline double measurePeaks(Workers &workers, PeakKind kind) {
  std::vector<double> rates(workers.count());
  workers.run([&](int worker) { rates[worker] = measurePeak(kind); });
  return *std::max_element(rates.begin(), rates.end());
}

/// Returns the instructions that kernels for `target` use to multiply bf16.
inline PeakKind peakOf(const mlir::fsdp::CpuTarget &target) {
  switch (target.bf16) {
  case mlir::fsdp::Bf16Products::Dot:
    return PeakKind::Dots;
  case mlir::fsdp::Bf16Products::Tiles:
    return PeakKind::Tiles;
  case mlir::fsdp::Bf16Products::Widened:
  case mlir::fsdp::Bf16Products::TileLoops:
    break;
  }
  return PeakKind::F32;
}

#endif // FSDP_BENCHMARKS_CPU_GEMM_WORKERS_H
