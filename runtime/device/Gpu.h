//===- Gpu.h - Where a rank's kernels run -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_GPU_H
#define FSDPRT_DEVICE_GPU_H

#include "artifact/Artifact.h"
#include "device/Arena.h"
#include <cstring>
#include <functional>
#include <memory>

namespace fsdprt {

class CudaQueue;
struct CudaSpan;

/// The GPU of one rank. What goes wrong in a kernel is an Error, of its launch or of a later
/// finish(). Pointers are into the rank's arena, unless it says the host's.
class Gpu {
public:
  virtual ~Gpu() = default;

  //===- Memory -------------------------------------------------------------===//

  /// Where the rank's arena has to be; null: anywhere.
  virtual ArenaSource *arenaSource() { return nullptr; }
  /// Before the first launch. The arena outlives what is launched.
  virtual void attach(const Arena &arena) = 0;
  /// Whether the host has the device's arena before its eyes; if not, it has to be read and written
  /// by these two, behind what was launched. They return when they are through.
  virtual bool isShared() const { return true; }
  virtual void read(void *hosts, const std::byte *from, uint64_t bytes) {
    std::memcpy(hosts, from, bytes);
  }
  virtual void write(std::byte *to, const void *hosts, uint64_t bytes) {
    std::memcpy(to, hosts, bytes);
  }
  /// Of the whole GPU, what is in use now beside the arenas of this process: 0 where that is
  /// nothing to ask for.
  virtual uint64_t bytesBeside() const { return 0; }

  //===- Commands, one behind another ---------------------------------------===//

  /// Begins a phase of a kernel. `bindings`: places of its bindings and its scratch.
  virtual void launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings) = 0;
  /// Zeros and a copy; false: finish() and let the host do it.
  virtual bool fill(std::byte *, uint64_t) { return false; }
  virtual bool copy(std::byte *, const std::byte *, uint64_t) { return false; }
  /// A copy beside what is launched from here on, until it is awaited by its number; false: as
  /// above.
  virtual bool startCopy(uint32_t, std::byte *, const std::byte *, uint64_t) { return false; }
  virtual void awaitCopy(uint32_t) {}
  /// Returns when all of that has ended; calls `idle` now and then meanwhile.
  virtual void finish(const std::function<void()> &) {}
  /// At the begin of a run, where nothing of the rank's is on the GPU.
  virtual void resetHeartbeat() {}
  /// Another value than before: of what was launched, some more has been done. Where there is a
  /// queue, a number of CudaHeartbeat's.
  virtual uint32_t heartbeat() const { return 0; }
  /// That it has failed for good, which ends all that is on it; else nothing.
  virtual std::string fault() const { return {}; }
  /// Of a copy that was awaited, where its queue has a timeline: when it was.
  virtual CudaSpan spanOfCopy(uint32_t number) const;
  /// Where its order can be seen by others, for collectives; null: it is over when a call returns.
  virtual CudaQueue *queue() { return nullptr; }
};

/// How many pointers a launch of a kernel has: bindings, and the scratch where it has some.
inline uint32_t pointersOf(const fb::Kernel &kernel) {
  return (kernel.binding_bytes() ? kernel.binding_bytes()->size() : 0) +
         (kernel.shared_bytes() != 0);
}

} // namespace fsdprt

#endif // FSDPRT_DEVICE_GPU_H
