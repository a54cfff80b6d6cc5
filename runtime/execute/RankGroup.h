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
#include "artifact/Artifact.h"
#include "collectives/Communicator.h"
#include "device/Arena.h"
#include "device/DeviceFactory.h"
#include "device/RankFile.h"
#include "execute/CollectiveWorker.h"
#include "execute/DecodedProgram.h"
#include "execute/RankObserver.h"
#include <optional>
#include <unordered_map>

namespace fsdprt {

struct RankGroupOptions {
  uint32_t threadsPerRank = 1;
  double timeoutSeconds = 60;
  uint64_t seed = 0;
  DeviceKind device = DeviceKind::cpu;
  bool cudaGraph = false;       // 'step' is recorded once and launched as a whole
  std::string offloadDirectory; // of the ranks' files, where the layout has them
  double linkBytesPerSecond =
      0; // collectives take at least as long as such links would; 0: as fast as it goes
  uint64_t stepsBefore = 0; // of the run, before the first run of 'step' here: for messages
  std::vector<std::string> onlyKinds; // see SessionHooks; empty: all
};

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
  uint32_t localRanks() const { return static_cast<uint32_t>(rankStates.size()); }
  bool isLocal(uint32_t rank) const { return rank - first < rankStates.size(); }
  Communicator &getCommunicator() const { return *communicator; }
  const fb::Layout &getLayout() const { return layout; }
  const Artifact &getArtifact() const { return artifact; }
  uint32_t threadsPerRank() const { return options.threadsPerRank; }
  uint64_t arenaBytes() const { return rankStates[0]->arena.mappedBytes(); }
  /// Of the arena of a rank of this process, while no program runs.
  void read(uint32_t rank, uint64_t offset, void *to, uint64_t bytes) const;
  void write(uint32_t rank, uint64_t offset, const void *from, uint64_t bytes) const;
  /// Bytes [first, first + bytes) of what a rank of this process holds of a state.
  void readState(uint32_t rank, const fb::State &state, uint64_t first, uint64_t bytes,
                 void *to) const;
  void writeState(uint32_t rank, const fb::State &state, uint64_t first, uint64_t bytes,
                  const void *from) const;
  /// Null when it is in the file, or in memory that the host does not see.
  std::byte *memoryOf(uint32_t rank, const fb::State &state) const;
  /// The file of a rank, or null.
  const RankFile *getFile() const { return rankStates[0]->file.get(); }
  /// The first element of its unit's flat buffer that a rank holds of a state.
  uint64_t firstElement(const fb::State &state, uint32_t rank) const;
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
  Device &deviceOf(uint32_t rank) const { return *rankState(rank).device; }
  /// Waits until the device of a rank here has done all its commands, or another rank has failed.
  void finishDevice(uint32_t rank) { finishDevice(rankState(rank)); }
  /// Returns when a transfer ran that a wait ends, where a thread of the host did it.
  DeviceSpan spanOnHost(uint32_t rank, const Instruction &instruction) const;
  /// Returns the stamps of what a wait, or a command that is its own wait, ends.
  DeviceSpan spanOnDevice(uint32_t rank, const Instruction &instruction) const;

  /// Throws Error with the first failure.
  void run(const fb::Program &program);
  /// Runs a program once more as the run that was its last, whose inputs, states and blocks are
  /// there again, with one more observer.
  void runAgain(const fb::Program &program, std::shared_ptr<RankObserver> observer);

private:
  /// A copy on a channel, from its start to its wait.
  struct AsyncCopy {
    const std::byte *from = nullptr; // null: the file, at `offset`
    std::byte *to = nullptr;         // likewise
    uint64_t bytes = 0, offset = 0;
    const char *label = "";
  };
  struct Rank {
    Rank(std::unique_ptr<Device> on, const fb::Layout &layout, Arena::Kind kind, uint32_t workers,
         uint32_t spins, size_t mostBindings)
        : device(std::move(on)), arena(device->allocate(layout, kind)), pool(workers, spins),
          bindings(mostBindings) {}
    std::unique_ptr<Device> device;
    Arena arena;
    WorkerPool pool;
    std::vector<void *> bindings; // room for a launch's pointers
    std::optional<Error> error;
    std::thread thread;
    std::unique_ptr<AsyncTransferWorker>
        transferWorker; // where a program has collectives on channels
    std::vector<std::byte>
        chunk; // of what goes between its file and a device that the host does not address
    std::vector<AsyncCopy> transfers; // by the number of a copy on a channel: what it moves
    std::unique_ptr<RankFile> file;   // where the layout has one
    std::unique_ptr<AsyncTransferWorker> fileWorker; // of copies of the file on channels
    uint32_t number = 0, heartbeat = 0; // the rank's; of its device, when it was read last
    RankRun run;                        // its current one
  };
  /// Tells observers that a run begins and, perhaps with an error, that its commands end.
  struct ObservedRun {
    ObservedRun(const RankGroup &group, const RankRun &run);
    ~ObservedRun();
    ObservedRun(const ObservedRun &) = delete;
    ObservedRun &operator=(const ObservedRun &) = delete;
    const RankGroup &group;
    const RankRun &run;
  };
  using Job = void (RankGroup::*)(uint32_t rank);

