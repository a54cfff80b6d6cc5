//===- Device.h - The processor of a rank -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The device of a rank executes the commands of the rank in the order in which the functions of the
// commands are called:
//
//     host      launch | launch | startCopy | launch | awaitCopy | finish
//     device    [------][------][----------------][------]         |
//     copies                             [----------------]
//
// When a function of CpuDevice or EmulatedDevice returns, the device has executed the command.
// EmulatedDevice runs the PTX of kernels on the emulator. CudaDevice only enqueues the command on a
// stream. If a command fails, the call for this command or a later call of finish() throws Error.
// All addresses are in the arena of the rank, except for arguments named `hosts`, which are
// addresses in other memory of the host.
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

/// The times at which a command began and ended. If the device has a timeline, `from` and `to` are
/// numbers of time stamps. Otherwise they are results of monotonicNanoseconds(). The value 0 means
/// that the time is unknown.
struct DeviceSpan {
  uint64_t from = 0, to = 0;
};

class DeviceTimeline {
public:
  virtual ~DeviceTimeline() = default;
  /// Starts a run, and measures the offset between the clock of the device and the clock of the
  /// host. All commands must have completed before the call.
  virtual void begin(const std::function<void()> &idle) = 0;
  /// Enqueues a time stamp after earlier commands. Returns the number of the stamp, or 0 if no
  /// stamp is left.
  virtual uint32_t stampCommand() = 0;
  /// Returns the time at which the device reached a stamp, in nanoseconds of the host's monotonic
  /// clock. Device::finish() must have been called after the stamp was enqueued.
  virtual uint64_t timeOf(uint32_t stamp) const = 0;
};

/// Records the commands of all ranks of this process, in order to launch them together. An example
/// is a CUDA graph.
class DeviceGraph {
public:
  virtual ~DeviceGraph() = default;
  /// From begin() to end(), commands are recorded, not executed. Both functions may throw Error.
  virtual void begin() = 0;
  virtual void end() = 0;
  /// Enqueues the recorded commands of all ranks on the device of the first rank.
  virtual void launch() const = 0;
  virtual void cancel() noexcept = 0;
  virtual bool isReady() const = 0;
};

/// Describes how often a device reports heartbeats: once after every `launches` launches.
/// Heartbeats are numbered from 1 to `numbers`. The heartbeat after number `numbers` has number 1.
/// If the device has no heartbeat, `launches` is 0.
struct HeartbeatInterval {
  uint64_t launches = 0, numbers = 0;
};

class Device {
public:
  virtual ~Device() = default;

  //===- Memory -------------------------------------------------------------===//

  /// Allocates the arena of a layout, filled with zeros. Throws Error on failure.
  virtual Arena allocate(const fb::Layout &layout, Arena::Kind kind) = 0;
  /// Prepares the device for commands, and must be called before the first command. The arena and
  /// the pool must exist until all commands have completed.
  virtual void attach(const Arena &arena, WorkerPool &pool) = 0;
  /// Ends the threads of the device. The arena may be freed only after this call.
  virtual void detach() = 0;
  /// Returns true if the host can directly access device memory. Otherwise, read() and write() copy
  /// between host and device memory after all earlier commands. read() and write() return when the
  /// copy is complete.
  virtual bool isHostVisible() const = 0;
  virtual void read(void *hosts, const std::byte *from, uint64_t bytes) = 0;
  virtual void write(std::byte *to, const void *hosts, uint64_t bytes) = 0;
  /// Returns how many bytes of the physical device's memory are in use. The arenas of this process
  /// are not counted.
  virtual uint64_t bytesBeside() const { return 0; }

  //===- Commands -----------------------------------------------------------===//

  /// Executes one phase of a kernel. `bindings` contains the addresses of the kernel's buffers. If
  /// the kernel has a workspace, the address of the workspace follows.
  virtual void launch(uint32_t kernel, uint32_t phase, void *const *bindings) = 0;
  virtual void fill(std::byte *to, uint64_t bytes) = 0;
  virtual void copy(std::byte *to, const std::byte *from, uint64_t bytes) = 0;
  /// Starts a copy that runs at the same time as the commands that follow, until awaitCopy() is
  /// called. `number` must differ from the numbers of all copies that have been started but not
  /// awaited.
  virtual void startCopy(uint32_t number, std::byte *to, const std::byte *from, uint64_t bytes) = 0;
  virtual void awaitCopy(uint32_t number) = 0;
  /// Returns the times at which a copy began and ended. awaitCopy() must have been called for this
  /// copy.
  virtual DeviceSpan spanOfCopy(uint32_t number) const = 0;
  /// Waits until all commands have completed. During the wait, calls idle() again and again.
  virtual void finish(const std::function<void()> &idle) = 0;

  //===- Asynchronous devices -------------------------------------------------===//

  /// Returns true if a call only enqueues its command, so that the command may still run when the
  /// call returns.
  virtual bool isAsynchronous() const { return false; }
  /// Returns the index of the physical device, for use in messages.
  virtual int ordinal() const { return 0; }
  /// Returns the streams that the rank uses on its GPU. Returns null if the device is not a GPU.
  virtual CudaQueue *queue() { return nullptr; }
  /// Creates a timeline that has `stamps` time stamps. Returns null if the device is not
  /// asynchronous.
  virtual std::unique_ptr<DeviceTimeline> makeTimeline(uint64_t /*stamps*/) { return nullptr; }

  /// Creates a graph for the commands of `devices`, the first of which must be this device. Throws
  /// Error if the device does not support graphs.
  virtual std::unique_ptr<DeviceGraph> makeGraph(const std::vector<Device *> &devices);
  /// Resets the heartbeat. Must be called before a run starts, when all commands have completed.
  virtual void resetHeartbeat() {}
  /// Returns the number of the last heartbeat, or 0 if none occurred since resetHeartbeat().
  virtual uint32_t heartbeat() const { return 0; }
  virtual HeartbeatInterval heartbeatInterval() const { return {}; }
  /// If the device has an error that makes all later calls fail, returns a description of this
  /// error. Otherwise returns an empty text.
  virtual std::string fault() const { return {}; }
};

/// Returns how many addresses a launch of a kernel must pass. This is one address for each buffer,
/// and one more if the kernel has a workspace.
inline uint32_t pointersOf(const fb::Kernel &kernel) {
  return (kernel.binding_bytes() ? kernel.binding_bytes()->size() : 0) +
         (kernel.shared_bytes() != 0);
}

} // namespace fsdprt

#endif // FSDPRT_DEVICE_DEVICE_H
