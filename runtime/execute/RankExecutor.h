//===- RankExecutor.h - Executes programs on one rank -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   commands | all_gather | launch | ...  -- finish
//
// A rank has a device with an arena, worker threads, and threads for asynchronous transfers. It
// executes a decoded program on the calling thread and allocates no memory meanwhile.
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
  /// `spins` is explained at spinsFor(). `mostBindings` is the largest number of addresses of a
  /// launch. Registers the arena with the communicator. `context` must outlive the executor. Throws
  /// Error.
  RankExecutor(const GroupContext &context, uint32_t number, std::unique_ptr<Device> device,
               uint32_t spins, size_t mostBindings);

  uint32_t number() const { return rank; }
  Device &getDevice() const { return *device; }
  const Arena &getArena() const { return arena; }
  /// Returns the file of offloaded state, or null.
  const RankFile *getFile() const { return file.get(); }

  /// Starts the threads that programs need: one if there are collectives on channels, and one if
  /// there are `copies` of the file on channels.
  void addTransferWorkers(bool hasChannels, uint32_t copies);
  /// Ends the transfer threads. The arena may be freed after that.
  void stop();

  //===- Memory, only while no program runs ---------------------------------===//

  /// Copy a range of the arena to or from host memory.
  void read(uint64_t offset, void *to, uint64_t bytes) const;
  void write(uint64_t offset, const void *from, uint64_t bytes) const;
  /// Copy bytes [first, first + bytes) of the rank's shard of a state.
  void readState(const fb::State &state, uint64_t first, uint64_t bytes, void *to) const;
  void writeState(const fb::State &state, uint64_t first, uint64_t bytes, const void *from) const;
  /// Returns the address of a state, or null if the state is in the file or in memory that the host
  /// cannot address.
  std::byte *memoryOf(const fb::State &state) const;
  /// Allocates the arena's memory, and writes the rank block and neutral values of the step block.
  void prepare();
  /// Restricts the system calls of the calling thread and of the rank's workers.
  void restrictCalls();

  //===- Execution ----------------------------------------------------------===//

  /// Sets the run that the next calls execute.
  void beginRun(const RankRun &run);
  /// Writes the number of the step to the rank block.
  void numberStep() const;
  /// Executes the commands of the run. On return they may still run on the device.
  void executeCommands();
  /// Executes the run until its last command has ended.
  void execute();

  //===- Progress -----------------------------------------------------------===//

  /// Waits until the device has executed all its commands. Throws if another rank has failed.
  void finishDevice();
  void resetHeartbeat();
  /// Counts progress of the device as progress of the rank.
  void updateHeartbeat();
  /// Returns text such as ", on GPU 0 between commands 31 ('a') and 64 ('b')"; empty if the
  /// position is unknown.
  std::string deviceProgress() const;
  /// Returns the time span of the transfer that a wait is for, or zeros if no host thread executed
  /// it.
  DeviceSpan spanOnHost(const Instruction &instruction) const;
  /// Returns the stamps of the transfer of a wait or of a blocking collective.
  DeviceSpan spanOnDevice(const Instruction &instruction) const;

  /// Notifies observers of the beginning of a run and of the end of its commands. The destructor
  /// does the latter, so that it also happens after an error.
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
  /// A copy on a channel, from its start to its wait.
  struct AsyncCopy {
    const std::byte *from = nullptr; ///< null: the file, at `offset`
    std::byte *to = nullptr;         ///< null: the file, at `offset`
    uint64_t bytes = 0, offset = 0;
    bool isVisible = true; ///< the host can address `from` and `to`
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

  const GroupContext &context;
  const fb::Layout &layout;
  Communicator &communicator;
  uint32_t rank, heartbeat = 0; ///< heartbeat: last value that was read from the device
  std::unique_ptr<Device> device;
  Arena arena;
  WorkerPool pool;
  std::vector<void *> bindings;                        ///< addresses for the current launch
  std::unique_ptr<AsyncTransferWorker> transferWorker; ///< for collectives
  std::unique_ptr<RankFile> file;
  std::vector<std::byte> chunk;                    ///< buffer between the file and GPU memory
  std::vector<AsyncCopy> transfers;                ///< by the number of a copy on a channel
  std::unique_ptr<AsyncTransferWorker> fileWorker; ///< for copies of the file on channels
  RankRun run;                                     ///< the current run
};

/// Returns the first element, in its unit's flat buffer, of a rank's shard of a state.
inline uint64_t firstElement(const Mesh &mesh, const fb::State &state, uint32_t rank) {
  return mesh.pieceOf(static_cast<uint64_t>(state.split()), rank) * state.elements();
}

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_RANKEXECUTOR_H
