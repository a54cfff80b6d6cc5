//===- RankExecutor.h - Executes programs on one rank -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank has a device with an arena, worker threads, and threads for asynchronous transfers. The
// rank executes a decoded program on the calling thread without allocating memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_RANKEXECUTOR_H
#define FSDPRT_EXECUTE_RANKEXECUTOR_H

#include "device/Arena.h"
#include "device/RankFile.h"
#include "execute/CollectiveWorker.h"
#include "execute/GroupContext.h"

namespace fsdprt {

class RankExecutor {
public:
  /// Creates the executor of rank `number` and the rank's arena, and registers the arena with the
  /// communicator. spinsFor() computes `spins`, and mostBindings() computes `mostBindings`.
  /// `context` must outlive the executor. Throws Error on failure.
  RankExecutor(const GroupContext &context, uint32_t number, std::unique_ptr<Device> device,
               uint32_t spins, size_t mostBindings);

  uint32_t number() const { return rank; }
  Device &getDevice() const { return *device; }
  const Arena &getArena() const { return arena; }
  /// Returns the rank's file of offloaded states, or null if the rank has no such file.
  const RankFile *getFile() const { return file.get(); }

  /// Starts a thread for collectives on channels if `hasChannels` is true, and a thread for copies
  /// on channels from and to the rank's file. Programs have `copies` copies on channels in total.
  void addTransferWorkers(bool hasChannels, uint32_t copies);
  /// Ends the threads for transfers. The arena must not be freed before this call.
  void stop();

  /// The next four functions must not be called while a program runs. read() copies `bytes` bytes
  /// from offset `offset` of the arena, and write() copies `bytes` bytes to this offset.
  void read(uint64_t offset, void *to, uint64_t bytes) const;
  void write(uint64_t offset, const void *from, uint64_t bytes) const;
  /// readState() and writeState() copy bytes [first, first + bytes) of the rank's shard of a state.
  void readState(const fb::State &state, uint64_t first, uint64_t bytes, void *to) const;
  void writeState(const fb::State &state, uint64_t first, uint64_t bytes, const void *from) const;
  /// Returns the address of the rank's shard of a state, or null if the shard is in the file or in
  /// memory that the host cannot address.
  std::byte *memoryOf(const fb::State &state) const;
  /// Allocates the memory of the arena, writes the rank block, and sets the step block to neutral
  /// values. The rank block contains the rank's indices in the mesh and the number of the step.
  void prepare();
  /// Restricts the system calls of the calling thread and of the rank's worker threads.
  void restrictCalls();

  void beginRun(const RankRun &run);
  void numberStep() const;
  /// Executes the commands of the run. On return, the device may still execute some of them.
  void executeCommands();
  /// Executes the commands of the run, and waits until the last of them has ended.
  void execute();

  /// Waits until the device has executed all enqueued commands. Throws Error if another rank has
  /// failed.
  void finishDevice();
  void resetHeartbeat();
  /// If the heartbeat of the device has changed, reports progress of the rank to the watchdog.
  void updateHeartbeat();
  /// Returns a text such as ", on GPU 0 between commands 31 ('a') and 64 ('b')", or an empty text
  /// if the position of the device is unknown.
  std::string deviceProgress() const;
  /// Returns the times at which a host thread began and ended the transfer that the wait
  /// `instruction` completes. Returns zeros if no host thread executed the transfer.
  DeviceSpan spanOnHost(const Instruction &instruction) const;
  /// `instruction` is a wait or a blocking collective. Returns the device's time stamps before and
  /// after the transfer that the instruction completes.
  DeviceSpan spanOnDevice(const Instruction &instruction) const;

  /// Calls beginRun() of all observers in the constructor, and endCommands() in the destructor, so
  /// that endCommands() is also called after an error.
  class ObservedRun {
  public:
    explicit ObservedRun(const RankExecutor &executor);
    ~ObservedRun();
    ObservedRun(const ObservedRun &) = delete;
    ObservedRun &operator=(const ObservedRun &) = delete;

  private:
    const RankExecutor &executor;
  };

private:
  /// A copy on a channel after its start and before its wait.
  struct AsyncCopy {
    /// Addresses of the source and of the target. If the source or the target is in the rank's
    /// file, its address is null, and `offset` is its position in the file.
    const std::byte *from = nullptr;
    std::byte *to = nullptr;
    uint64_t bytes = 0, offset = 0;
    bool isVisible = true; ///< true if the host can address `from` and `to`
    const char *label = "";
  };

  bool isHostVisible(uint64_t offset) const;
  uint64_t offsetOf(const fb::Slice &slice, uint64_t iteration) const;
  std::byte *at(const fb::Slice &slice, uint64_t iteration) const;
  bool isOnStream(const Instruction &instruction) const;
  void executeRange(const Instruction *begin, const Instruction *end, uint64_t iteration);
  void executeOne(const Instruction &instruction, uint64_t iteration);
  void launch(const fb::Launch &launch, uint64_t iteration);
  void start(const Instruction &instruction, uint64_t iteration);
  void wait(const Instruction &instruction);
  AsyncTransferWorker *workerOf(TransferKind transferKind) const;
  AsyncCopy copyOf(const Instruction &instruction, uint64_t iteration) const;
  void performInChunks(const AsyncCopy &transfer);
  void perform(const AsyncCopy &transfer);
  void copy(const Instruction &instruction, uint64_t iteration);
  void startCopy(const Instruction &instruction, uint64_t iteration);
  void fill(const fb::Slice &target, uint64_t iteration);
  void initialise(const fb::Initialise &initialise);
  void initialiseSlice(const fb::Initialise &initialise, uint64_t coordinate, uint64_t first);

  const GroupContext &context;
  const fb::Layout &layout;
  Communicator &communicator;
  uint32_t rank, heartbeat = 0; ///< `heartbeat` is the last value that was read from the device
  std::unique_ptr<Device> device;
  Arena arena;
  WorkerPool pool;
  std::vector<void *> bindings;                        ///< buffer addresses of the current launch
  std::unique_ptr<AsyncTransferWorker> transferWorker; ///< thread that completes collectives
  std::unique_ptr<RankFile> file;
  std::vector<std::byte> chunk;                    ///< buffer between the file and GPU memory
  std::vector<AsyncCopy> transfers;                ///< copies, by the index of the copy
  std::unique_ptr<AsyncTransferWorker> fileWorker; ///< thread for file copies on channels
  RankRun run;                                     ///< the current run
};

/// Returns the index of the first element of a rank's shard in the flat buffer of the unit.
inline uint64_t firstElement(const Mesh &mesh, const fb::State &state, uint32_t rank) {
  return mesh.pieceOf(static_cast<uint64_t>(state.split()), rank) * state.elements();
}

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_RANKEXECUTOR_H
