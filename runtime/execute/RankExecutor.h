//===- RankExecutor.h - Executes programs on one rank -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// commands | all_gather | launch | ...  -- finish
//
// A rank has a device with an arena, worker threads, and threads for transfers beside its commands.
// It executes a decoded program on the thread that calls it; nothing on the way allocates.
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
  /// `workers` spin as often before they sleep; `mostBindings`: of a launch. Registers the arena at
  /// the communicator. `context` outlives this. Throws Error.
  RankExecutor(const GroupContext &context, uint32_t number, std::unique_ptr<Device> device,
               uint32_t spins, size_t mostBindings);

  uint32_t number() const { return rank; }
  Device &getDevice() const { return *device; }
  const Arena &getArena() const { return arena; }
  /// Returns the file of offloaded state, or null.
  const RankFile *getFile() const { return file.get(); }

  /// Adds the threads that programs need: for collectives on channels, and for `copies` of the file
  /// on channels.
  void addTransferWorkers(bool hasChannels, uint32_t copies);
  /// Ends them; the arena may go then.
  void stop();

  //===- Memory, while no program runs --------------------------------------===//

  void read(uint64_t offset, void *to, uint64_t bytes) const;
  void write(uint64_t offset, const void *from, uint64_t bytes) const;
  /// Bytes [first, first + bytes) of what the rank holds of a state.
  void readState(const fb::State &state, uint64_t first, uint64_t bytes, void *to) const;
  void writeState(const fb::State &state, uint64_t first, uint64_t bytes, const void *from) const;
  /// Returns null when it is in the file, or in memory that the host does not see.
  std::byte *memoryOf(const fb::State &state) const;
  /// Writes what every program reads: the rank block, and ones into the step block.
  void prepare();

  //===- Execution ----------------------------------------------------------===//

  /// Begins a run: what the next calls execute. Its number in the rank block is that of its step.
  void beginRun(const RankRun &run);
  void numberStep() const;
  /// Executes the commands of the run; they may still run on the device.
  void executeCommands();
  /// Executes the run until its last command has ended.
  void execute();

  //===- Progress -----------------------------------------------------------===//

  /// Waits until the device has done all its commands, or another rank has failed.
  void finishDevice();
  void resetHeartbeat();
  /// Counts what the device goes on with as progress of the rank.
  void updateHeartbeat();
  /// Returns ", on GPU 0 between commands 31 ('a') and 64 ('b')"; an empty text where that is not
  /// known.
  std::string deviceProgress() const;
  /// Returns when a transfer ran that a wait ends, where a thread of the host did it.
  DeviceSpan spanOnHost(const Instruction &instruction) const;
  /// Returns the stamps of what a wait, or a command that is its own wait, ends.
  DeviceSpan spanOnDevice(const Instruction &instruction) const;

  /// Tells observers that a run begins and, perhaps with an error, that its commands end.
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
    std::byte *to = nullptr;         ///< likewise
    uint64_t bytes = 0, offset = 0;
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
  uint32_t rank, heartbeat = 0; ///< of its device, when it was read last
  std::unique_ptr<Device> device;
  Arena arena;
  WorkerPool pool;
  std::vector<void *> bindings;                        ///< of a launch
  std::unique_ptr<AsyncTransferWorker> transferWorker; ///< of collectives on channels
  std::unique_ptr<RankFile> file;
  std::vector<std::byte> chunk;     ///< between the file and memory that the host does not see
  std::vector<AsyncCopy> transfers; ///< by the number of a copy on a channel
  std::unique_ptr<AsyncTransferWorker> fileWorker; ///< of copies of the file on channels
  RankRun run;                                     ///< the current one
};

/// Returns the first element of its unit's flat buffer that a rank holds of a state.
inline uint64_t firstElement(const Mesh &mesh, const fb::State &state, uint32_t rank) {
  return mesh.pieceOf(static_cast<uint64_t>(state.split()), rank) * state.elements();
}

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_RANKEXECUTOR_H
