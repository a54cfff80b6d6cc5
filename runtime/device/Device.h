//===- Device.h - The processor of a rank -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The device of a rank executes the commands of the rank in the order of the calls:
//
//     host      launch | launch | startCopy | launch | awaitCopy | finish
//     device    [------][------][----------------][------]         |
//     copies                             [----------------]
//
// CpuDevice executes a command within the call. EmulatedDevice also does so, but runs kernels as
// PTX on the emulator. CudaDevice enqueues commands on a stream. If a command fails, its call or a
// later finish() throws Error. Addresses are in the rank's arena, except arguments named `hosts`.
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

/// Begin and end of a command. On a device with a timeline, begin and end are numbers of time
/// stamps, and otherwise results of monotonicNanoseconds(). The value 0 means unknown.
struct DeviceSpan {
  uint64_t from = 0, to = 0;
};

class DeviceTimeline {
public:
  virtual ~DeviceTimeline() = default;
  /// Starts a run, and measures the offset between the clocks of device and host. All commands must
  /// be done.
  virtual void begin(const std::function<void()> &idle) = 0;
  /// Enqueues a time stamp after earlier commands. Returns its number, or 0 if no stamp is left.
  virtual uint32_t stampCommand() = 0;
  /// Returns the time at which the device reached a stamp, in nanoseconds of the host's monotonic
  /// clock. Device::finish() must have been called.
  virtual uint64_t timeOf(uint32_t stamp) const = 0;
};

/// A recording of the commands of all ranks of this process, such as a CUDA graph.
class DeviceGraph {
public:
  virtual ~DeviceGraph() = default;
  /// From begin() to end(), commands are recorded, not executed. Both functions may throw Error.
  virtual void begin() = 0;
  virtual void end() = 0;
  /// Enqueues the recorded commands of all ranks on the first rank's device.
  virtual void launch() const = 0;
  virtual void cancel() noexcept = 0;
  virtual bool isReady() const = 0;
};

/// The device reports one heartbeat every `launches` launches. Heartbeats are numbered from 1 to
/// `numbers`, and after `numbers` from 1 again. `launches` is 0 if the device has no heartbeat.
struct HeartbeatInterval {
  uint64_t launches = 0, numbers = 0;
};

class Device {
public:
  virtual ~Device() = default;

  //===- Memory -------------------------------------------------------------===//

  /// Allocates the arena of a layout, filled with zeros. Throws Error on failure.
  virtual Arena allocate(const fb::Layout &layout, Arena::Kind kind) = 0;
  /// Must be called before the first command. The arena and the pool must outlive all commands.
  virtual void attach(const Arena &arena, WorkerPool &pool) = 0;
  /// Ends the threads of the device. The arena must not be freed before this call.
  virtual void detach() = 0;
  /// Returns true if the host can address device memory. Otherwise read() and write() copy device
  /// memory after all earlier commands, and return when the copy is complete.
  virtual bool isHostVisible() const = 0;
  virtual void read(void *hosts, const std::byte *from, uint64_t bytes) = 0;
  virtual void write(std::byte *to, const void *hosts, uint64_t bytes) = 0;
  /// Returns the number of bytes in use on the physical device, without the arenas of this process.
  virtual uint64_t bytesBeside() const { return 0; }

  //===- Commands -----------------------------------------------------------===//

  /// Executes a phase of a kernel. `bindings` has the addresses of the kernel's buffers, and then
  /// of its workspace if it has one.
  virtual void launch(uint32_t kernel, uint32_t phase, void *const *bindings) = 0;
  virtual void fill(std::byte *to, uint64_t bytes) = 0;
  virtual void copy(std::byte *to, const std::byte *from, uint64_t bytes) = 0;
  /// Starts a copy that runs concurrently with the following commands until awaitCopy(). `number`
  /// must differ from the numbers of all other copies in flight.
  virtual void startCopy(uint32_t number, std::byte *to, const std::byte *from, uint64_t bytes) = 0;
  virtual void awaitCopy(uint32_t number) = 0;
  /// Returns the begin and end of a copy. awaitCopy() must have been called.
  virtual DeviceSpan spanOfCopy(uint32_t number) const = 0;
  /// Waits until all commands are done. Calls idle() repeatedly while it waits.
  virtual void finish(const std::function<void()> &idle) = 0;

  //===- Asynchronous devices -------------------------------------------------===//

  /// Returns true if calls only enqueue commands, which may still be running when a call returns.
  virtual bool isAsynchronous() const { return false; }
  /// Returns the index of the physical device, for messages.
  virtual int ordinal() const { return 0; }
  /// Returns the streams of the rank on its GPU, or null if the device is no GPU.
  virtual CudaQueue *queue() { return nullptr; }
  /// Creates a timeline with `stamps` time stamps. Returns null if the device is not asynchronous.
  virtual std::unique_ptr<DeviceTimeline> makeTimeline(uint64_t /*stamps*/) { return nullptr; }
  /// Creates a graph for the commands of `devices`, the first of which must be this device. Throws
  /// Error if the device does not support graphs.
  virtual std::unique_ptr<DeviceGraph> makeGraph(const std::vector<Device *> &devices);
  /// Resets the heartbeat. Must be called at the start of a run, when all commands are done.
  virtual void resetHeartbeat() {}
  /// Returns the number of the last heartbeat, or 0 if none occurred since resetHeartbeat().
  virtual uint32_t heartbeat() const { return 0; }
  virtual HeartbeatInterval heartbeatInterval() const { return {}; }
  /// Returns a description of the sticky error of the device, or an empty text if there is none.
  virtual std::string fault() const { return {}; }
};

/// Returns the number of addresses that a launch of a kernel passes: one per buffer, and one for
/// the workspace if there is one.
inline uint32_t pointersOf(const fb::Kernel &kernel) {
  return (kernel.binding_bytes() ? kernel.binding_bytes()->size() : 0) +
         (kernel.shared_bytes() != 0);
}

} // namespace fsdprt

#endif // FSDPRT_DEVICE_DEVICE_H
