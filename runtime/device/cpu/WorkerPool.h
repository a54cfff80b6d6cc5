//===- WorkerPool.h - The threads of one rank -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The thread of the rank is worker 0. Each other worker is a thread of its own, which sleeps when
// there is no task:
//
//     run(task):   worker 0   task(0) ----------- waits for all
//                  worker 1   ...... task(1) ---
//                  worker 2   ...... task(2) -----
//
// run() allocates no memory. The task must not throw exceptions.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CPU_WORKERPOOL_H
#define FSDPRT_DEVICE_CPU_WORKERPOOL_H

#include "core/CpuBinding.h"
#include "core/FutexEvent.h"
#include <thread>
#include <vector>

namespace fsdprt {

class WorkerPool {
public:
  /// A waiting thread polls `spins` times before it sleeps. spinsFor() returns a suitable number.
  /// Worker w is bound as thread `firstThread` + w of `cpus`. The caller binds worker 0.
  WorkerPool(uint32_t workers, uint32_t spins, const CpuBinding &cpus = CpuBinding(),
             uint32_t firstThread = 0);
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  uint32_t size() const { return workers; }

  /// Calls task(w) for every worker w. Returns when all calls have returned.
  template <typename Task>
  void run(Task &&task) {
    start([](void *object,
             uint32_t worker) { (*static_cast<std::remove_reference_t<Task> *>(object))(worker); },
          &task);
    task(0);
    finish();
  }

  /// Divides [0, extent) into one part for each worker, and sets [begin, end) to the part of worker
  /// `w`. Each part begins at a multiple of `tile`.
  static void split(uint64_t extent, uint64_t tile, uint32_t workers, uint32_t w, uint64_t &begin,
                    uint64_t &end) {
    uint64_t tiles = extent / tile + (extent % tile != 0);
    begin = tiles / workers * w + (tiles % workers * w) / workers;
    end = tiles / workers * (w + 1) + (tiles % workers * (w + 1)) / workers;
    begin *= tile;
    end = end * tile < extent ? end * tile : extent;
  }

private:
  using Function = void (*)(void *object, uint32_t worker);
  void start(Function function, void *object);
  void finish();
  void serve(uint32_t worker);

  uint32_t workers, spins;
  Function function = nullptr;
  void *object = nullptr;
  alignas(64) FutexEvent work;
  std::atomic<uint64_t> generation{0};
  std::atomic<bool> ending{false};
  alignas(64) FutexEvent done;
  std::atomic<uint32_t> running{0};
  std::vector<std::thread> threads;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CPU_WORKERPOOL_H
