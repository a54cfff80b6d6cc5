//===- NcclWindowsTest.cpp - Arenas as windows of NCCL ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests arenas on GPUs with the NCCL stub (NcclStub.h), with and without windows, and the checks of
// windows in the stub.
//
//===----------------------------------------------------------------------===//

#include "collectives/local/Local.h"
#include "collectives/nccl/Nccl.h"
#include "device/cuda/CudaQueue.h"
#include "test/collectives/NcclStubControl.h"
#include <climits>
#include <gtest/gtest.h>
#include <thread>

using namespace fsdprt;
using fb::CollectiveKind;
using test::expectText;
using test::Stub;
using Windows = NcclSettings::Windows;

namespace {
constexpr uint32_t ranks = 2, count = 100;
constexpr uint64_t arenaBytes = 65536;

CollectiveKey keyOf(CollectiveKind kind, bool isPiece = false) {
  return {kind, fb::Reduction::sum, DType::f32, count, 0, {0}, 42, "h.0 gather", "h.0", isPiece};
}
const std::vector<CollectiveKey> gatherAndReduce = {keyOf(CollectiveKind::all_gather),
                                                    keyOf(CollectiveKind::reduce_scatter)};

NcclSettings settingsOf(Windows windows) {
  NcclSettings settings;
  settings.windows = windows;
  return settings;
}

/// Two ranks with arenas on GPUs. After each test, no communicator, window or allocation may exist.
class NcclWindowsOnGpus : public testing::Test {
protected:
  void SetUp() override { Stub::reset(); }
  void TearDown() override {
    for (const char *name : {"living", "registered", "windows", "allocated"})
      EXPECT_EQ(Stub::count(("fsdprt_nccl_stub_" + std::string(name)).c_str()), 0u) << name;
    EXPECT_EQ(Stub::firstViolation(), violation);
    Stub::reset();
  }
  static uint64_t windows() { return Stub::count("fsdprt_nccl_stub_windows"); }

  struct Outcome {
    fsdprt_status status = FSDPRT_OK;
    std::string text; ///< of the error, or of the communicator
    uint64_t windows = 0, registered = 0;
  };

  /// Runs the collectives once and checks their results. `lastBytes` is the size of the last rank's
  /// arena.
  Outcome run(const std::vector<CollectiveKey> &keys, const NcclSettings &settings,
              uint64_t lastBytes = arenaBytes, bool drops = false) {
    CudaDriver cuda("a test", CudaDriver::Use::transfers);
    std::vector<std::unique_ptr<CudaQueue>> queues;
    std::vector<std::byte *> arenas;
    Outcome outcome;
    try {
      NcclCommunicator communicator(
          std::make_unique<LocalCommunicator>(Mesh({{"shard", ranks}}), 60, 0), 0, {},
          /*isOnDevice=*/true, settings);
      DeviceAllocator *allocator = communicator.arenaAllocator();
      for (const CollectiveKey &key : keys)
        communicator.add(key);
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        CudaContext context = nullptr;
        cuda.primaryContextRetain(&context, static_cast<int>(rank));
        queues.push_back(std::make_unique<CudaQueue>(cuda, rank, context, nullptr));
        queues[rank]->use();
        CudaPointer memory = 0;
        std::byte *own = allocator ? allocator->allocate(arenaBytes) : nullptr;
        isOwn.push_back(own != nullptr);
        if (!own)
          cuda.memAlloc(&memory, arenaBytes);
        arenas.push_back(own ? own : reinterpret_cast<std::byte *>(memory));
        communicator.registerArena(rank, {arenas[rank], rank + 1 < ranks ? arenaBytes : lastBytes,
                                          -1, queues[rank].get()});
      }
      try {
        communicator.connect();
        outcome = {FSDPRT_OK, communicator.text(), windows(),
                   Stub::count("fsdprt_nccl_stub_registered")};
        if (drops)
          communicator.dropContribution(1, 1);
        expectResults(communicator, arenas, queues);
      } catch (const Error &error) {
        outcome.status = error.status;
        outcome.text = error.what();
      }
      communicator.releaseArenas();
      queues.clear();
      for (uint32_t rank = 0; rank < arenas.size(); ++rank)
        if (isOwn[rank])
          allocator->release(arenas[rank]);
        else
          cuda.memFree(reinterpret_cast<CudaPointer>(arenas[rank]));
    } catch (const Error &error) {
      outcome.status = error.status;
      outcome.text = error.what();
    }
    isOwn.clear();
    return outcome;
  }

