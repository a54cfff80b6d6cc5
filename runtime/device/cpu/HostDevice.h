//===- HostDevice.h - A device in host memory -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The threads of the rank execute all commands except kernels and asynchronous copies. The thread
// of `copyWorker` executes asynchronous copies.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CPU_HOSTDEVICE_H
#define FSDPRT_DEVICE_CPU_HOSTDEVICE_H

#include "device/Device.h"
#include "device/cpu/AsyncTransferWorker.h"

namespace fsdprt {

class HostDevice : public Device {
public:
  Arena allocate(const fb::Layout &layout, Arena::Kind kind) override;
  void attach(const Arena &arena, WorkerPool &pool) override;
  void detach() override { copyWorker.reset(); }
  bool isHostVisible() const override { return true; }
  void read(void *hosts, const std::byte *from, uint64_t bytes) override;
  void write(std::byte *to, const void *hosts, uint64_t bytes) override;
  void fill(std::byte *to, uint64_t bytes) override;
  void copy(std::byte *to, const std::byte *from, uint64_t bytes) override;
  void startCopy(uint32_t number, std::byte *to, const std::byte *from, uint64_t bytes) override;
  void awaitCopy(uint32_t number) override;
  DeviceSpan spanOfCopy(uint32_t number) const override;
  void finish(const std::function<void()> &) override {}

protected:
  /// The numbers of asynchronous copies must be less than `numCopies`.
  explicit HostDevice(uint32_t numCopies) : copies(numCopies) {}
  WorkerPool *pool = nullptr;

private:
  struct Copy {
    const std::byte *from = nullptr;
    std::byte *to = nullptr;
    uint64_t bytes = 0;
  };
  std::vector<Copy> copies; ///< asynchronous copies, indexed by their numbers
  std::unique_ptr<AsyncTransferWorker> copyWorker;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CPU_HOSTDEVICE_H
