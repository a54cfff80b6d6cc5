//===- CpuDevice.cpp - Kernels on the rank's threads ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "device/cpu/CpuDevice.h"

using namespace fsdprt;

void CpuDevice::attach(const Arena &arena, WorkerPool &ranks) {
  HostDevice::attach(arena, ranks);
  scratch = arena.at(layout.workspace() ? layout.workspace()->offset() : 0) + layout.shared_bytes();
}

void CpuDevice::launch(uint32_t kernel, uint32_t number, void *const *bindings) {
  const KernelPhase &phase = artifact.kernel(kernel)[number];
  if (pool->size() == 1 || phase.extent <= phase.tile) {
    phase.function(bindings, 0, static_cast<int64_t>(phase.extent), scratch);
    return;
  }
  pool->run([&](uint32_t worker) {
    uint64_t begin, end;
    WorkerPool::split(phase.extent, phase.tile, pool->size(), worker, begin, end);
    if (begin < end)
      phase.function(bindings, static_cast<int64_t>(begin), static_cast<int64_t>(end),
                     scratch + worker * layout.worker_bytes());
  });
}