  static void expectResults(NcclCommunicator &communicator, const std::vector<std::byte *> &arenas,
                            std::vector<std::unique_ptr<CudaQueue>> &queues) {
    std::vector<std::thread> threads;
    std::vector<std::string> problems(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        WorkerPool pool(1, 0);
        auto *source = reinterpret_cast<float *>(arenas[rank]), *target = source + ranks * count;
        std::fill_n(source, ranks * count, static_cast<float>(rank + 1));
        try {
          for (uint32_t i = 0; i < communicator.numCollectives(); ++i) {
            queues[rank]->use();
            communicator.start(i, rank, arenas[rank], arenas[rank] + ranks * count * sizeof(float));
            communicator.wait(i, rank, pool);
            queues[rank]->finish([&] {
              if (communicator.getWatchdog().hasFailed())
                throw Abandoned();
            });
            bool gathers = communicator.getKey(i).kind == CollectiveKind::all_gather;
            EXPECT_EQ(target[0], gathers ? 1 : 3);
            EXPECT_EQ(target[count - 1], gathers ? 1 : 3);
            if (gathers)
              EXPECT_EQ(target[count], 2);
          }
        } catch (const Abandoned &) {
          // Another rank has failed.
        } catch (const Error &error) {
          problems[rank] = error.what();
          communicator.abort(FSDPRT_FAILED);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    for (const std::string &problem : problems)
      if (!problem.empty())
        failed("%s", problem.c_str());
  }

  std::string violation; ///< expected first violation
  std::vector<bool> isOwn;
};
} // namespace

TEST_F(NcclWindowsOnGpus, AWindowForEachRankAndLane) {
  Outcome outcome = run(gatherAndReduce, {});
  expectText(outcome, FSDPRT_OK, {"NCCL 2.30.7", "; arenas are symmetric windows"});
  EXPECT_EQ(outcome.windows, 2 * ranks);
  EXPECT_EQ(outcome.registered, 0u);
  EXPECT_EQ(Stub::calls("ncclCommWindowDeregister"), 2 * ranks);
  EXPECT_EQ(Stub::calls("ncclCommDestroy"), Stub::made());
}

TEST_F(NcclWindowsOnGpus, NoWindowForALaneWithPieces) {
  Outcome outcome = run({keyOf(CollectiveKind::all_gather), keyOf(CollectiveKind::all_gather, true),
                         keyOf(CollectiveKind::reduce_scatter)},
                        {});
  expectText(outcome, FSDPRT_OK, {"; arenas are symmetric windows"});
  EXPECT_EQ(outcome.windows, ranks);
  EXPECT_EQ(outcome.registered, ranks);
}

TEST_F(NcclWindowsOnGpus, GoesOnWithoutWindowsAndSaysWhy) {
  struct Case {
    const char *name;
    int64_t value;
    const char *reason;
  };
  for (const Case &each :
       {Case{"version", 22605, "NCCL 2.27.0 and later has them"},
        Case{"windows", 0, "NCCL made none"}, Case{"window_fails_on", 1, "NCCL made none"},
        Case{"window_error", ncclInvalidArgument, "error 4"},
        Case{"window_error", ncclInvalidUsage, "error 5"},
        Case{"alloc_error", ncclUnhandledCudaError, "ncclMemAlloc: NCCL"}}) {
    Stub::reset();
    Stub::set(each.name, each.value);
    Outcome outcome = run(gatherAndReduce, {});
    expectText(outcome, FSDPRT_OK, {"; arenas are not symmetric windows: ", each.reason});
    EXPECT_EQ(outcome.windows, 0u) << each.name;
    EXPECT_EQ(outcome.registered, 2 * ranks) << each.name;
    EXPECT_EQ(Stub::firstViolation(), "");
    expectText(run(gatherAndReduce, settingsOf(Windows::on)), FSDPRT_BAD_INPUT,
               {"--nccl-windows=on: cannot register arenas as windows of NCCL 2.", each.reason});
    Outcome off = run(gatherAndReduce, settingsOf(Windows::off));
    EXPECT_EQ(off.text.find("windows"), std::string::npos) << off.text;
    EXPECT_EQ(off.registered, 2 * ranks) << each.name;
  }
}

TEST_F(NcclWindowsOnGpus, GoesOnWithoutTheFunctions) {
  NcclLibrary nccl;
  EXPECT_TRUE(NcclWindows(nccl, {}, true).areWanted());
  EXPECT_FALSE(NcclWindows(nccl, {}, false).areWanted());
  nccl.windowRegister = nullptr;
  NcclWindows windows(nccl, {}, true);
  EXPECT_FALSE(windows.areWanted());
  EXPECT_NE(windows.describe().find("the library has no ncclCommWindowRegister"),
            std::string::npos);
}

TEST_F(NcclWindowsOnGpus, RefusesArenasOfDifferentSizes) {
  Outcome outcome = run(gatherAndReduce, {}, arenaBytes / 2);
  expectText(outcome, FSDPRT_OK,
             {"expected arenas of one size, found 64.0 KiB (65,536 bytes) on rank 0 and 32.0 KiB "
              "(32,768 bytes) on rank 1"});
  EXPECT_EQ(outcome.windows, 0u);
  expectText(run(gatherAndReduce, settingsOf(Windows::on), arenaBytes / 2), FSDPRT_BAD_INPUT,
             {"expected arenas of one size"});
}

TEST_F(NcclWindowsOnGpus, AnotherErrorEndsTheRun) {
  Stub::set("window_error", ncclSystemError);
  expectText(run(gatherAndReduce, {}), FSDPRT_FAILED,
             {"cannot register arenas as windows over NCCL 2.30.7", "error 2",
              "--nccl-windows=off does without them"});
  EXPECT_EQ(Stub::calls("ncclCommAbort"), Stub::made());
}

TEST_F(NcclWindowsOnGpus, RefusesAFaultOutsideOfTheWindow) {
  expectText(run(gatherAndReduce, {}, arenaBytes, /*drops=*/true), FSDPRT_FAILED,
             {"memory outside of the arena, which is a window; run with --nccl-windows=off"});
}

TEST_F(NcclWindowsOnGpus, PolicyAndBudgetReachNccl) {
  auto config = [](const char *member) {
    return Stub::function<decltype(fsdprt_nccl_stub_config)>("fsdprt_nccl_stub_config")(member);
  };
  run(gatherAndReduce, {});
  EXPECT_EQ(config("maxCTAs"), INT_MIN);
  EXPECT_EQ(config("CTAPolicy"), INT_MIN);
  NcclSettings settings;
  settings.ctaPolicy = ncclPolicyZero;
  settings.maxCTAs = 8;
  expectText(run(gatherAndReduce, settings), FSDPRT_OK, {"; arenas are symmetric windows"});
  EXPECT_EQ(config("maxCTAs"), 8);
  EXPECT_EQ(config("CTAPolicy"), 2);
  Stub::set("windows", 0);
  expectText(run(gatherAndReduce, settings), FSDPRT_OK,
             {"; --nccl-cta-policy=zero needs them, so kernels move all data"});
  Stub::reset();
  Stub::set("version", 22707);
  expectText(run(gatherAndReduce, settings), FSDPRT_BAD_INPUT,
             {"--nccl-cta-policy=zero: expected NCCL 2.28.0 or later, found NCCL 2.27.7"});
  settings.ctaPolicy = ncclPolicyEfficiency;
  expectText(run(gatherAndReduce, settings), FSDPRT_OK, {});
  EXPECT_EQ(config("CTAPolicy"), 1);
  Stub::set("version", 22605);
  expectText(run(gatherAndReduce, settings), FSDPRT_BAD_INPUT,
             {"--nccl-cta-policy=efficiency: expected NCCL 2.27.0 or later, found NCCL 2.26.5"});
}

/// Calls the stub directly, because a Communicator never makes these mistakes.
class WindowFaults : public NcclWindowsOnGpus {
protected:
  void SetUp() override {
    Stub::reset();
    NcclId id;
    ASSERT_EQ(nccl.getUniqueId(&id), ncclOk);
    for (int i = 0; i < 2; ++i) {
      own.push_back(std::make_unique<NcclRank>(nccl, cuda, i, 1));
      own[i]->useDevice();
      ASSERT_EQ(nccl.memAlloc(&arenas[i], arenaBytes), ncclOk);
      own[i]->joinAll(id, 2, static_cast<uint32_t>(i), NcclConfig());
    }
    settle();
    for (uint32_t i = 0; i < 2; ++i)
      own[i]->joinLane(0, 0, i);
    settle();
  }
  void TearDown() override {
    for (auto &each : own)
      each->abort();
    own.clear();
    for (void *arena : arenas)
      nccl.memFree(arena);
    NcclWindowsOnGpus::TearDown();
  }
  void settle() {
    bool first = false, second = false;
    for (int i = 0; i < 100 && !(first && second); ++i) {
      first = own[0]->isSettled();
      second = own[1]->isSettled();
    }
    ASSERT_TRUE(own[0]->isSettled() && own[1]->isSettled());
  }
  ArenaMemory memory(int rank) { return {static_cast<std::byte *>(arenas[rank]), arenaBytes}; }
  void makeWindows() {
    for (int i = 0; i < 2; ++i)
      ASSERT_EQ(own[i]->registerWindow(0, memory(i)), ncclOk);
    settle();
    ASSERT_EQ(windows(), 2u);
  }
  /// Gathers `count` elements on both ranks at these offsets, and returns the error.
  std::string gather(size_t first, size_t second) {
    for (int i = 0; i < 2; ++i) {
      own[i]->adopt(memory(i));
      own[i]->prepare({{CollectiveKind::all_gather, ncclF32, ncclSum, count, 0, 0}}, {false});
      own[i]->begin(0, memory(i).base + (i ? second : first), memory(i).base + 4096);
    }
    try {
      for (int i = 0; i < 100 && !own[0]->isComplete(0); ++i)
        own[1]->check();
    } catch (const NcclFailure &error) {
      return error.what();
    }
    return "";
  }

