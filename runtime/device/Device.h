//===- Device.h - The processor of a rank -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank's commands are executed by its device, in the order in which they are given:
//
//     host      launch | launch | startCopy | launch | awaitCopy | finish
//     device    [------][------][----------------][------]         |
//     copies                             [----------------]
//
// Implementations: CpuDevice executes a command within its call; EmulatedDevice runs PTX on the
// emulator, and everything else as CpuDevice does; CudaDevice enqueues it on a stream. What goes
// wrong in a command is an Error, of its call or of a later finish(). Addresses are in the rank's
// arena, unless they are said to be the host's.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_DEVICE_H
#define FSDPRT_DEVICE_DEVICE_H

#include "artifact/Artifact.h"
#include "device/Arena.h"
#include "device/cpu/WorkerPool.h"
#include <functional>
#include <memory>
#include <vector>

namespace fsdprt {

class CudaQueue;

/// When something ran. On a device with a timeline, numbers of its stamps; else nanoseconds of the
/// monotonic clock. 0: not known.
struct DeviceSpan {
  uint64_t from = 0, to = 0;
};

/// Stamps that a device passes in the order of its commands, and when it passed them.
class DeviceTimeline {
public:
  virtual ~DeviceTimeline() = default;
  /// Starts a run, before which the device has finished: relates its clock to the host's.
  virtual void begin(const std::function<void()> &idle) = 0;
  /// Enqueues a stamp among the commands, and returns its number; 0 when there are no more.
  virtual uint32_t stampCommand() = 0;
  /// Returns the nanoseconds of the host's monotonic clock at which a stamp was passed. Call
  /// finish() first.
  virtual uint64_t timeOf(uint32_t stamp) const = 0;
};

/// A recording of the commands of all ranks of this process.
class DeviceGraph {
public:
  virtual ~DeviceGraph() = default;
  /// From here to end() commands are recorded instead of executed. All of these throw Error.
  virtual void begin() = 0;
  virtual void end() = 0;
  /// Enqueues what was recorded on the first rank's device.
  virtual void launch() const = 0;
  /// Ends a recording and forgets it.
  virtual void cancel() noexcept = 0;
  virtual bool isReady() const = 0;
};

/// How a device counts its progress: a heartbeat every so many launches, numbered from 1 to
/// `numbers` and then from 1 again. 0: it has none.
struct HeartbeatInterval {
  uint64_t launches = 0, numbers = 0;
};

class Device {
public:
  virtual ~Device() = default;

  //===- Memory -------------------------------------------------------------===//

  /// Allocates the arena of a layout, filled with zeros. Throws Error.
  virtual Arena allocate(const fb::Layout &layout, Arena::Kind kind) = 0;
  /// Before the first command. The arena and the pool outlive the commands.
  virtual void attach(const Arena &arena, WorkerPool &pool) = 0;
  /// Ends what the device does by itself; the arena may go then.
  virtual void detach() = 0;
  /// Returns true if the host can address device memory. If not, read() and write() access it,
  /// after the commands so far; they return when they are done.
  virtual bool isHostVisible() const = 0;
  virtual void read(void *hosts, const std::byte *from, uint64_t bytes) = 0;
  virtual void write(std::byte *to, const void *hosts, uint64_t bytes) = 0;
  /// Returns the bytes in use on the physical device apart from arenas of this process.
  virtual uint64_t bytesBeside() const { return 0; }

  //===- Commands -----------------------------------------------------------===//

  /// Executes a phase of a kernel. `bindings`: addresses of its buffers and of its workspace.
  virtual void launch(uint32_t kernel, uint32_t phase, void *const *bindings) = 0;
  /// Fills device memory with zeros.
  virtual void fill(std::byte *to, uint64_t bytes) = 0;
  /// Copies within the arena.
  virtual void copy(std::byte *to, const std::byte *from, uint64_t bytes) = 0;
  /// Starts a copy beside the following commands, until awaitCopy(). A number is in use once at a
  /// time.
  virtual void startCopy(uint32_t number, std::byte *to, const std::byte *from, uint64_t bytes) = 0;
  virtual void awaitCopy(uint32_t number) = 0;
  /// Returns when the copy of that number ran, after awaitCopy().
  virtual DeviceSpan spanOfCopy(uint32_t number) const = 0;
  /// Waits until all commands are done, and calls `idle` now and then meanwhile.
  virtual void finish(const std::function<void()> &idle) = 0;

  //===- Asynchronous devices -------------------------------------------------===//

  /// Returns true if a command may still run when its call has returned.
  virtual bool isAsynchronous() const { return false; }
  /// The number of the physical device, for messages.
  virtual int ordinal() const { return 0; }
  /// The streams that collectives on the device use; null where there are none.
  virtual CudaQueue *queue() { return nullptr; }
  /// Makes the timeline of the device; null where commands are done when their calls return.
  virtual std::unique_ptr<DeviceTimeline> makeTimeline(uint64_t /*stamps*/) { return nullptr; }
  /// Makes a graph of the commands of these devices, of which this is the first. Throws Error where
  /// it cannot.
  virtual std::unique_ptr<DeviceGraph> makeGraph(const std::vector<Device *> &devices);
  /// At the start of a run, when all commands are done.
  virtual void resetHeartbeat() {}
  /// Returns the number of the last heartbeat; 0: none since resetHeartbeat().
  virtual uint32_t heartbeat() const { return 0; }
  virtual HeartbeatInterval heartbeatInterval() const { return {}; }
  /// Returns the description of a sticky device error; empty if there is none.
  virtual std::string fault() const { return {}; }
};

/// Returns the number of addresses of a launch: of buffers, and of the workspace where there is
/// one.
inline uint32_t pointersOf(const fb::Kernel &kernel) {
  return (kernel.binding_bytes() ? kernel.binding_bytes()->size() : 0) +
         (kernel.shared_bytes() != 0);
}

} // namespace fsdprt

#endif // FSDPRT_DEVICE_DEVICE_H
