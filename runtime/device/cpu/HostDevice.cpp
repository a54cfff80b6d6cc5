//===- HostDevice.cpp - A device in host memory -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "device/cpu/HostDevice.h"
#include "artifact/Arenas.h"
#include <cstring>

using namespace fsdprt;

// Least number of bytes of a copy that is divided among all workers.
static constexpr uint64_t leastBytesToShare = 256 << 10;

Arena HostDevice::allocate(const fb::Layout &layout, Arena::Kind kind) {
  return Arena(mappedBytes(layout), kind);
}

void HostDevice::attach(const Arena &, WorkerPool &ranks) {
  pool = &ranks;
  if (!copies.empty())
    copyWorker = std::make_unique<AsyncTransferWorker>(
        static_cast<uint32_t>(copies.size()), [this](uint32_t number) {
          const Copy &copy = copies[number];
          if (copy.from != copy.to)
            std::memcpy(copy.to, copy.from, copy.bytes);
        });
}

void HostDevice::read(void *hosts, const std::byte *from, uint64_t bytes) {
  std::memcpy(hosts, from, bytes);
}

void HostDevice::write(std::byte *to, const void *hosts, uint64_t bytes) {
  std::memcpy(to, hosts, bytes);
}

void HostDevice::fill(std::byte *to, uint64_t bytes) { std::memset(to, 0, bytes); }

void HostDevice::copy(std::byte *to, const std::byte *from, uint64_t bytes) {
  if (from == to)
    return;
  if (bytes < leastBytesToShare) {
    std::memcpy(to, from, bytes);
    return;
  }
  pool->run([&](uint32_t worker) {
    uint64_t begin, end;
    WorkerPool::split(bytes, 4096, pool->size(), worker, begin, end);
    if (begin < end)
      std::memcpy(to + begin, from + begin, end - begin);
  });
}

void HostDevice::startCopy(uint32_t number, std::byte *to, const std::byte *from, uint64_t bytes) {
  copies[number] = {from, to, bytes};
  copyWorker->post(number);
}

void HostDevice::awaitCopy(uint32_t number) { copyWorker->await(number); }

DeviceSpan HostDevice::spanOfCopy(uint32_t number) const {
  AsyncTransferWorker::Span span = copyWorker->span(number);
  return {span.begin, span.end};
}
