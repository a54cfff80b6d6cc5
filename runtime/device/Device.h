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
// CpuDevice executes a command within the call. EmulatedDevice does the same, but runs kernels as
// PTX on the emulator. CudaDevice enqueues commands on a stream. A command that fails throws Error
// from its own call or from a later finish(). Addresses are in the rank's arena, except those named
// `hosts`.
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

/// Time span of a command. On a device with a timeline, the fields are stamp numbers; else they are
/// nanoseconds of the monotonic clock. 0 means unknown.
struct DeviceSpan {
  uint64_t from = 0, to = 0;
};

/// Stamps between a device's commands, and the times at which the device passed the stamps.
class DeviceTimeline {
public:
  virtual ~DeviceTimeline() = default;
  /// Starts a run and relates the device's clock to the host's. All commands must have finished.
  virtual void begin(const std::function<void()> &idle) = 0;
  /// Enqueues a stamp after the commands so far. Returns its number, or 0 if no stamp is left.
  virtual uint32_t stampCommand() = 0;
  /// Returns the time at which a stamp was passed, in nanoseconds of the host's monotonic clock.
  /// Call finish() first.
  virtual uint64_t timeOf(uint32_t stamp) const = 0;
};

/// A recording of the commands of all ranks of this process.
class DeviceGraph {
public:
  virtual ~DeviceGraph() = default;
  /// Starts recording: commands are recorded instead of executed until end(). Both throw Error on
  /// failure.
  virtual void begin() = 0;
  virtual void end() = 0;
  /// Enqueues the recorded commands of all ranks on the first rank's device.
  virtual void launch() const = 0;
  /// Ends a recording and discards it.
  virtual void cancel() noexcept = 0;
  virtual bool isReady() const = 0;
};

/// How a device counts progress: one heartbeat every `launches` launches. Heartbeats are numbered
/// from 1 to `numbers` and then from 1 again. `launches` is 0 if the device has no heartbeat.
struct HeartbeatInterval {
  uint64_t launches = 0, numbers = 0;
};

class Device {
public:
  virtual ~Device() = default;

  //===- Memory -------------------------------------------------------------===//

  /// Allocates the arena of a layout, filled with zeros. Throws Error on failure.
  virtual Arena allocate(const fb::Layout &layout, Arena::Kind kind) = 0;
  /// Prepares for commands. The arena and the pool must outlive all commands.
  virtual void attach(const Arena &arena, WorkerPool &pool) = 0;
  /// Ends the device's own threads. The arena may be freed after that.
  virtual void detach() = 0;
  /// Returns true if the host can address device memory. If not, use read() and write(), which run
  /// after all commands so far and wait for completion.
  virtual bool isHostVisible() const = 0;
  virtual void read(void *hosts, const std::byte *from, uint64_t bytes) = 0;
  virtual void write(std::byte *to, const void *hosts, uint64_t bytes) = 0;
  /// Returns the bytes in use on the physical device apart from arenas of this process.
  virtual uint64_t bytesBeside() const { return 0; }

  //===- Commands -----------------------------------------------------------===//

  /// Executes a phase of a kernel. `bindings` has the addresses of the kernel's buffers and
  /// workspace.
  virtual void launch(uint32_t kernel, uint32_t phase, void *const *bindings) = 0;
  /// Fills device memory with zeros.
  virtual void fill(std::byte *to, uint64_t bytes) = 0;
  /// Copies within the arena.
  virtual void copy(std::byte *to, const std::byte *from, uint64_t bytes) = 0;
  /// Starts a copy that runs concurrently with the following commands, until awaitCopy(). No other
  /// copy in flight may have the same `number`.
  virtual void startCopy(uint32_t number, std::byte *to, const std::byte *from, uint64_t bytes) = 0;
  virtual void awaitCopy(uint32_t number) = 0;
  /// Returns the time span of a copy. Call awaitCopy() first.
  virtual DeviceSpan spanOfCopy(uint32_t number) const = 0;
  /// Waits until all commands are done. Calls `idle` repeatedly while it waits.
  virtual void finish(const std::function<void()> &idle) = 0;

  //===- Asynchronous devices -------------------------------------------------===//

  /// Returns true if a command may still be running after its call returned.
  virtual bool isAsynchronous() const { return false; }
  /// Returns the index of the physical device, for messages.
  virtual int ordinal() const { return 0; }
  /// Returns the streams for collectives on the device, or null.
  virtual CudaQueue *queue() { return nullptr; }
  /// Creates the timeline of the device. Returns null if commands are done when their calls return.
  virtual std::unique_ptr<DeviceTimeline> makeTimeline(uint64_t /*stamps*/) { return nullptr; }
  /// Creates a graph of the commands of `devices`; this device is the first of them. Throws Error
  /// if the device has no graphs.
  virtual std::unique_ptr<DeviceGraph> makeGraph(const std::vector<Device *> &devices);
  /// Resets the heartbeat at the start of a run, when all commands are done.
  virtual void resetHeartbeat() {}
  /// Returns the number of the last heartbeat, or 0 if there was none since resetHeartbeat().
  virtual uint32_t heartbeat() const { return 0; }
  virtual HeartbeatInterval heartbeatInterval() const { return {}; }
  /// Returns the description of a sticky device error, or an empty string if there is none.
  virtual std::string fault() const { return {}; }
};

/// Returns the number of addresses that a launch takes: one per buffer, and one for the workspace
/// if the kernel has one.
inline uint32_t pointersOf(const fb::Kernel &kernel) {
  return (kernel.binding_bytes() ? kernel.binding_bytes()->size() : 0) +
         (kernel.shared_bytes() != 0);
}

} // namespace fsdprt

#endif // FSDPRT_DEVICE_DEVICE_H
