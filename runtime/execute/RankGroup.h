//===- RankGroup.h - Ranks that run programs together -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A group contains all ranks of a mesh. The local ranks of the group are the ranks in this process.
// Each local rank has an arena, a thread and a worker pool. run() executes a program on all local
// ranks and waits for them. The communicator defines which ranks are local, and connects them with
// the ranks of other processes.
//
//     main      run(step) ------------------------------ waits, watches ---- returns
//     rank 0       commands | all_gather | launch | ...  -- done
//     rank 1       commands | all_gather | launch | ...  -- done
//
// The sharded ranks form one group. The unsharded reference is another group, which has one rank.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_RANKGROUP_H
#define FSDPRT_EXECUTE_RANKGROUP_H

#include "artifact/Arenas.h"
#include "execute/DecodedProgram.h"
#include "execute/RankExecutor.h"
#include <optional>
#include <thread>
#include <unordered_map>

namespace fsdprt {

class RankGroup {
public:
  /// Decodes the programs with the layout `layout`, adds their collectives to the communicator, and
  /// connects the ranks. Throws Error.
  RankGroup(std::shared_ptr<const Artifact> artifact, std::unique_ptr<Communicator> communicator,
            const fb::Layout &layout, bool reference, const RankGroupOptions &options);
  /// Must not be called if hasHung() is true, because threads of the group still use the group.
  ~RankGroup();
  RankGroup(const RankGroup &) = delete;
  RankGroup &operator=(const RankGroup &) = delete;

  uint32_t ranks() const { return static_cast<uint32_t>(mesh.ranks()); }
  /// The ranks of this process are [firstRank(), firstRank() + localRanks()).
  uint32_t firstRank() const { return first; }
  uint32_t localRanks() const { return static_cast<uint32_t>(executors.size()); }
  bool isLocal(uint32_t rank) const { return rank - first < executors.size(); }
  Communicator &getCommunicator() const { return *communicator; }
  const fb::Layout &getLayout() const { return layout; }
  const Artifact &getArtifact() const { return artifact; }
  uint32_t threadsPerRank() const { return options.threadsPerRank; }
  uint64_t arenaBytes() const { return executors[0]->getArena().mappedBytes(); }
  RankExecutor &executor(uint32_t rank) const { return *executors[rank - first]; }
  uint64_t firstElement(const fb::State &state, uint32_t rank) const {
    return fsdprt::firstElement(mesh, state, rank);
  }
  bool hasHung() const { return hung; }
  /// Returns true if runs execute all kernels. Otherwise results of checked lookups are invalid.
  bool checksLookups() const { return options.onlyKinds.empty(); }
  /// Returns the name and number of the current or last run, such as "step 5".
  std::string where() const;
  /// Returns the end of the used memory: the highest aligned end offset of the states, of the
  /// inputs, and of all ranges that the programs so far have used.
  uint64_t peakBytes() const { return alignedEnd(layout, peak); }
  /// Returns an array with one element for each type of collective: the number of bytes that the
  /// first local rank has exchanged in collectives of this type.
  const uint64_t *collectiveBytes() const { return communicator->exchangedBytes(); }

  /// Returns the number of bytes that are in use on the GPUs of the local ranks and do not belong
  /// to the arenas. Returns 0 if the device is a CPU.
  uint64_t deviceBytesBeside() const;

  void attach(std::shared_ptr<RankObserver> observer) { observers.push_back(std::move(observer)); }
  const std::vector<Instruction> &instructionsOf(const fb::Program &program) const {
    return programs.at(&program).instructions;
  }

  /// Runs a program on all local ranks. If ranks fail, throws the Error of the first failure.
  void run(const fb::Program &program);
  /// Repeats the last run of a program with the additional observer `observer`. The caller must
  /// have restored the inputs, states and blocks.
  void runAgain(const fb::Program &program, std::shared_ptr<RankObserver> observer);

private:
  using Job = void (RankGroup::*)(RankExecutor &rank);

  std::vector<std::unique_ptr<Device>> makeDevices() const;
  /// Returns true if a program has collectives that transfer workers perform.
  bool hasChannels() const;
  void addTransferWorkers();
  void stop();
  void onEveryRank(Job job, bool beginsRun = true);
  void awaitRanks();
  [[noreturn]] void throwFirstError();
  void serve(uint32_t rank);

  void prepare(RankExecutor &rank) { rank.prepare(); }
  void restrictCalls(RankExecutor &rank) { rank.restrictCalls(); }
  void execute(RankExecutor &rank) { rank.execute(); }
  void finishDevices();
  std::string progressReport() const;
  Error withDeviceProgress(const RankExecutor &rank, const Error &reason) const;
  bool needsHost(const Instruction &instruction) const;
  void checkRecordable(const DecodedProgram &step) const;
  void addRecording();
  void record();
  void recordRank(RankExecutor &rank);
  void replay(RankExecutor &rank);
  void runRecorded();

  std::shared_ptr<const Artifact> owned; ///< owner of the kernels, even if a rank hangs
  const Artifact &artifact;
  Mesh mesh;
  const fb::Layout &layout;
  RankGroupOptions options;
  std::unique_ptr<Communicator> communicator;
  Watchdog &watchdog;
  uint32_t spins, first, numAsyncCopies = 0; ///< numAsyncCopies: copies on channels
  std::unordered_map<const fb::Program *, DecodedProgram> programs;
  std::vector<std::shared_ptr<RankObserver>> observers;
  GroupContext context;
  std::vector<std::unique_ptr<RankExecutor>> executors; ///< executors of the local ranks
  std::vector<std::thread> threads;                     ///< threads of the local ranks
  std::vector<std::optional<Error>> errors;             ///< errors of the local ranks
  std::unique_ptr<DeviceGraph> recording;               ///< CUDA graph of 'step', or null
  /// bytes exchanged in each launch of `recording`
  uint64_t recordedBytes[collectiveKinds] = {};
  const std::vector<Instruction> *current = nullptr;
  const char *currentName = "";
  uint64_t currentRun = 0, peak = 0;
  Job job = nullptr;
  bool jobBeginsRun = false;
  FutexEvent jobEvent, doneEvent;
  std::atomic<uint64_t> generation{0};
  std::atomic<uint32_t> running{0};
  std::atomic<int32_t> firstFailure{-1};
  std::atomic<bool> ending{false};
  bool hung = false;
  bool isAgain = false; ///< true while runAgain() runs; `recording` is then not used
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_RANKGROUP_H