  NcclLibrary nccl;
  CudaDriver cuda{"a test", CudaDriver::Use::transfers};
  std::vector<std::unique_ptr<NcclRank>> own;
  void *arenas[2] = {};
};

TEST_F(WindowFaults, EqualOffsetsAreRight) {
  makeWindows();
  EXPECT_EQ(gather(0, 0), "");
}

TEST_F(WindowFaults, OffsetsThatDiffer) {
  makeWindows();
  violation = "collectives differ: rank 0 has ncclAllGather(100, type 7, op 0, root 0, offsets 0 "
              "and 4096), rank 1 ncclAllGather(100, type 7, op 0, root 0, offsets 1024 and 4096)";
  EXPECT_NE(gather(0, 1024).find("collectives differ"), std::string::npos);
}

TEST_F(WindowFaults, ABufferOutsideOfTheWindow) {
  makeWindows();
  void *other = nullptr;
  own[0]->useDevice();
  ASSERT_EQ(nccl.memAlloc(&other, arenaBytes), ncclOk);
  violation = "ncclAllGather: the source or the target is outside of the windows of the "
              "communicator";
  size_t far = static_cast<std::byte *>(other) - memory(0).base;
  EXPECT_NE(gather(far, 0).find("outside of the windows"), std::string::npos);
  own[0]->abort();
  own[1]->abort();
  nccl.memFree(other);
}

TEST_F(WindowFaults, RegisteredTwice) {
  makeWindows();
  violation = "ncclCommWindowRegister: the memory is in a window of this communicator already";
  EXPECT_EQ(own[0]->registerWindow(0, memory(0)), ncclInvalidUsage);
}

TEST_F(WindowFaults, MemoryOfTheDriver) {
  CudaPointer memory = 0;
  own[0]->useDevice();
  cuda.memAlloc(&memory, arenaBytes);
  violation = "ncclCommWindowRegister: expected memory of ncclMemAlloc";
  EXPECT_EQ(own[0]->registerWindow(0, {reinterpret_cast<std::byte *>(memory), arenaBytes}),
            ncclInvalidUsage);
  cuda.memFree(memory);
}

TEST_F(WindowFaults, UnalignedMemory) {
  violation = "ncclCommWindowRegister: expected memory at a multiple of 4096 bytes";
  EXPECT_EQ(own[0]->registerWindow(0, {memory(0).base + 256, 4096}), ncclInvalidUsage);
}

TEST_F(WindowFaults, SizesThatDiffer) {
  violation = "ncclCommWindowRegister: the sizes of members differ";
  EXPECT_EQ(own[0]->registerWindow(0, memory(0)), ncclOk);
  EXPECT_EQ(own[1]->registerWindow(0, {memory(1).base, arenaBytes / 2}), ncclOk);
  settle();
}

TEST_F(WindowFaults, MemoryFreedBeforeItsWindow) {
  makeWindows();
  violation = "ncclMemFree: windows still exist";
  EXPECT_EQ(nccl.memFree(arenas[0]), ncclInvalidUsage);
  arenas[0] = nullptr;
}

/// A communicator of one rank, on which each call completes at once or after a few polls.
class WindowOfOneRank : public WindowFaults {
protected:
  void SetUp() override {
    WindowFaults::SetUp();
    NcclId id;
    NcclConfig config;
    ASSERT_EQ(nccl.getUniqueId(&id), ncclOk);
    own[0]->useDevice();
    nccl.commInitRankConfig(&comm, 1, id, 0, &config);
    poll();
    nccl.windowRegister(comm, arenas[0], arenaBytes, &window, ncclWindowSymmetric);
    poll();
    ASSERT_NE(window, nullptr);
  }
  void TearDown() override {
    nccl.commAbort(comm);
    WindowFaults::TearDown();
  }
  void poll() const {
    NcclResult state = ncclInProgress;
    for (int i = 0; i < 10 && state == ncclInProgress; ++i)
      nccl.commGetAsyncError(comm, &state);
    EXPECT_EQ(state, ncclOk);
  }
  NcclComm comm = nullptr;
  NcclWindow window = nullptr;
};

TEST_F(WindowOfOneRank, NotDeregistered) {
  violation = "ncclCommFinalize: a window has not been deregistered";
  EXPECT_EQ(nccl.commFinalize(comm), ncclInvalidUsage);
}

TEST_F(WindowOfOneRank, DeregisteredTwice) {
  EXPECT_EQ(nccl.windowDeregister(comm, window), ncclOk);
  violation = "ncclCommWindowDeregister: expected a window of this communicator";
  EXPECT_EQ(nccl.windowDeregister(comm, window), ncclInvalidUsage);
}

TEST_F(WindowFaults, FreedByTheDriver) {
  violation = "cuMemFree: expected ncclMemFree for memory of ncclMemAlloc";
  own[0]->useDevice();
  cuda.memFree(reinterpret_cast<CudaPointer>(arenas[0]));
}
