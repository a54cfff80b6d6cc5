//===- WorkerPool.cpp - The threads of one rank -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A new value of `generation` announces a task. The task is complete when `running` reaches 0.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/WorkerPool.h"
#include "core/Stack.h"

using namespace fsdprt;

uint32_t fsdprt::spinsFor(uint32_t threads) {
  // 10,000 polls take 0.2 to 0.5 ms, which is longer than workers wait for each other at the end of
  // most kernels.
  return threads <= std::thread::hardware_concurrency() ? 10000 : 0;
}

WorkerPool::WorkerPool(uint32_t workers, uint32_t spins, const CpuBinding &cpus,
                       uint32_t firstThread)
    : workers(workers), spins(spins) {
  threads.reserve(workers - 1);
  for (uint32_t w = 1; w < workers; ++w)
    threads.emplace_back([this, w, cpus, thread = firstThread + w] {
      cpus.bind(thread);
      serve(w);
    });
}

WorkerPool::~WorkerPool() {
  ending.store(true);
  work.notify();
  for (std::thread &thread : threads)
    thread.join();
}

void WorkerPool::start(Function newFunction, void *newObject) {
  if (workers == 1)
    return;
  function = newFunction;
  object = newObject;
  running.store(workers - 1, std::memory_order_relaxed);
  generation.fetch_add(1, std::memory_order_release);
  work.notify();
}

void WorkerPool::finish() {
  if (workers == 1)
    return;
  waitFor(done, spins, 1000, [&] { return running.load(std::memory_order_acquire) == 0; }, [] {});
}

void WorkerPool::serve(uint32_t worker) {
  touchStack();
  for (uint64_t seen = 0;; ++seen) {
    waitFor(
        work, spins, 1000,
        [&] {
          return generation.load(std::memory_order_acquire) != seen ||
                 ending.load(std::memory_order_relaxed);
        },
        [] {});
    if (ending.load(std::memory_order_relaxed))
      return;
    function(object, worker);
    if (running.fetch_sub(1, std::memory_order_acq_rel) == 1)
      done.notify();
  }
}
