//===- CpuDevice.h - Kernels on the rank's threads --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each phase of a kernel is a loop over tiles. The tiles are divided into ranges, and each worker
// thread executes one range. Each worker thread has its own workspace.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CPU_CPUDEVICE_H
#define FSDPRT_DEVICE_CPU_CPUDEVICE_H

#include "device/cpu/HostDevice.h"

namespace fsdprt {

class CpuDevice : public HostDevice {
public:
  /// `artifact` must contain code for a CPU. `artifact` and `layout` must outlive the device.
  CpuDevice(const Artifact &artifact, const fb::Layout &layout, uint32_t numCopies)
      : HostDevice(numCopies), artifact(artifact), layout(layout) {}

  void attach(const Arena &arena, WorkerPool &pool) override;
  void launch(uint32_t kernel, uint32_t phase, void *const *bindings) override;

private:
  const Artifact &artifact;
  const fb::Layout &layout;
  std::byte *scratch = nullptr; ///< workspaces of the kernels, in the order of the workers
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CPU_CPUDEVICE_H