  Rank &rankState(uint32_t rank) const { return *rankStates[rank - first]; }

  void addTransferWorkers();
  std::vector<std::unique_ptr<Device>> makeDevices() const;
  void stop();
  void onEveryRank(Job job);
  void awaitRanks();
  [[noreturn]] void throwFirstError();
  void serve(uint32_t rank);

  void prepare(uint32_t rank);
  void numberStep(uint32_t rank);
  void execute(uint32_t rank);
  void executeRange(uint32_t rank, const Instruction *begin, const Instruction *end,
                    uint64_t iteration);
  bool isHostVisible(const Rank &rank, uint64_t offset) const;
  bool isOnStream(const Rank &rank, const Instruction &instruction) const;
  void finishDevice(Rank &rank);
  void finishDevices();
  static void resetHeartbeat(Rank &rank);
  void updateHeartbeat(Rank &rank);
  std::string deviceProgress(const Rank &rank) const;
  std::string progressReport() const;
  Error withDeviceProgress(const Rank &rank, const Error &reason) const;
  void beginRun(uint32_t rank);
  void executeRun(uint32_t rank);
  void start(Rank &rank, uint32_t index, const Instruction &instruction, uint64_t iteration);
  void executeOne(uint32_t rank, const Instruction &instruction, uint64_t iteration);
  void launch(Rank &rank, const fb::Launch &launch, uint64_t iteration, uint32_t index);
  void wait(Rank &rank, uint32_t index, const Instruction &instruction);
  bool needsHost(const Instruction &instruction) const;
  void checkRecordable(const DecodedProgram &step) const;
  void addRecording();
  void record();
  void recordRank(uint32_t rank);
  void replay(uint32_t rank);
  void runRecorded();
  static void perform(Rank &rank, const AsyncCopy &transfer);
  static void performInChunks(Rank &rank, const AsyncCopy &transfer);
  AsyncCopy copyOf(uint32_t index, const fb::Copy &copy, uint64_t iteration,
                   const char *label) const;
  void copy(uint32_t index, const Instruction &instruction, uint64_t iteration);
  void fill(uint32_t index, const fb::Slice &target, uint64_t iteration);
  AsyncTransferWorker *workerOf(const Rank &rank, TransferKind transferKind) const;
  void startCopy(uint32_t index, const Instruction &instruction, uint64_t iteration);
  uint64_t offsetOf(uint32_t rank, const fb::Slice &slice, uint64_t iteration) const;
  std::byte *at(uint32_t rank, const fb::Slice &slice, uint64_t iteration) const;
  void initialise(uint32_t rank, const fb::Initialise &initialise);

  std::shared_ptr<const Artifact> owned; // a rank that hangs is in its code
  const Artifact &artifact;
  Mesh mesh;
  const fb::Layout &layout;
  RankGroupOptions options;
  std::unique_ptr<Communicator> communicator;
  Watchdog &watchdog;
  uint32_t spins, first, numAsyncCopies = 0; // copies on channels, of all programs
  std::unordered_map<const fb::Program *, DecodedProgram> programs;
  std::vector<std::unique_ptr<Rank>> rankStates;
  std::unique_ptr<DeviceGraph> recording; // of 'step', where that was asked for
  uint64_t recordedBytes[4] = {};         // that it exchanges
  std::vector<std::shared_ptr<RankObserver>> observers;
  const std::vector<Instruction> *current = nullptr;
  const char *currentName = "";
  uint64_t currentRun = 0, peak = 0;
  Job job = nullptr;
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
