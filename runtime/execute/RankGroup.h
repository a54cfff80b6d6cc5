//===- RankGroup.h - Ranks that run programs together -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A world is a mesh of ranks, of which this process has some or all: each of these has an arena, a
// thread and a worker pool. run() gives all of them the same program and waits for all. The
// communicator says which they are, and brings them together with those of other processes.
//
//     main      run(step) ------------------------------ waits, watches ---- returns
//     rank 0       commands | all_gather | launch | ...  -- done
//     rank 1       commands | all_gather | launch | ...  -- done
//
// The sharded ranks are one world; the unsharded reference is a world of one rank.
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
  /// `layout` is what all programs of this world run on. Adds the programs' collectives to the
  /// communicator, and connects it.
  RankGroup(std::shared_ptr<const Artifact> artifact, std::unique_ptr<Communicator> communicator,
            const fb::Layout &layout, bool reference, const RankGroupOptions &options);
  /// Not for a world that hasHung(): its threads still use it.
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
  /// Returns a rank of this process.
  RankExecutor &executor(uint32_t rank) const { return *executors[rank - first]; }
  /// Returns the first element of its unit's flat buffer that a rank holds of a state.
  uint64_t firstElement(const fb::State &state, uint32_t rank) const {
    return fsdprt::firstElement(mesh, state, rank);
  }
  bool hasHung() const { return hung; }
  /// Returns false if only some kernels run, which leaves what checks of lookups say undefined.
  bool checksLookups() const { return options.onlyKinds.empty(); }
  /// The program that runs, or ran last, and its number: "step 5".
  std::string where() const;
  /// The end of the room of the highest range that what has run so far names, states and inputs
  /// included.
  uint64_t peakBytes() const { return alignedEnd(layout, peak); }
  /// What the first rank here has exchanged, by the kind of the collective.
  const uint64_t *collectiveBytes() const { return communicator->exchangedBytes(); }

  /// Of the GPUs of the ranks here: what is in use beside arenas. 0 where there are none.
  uint64_t deviceBytesBeside() const;

  /// Adds an observer of all further runs.
  void attach(std::shared_ptr<RankObserver> observer) { observers.push_back(std::move(observer)); }
  const std::vector<Instruction> &instructionsOf(const fb::Program &program) const {
    return programs.at(&program).instructions;
  }

  /// Throws Error with the first failure.
  void run(const fb::Program &program);
  /// Runs a program once more as the run that was its last, whose inputs, states and blocks are
  /// there again, with one more observer.
  void runAgain(const fb::Program &program, std::shared_ptr<RankObserver> observer);

private:
  using Job = void (RankGroup::*)(RankExecutor &rank);

  std::vector<std::unique_ptr<Device>> makeDevices() const;
  void addTransferWorkers();
  void stop();
  void onEveryRank(Job job, bool beginsRun = true);
  void awaitRanks();
  [[noreturn]] void throwFirstError();
  void serve(uint32_t rank);

  void prepare(RankExecutor &rank) { rank.prepare(); }
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

  std::shared_ptr<const Artifact> owned; // a rank that hangs is in its code
  const Artifact &artifact;
  Mesh mesh;
  const fb::Layout &layout;
  RankGroupOptions options;
  std::unique_ptr<Communicator> communicator;
  Watchdog &watchdog;
  uint32_t spins, first, numAsyncCopies = 0; // copies on channels, of all programs
  std::unordered_map<const fb::Program *, DecodedProgram> programs;
  std::vector<std::shared_ptr<RankObserver>> observers;
  GroupContext context;
  std::vector<std::unique_ptr<RankExecutor>> executors; ///< of the ranks of this process
  std::vector<std::thread> threads;                     ///< of these
  std::vector<std::optional<Error>> errors;             ///< of these
  std::unique_ptr<DeviceGraph> recording;               // of 'step', where that was asked for
  uint64_t recordedBytes[4] = {};                       // that it exchanges
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
  bool isAgain = false; // runAgain(): nothing recorded is used
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_RANKGROUP_H
