//===- NcclTest.cpp - Collectives over NCCL when something fails -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests failures with the NCCL stub (NcclStub.h), which injects errors and counts wrong calls.
// ConformanceTest.cpp tests successful runs.
//
//===----------------------------------------------------------------------===//

#include "collectives/nccl/Nccl.h"
#include "collectives/local/Local.h"
#include "device/Arena.h"
#include "device/cuda/CudaQueue.h"
#include "test/collectives/NcclStubControl.h"
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

using namespace fsdprt;
using fb::CollectiveKind;
using test::expectText;
using test::Stub;

namespace {
CollectiveKey keyOf(CollectiveKind kind, std::vector<uint32_t> axes = {0}, uint64_t count = 100) {
  return {kind, fb::Reduction::sum, DType::f32, count, 0, std::move(axes), 42, "h.0 gather", "h.0"};
}

/// Runs collectives on one thread per rank. After each test, no communicator of the stub may exist,
/// and no memory may be registered.
class Nccl : public testing::Test {
protected:
  void SetUp() override { Stub::reset(); }
  void TearDown() override {
    EXPECT_EQ(Stub::living(), 0u) << "communicators that were neither destroyed nor aborted";
    EXPECT_EQ(Stub::count("fsdprt_nccl_stub_pinned"), 0u);
    EXPECT_EQ(Stub::count("fsdprt_nccl_stub_registered"), 0u);
    Stub::reset();
  }

  struct Outcome {
    fsdprt_status status = FSDPRT_OK;
    std::string text;
  };

  static void meet(NcclCommunicator &communicator, std::vector<Outcome> &outcomes,
                   uint32_t rounds) {
    uint32_t ranks = communicator.ranks();
    std::vector<std::unique_ptr<Arena>> arenas;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      arenas.push_back(std::make_unique<Arena>(1 << 20));
      communicator.registerArena(rank, {arenas[rank]->at(0), arenas[rank]->mappedBytes()});
    }
    communicator.connect();
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        WorkerPool pool(1, 0);
        communicator.getWatchdog().beginRun(rank, "step", 7);
        try {
          for (uint32_t i = 0; i < rounds * communicator.numCollectives(); ++i) {
            uint32_t collective = i % static_cast<uint32_t>(communicator.numCollectives());
            communicator.getWatchdog().beat(rank, i, "h.0 mlp");
            communicator.start(collective, rank, arenas[rank]->at(0), arenas[rank]->at(65536));
            communicator.wait(collective, rank, pool);
          }
        } catch (const Abandoned &error) {
          outcomes[rank] = {FSDPRT_ABANDONED, error.what()};
        } catch (const Error &error) {
          outcomes[rank] = {error.status, error.what()};
          communicator.abort(FSDPRT_FAILED);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    communicator.releaseArenas();
  }

  /// Runs all collectives `rounds` times. Returns the errors of the ranks. If the set-up fails,
  /// returns the error of the set-up for all ranks.
  static std::vector<Outcome> run(const Mesh &mesh, const std::vector<CollectiveKey> &keys,
                                  double timeoutSeconds = 60, uint32_t rounds = 3) {
    std::vector<Outcome> outcomes(mesh.ranks());
    try {
      NcclCommunicator communicator(std::make_unique<LocalCommunicator>(mesh, timeoutSeconds, 100),
                                    100);
      for (const CollectiveKey &key : keys)
        communicator.add(key);
      meet(communicator, outcomes, rounds);
    } catch (const Error &error) {
      outcomes.assign(mesh.ranks(), {error.status, error.what()});
    }
    return outcomes;
  }

  /// Returns the first error that is not a consequence of another rank's error.
  static Outcome cause(const std::vector<Outcome> &outcomes) {
    for (const Outcome &outcome : outcomes)
      if (outcome.status != FSDPRT_OK && outcome.status != FSDPRT_ABANDONED)
        return outcome;
    return {};
  }

  /// Checks that each communicator was aborted once, and that the stub rejected no call.
  static void expectAllAborted() {
    EXPECT_EQ(Stub::calls("ncclCommAbort"), Stub::made());
    EXPECT_EQ(Stub::calls("ncclCommDestroy"), 0u);
    EXPECT_EQ(Stub::firstViolation(), "");
  }
};

const std::vector<CollectiveKey> gatherAndReduce = {keyOf(CollectiveKind::all_gather),
                                                    keyOf(CollectiveKind::reduce_scatter)};
} // namespace

TEST_F(Nccl, ACommunicatorForEachAxisAndChannel) {
  Mesh mesh({{"replicate", 2}, {"shard", 2}});
  std::vector<CollectiveKey> keys = {
      keyOf(CollectiveKind::all_gather, {1}), keyOf(CollectiveKind::reduce_scatter, {1}),
      keyOf(CollectiveKind::all_reduce, {0}), keyOf(CollectiveKind::all_gather, {1}),
      keyOf(CollectiveKind::all_reduce, {0, 1})};
  EXPECT_EQ(cause(run(mesh, keys)).text, "");
  EXPECT_EQ(Stub::made(), 4u * (1 + 4)); // each rank has one communicator of all ranks, and four
                                         // communicators of groups
  EXPECT_EQ(Stub::calls("ncclGetUniqueId"), 1u);
  EXPECT_EQ(Stub::calls("ncclCommDestroy"), Stub::made());
  EXPECT_EQ(Stub::calls("ncclCommAbort"), 0u);
  EXPECT_EQ(Stub::firstViolation(), "");
}

TEST_F(Nccl, ACommunicatorForEachGroupOfContextAndTensor) {
  Mesh mesh({{"shard", 4}, {"tensor", 2}}, {{0, 2}}, /*context=*/2);
  std::vector<CollectiveKey> keys = {
      keyOf(CollectiveKind::all_gather, {2}), keyOf(CollectiveKind::reduce_scatter, {2}),
      keyOf(CollectiveKind::all_reduce, {1}), keyOf(CollectiveKind::all_gather, {0})};
  EXPECT_EQ(cause(run(mesh, keys)).text, "");
  EXPECT_EQ(Stub::made(), 8u * (1 + 4));
  EXPECT_EQ(Stub::calls("ncclGetUniqueId"), 1u);
  EXPECT_EQ(Stub::calls("ncclCommAbort"), 0u);
  EXPECT_EQ(Stub::firstViolation(), "");
}

TEST_F(Nccl, OneLaunchIsOneGroup) {
  constexpr uint32_t ranks = 2, gathers = 3, rounds = 5, count = 100;
  NcclCommunicator communicator(
      std::make_unique<LocalCommunicator>(Mesh({{"shard", ranks}}), 60, 0), 0);
  std::vector<std::vector<float>> memory(ranks, std::vector<float>(gathers * count * (ranks + 1)));
  for (uint32_t i = 0; i < gathers; ++i)
    communicator.add(keyOf(CollectiveKind::all_gather, {0}, count));
  auto at = [&](uint32_t rank, size_t element) {
    return reinterpret_cast<std::byte *>(memory[rank].data() + element);
  };
  for (uint32_t rank = 0; rank < ranks; ++rank)
    communicator.registerArena(rank, {at(rank, 0), memory[rank].size() * sizeof(float)});
  communicator.connect();
  uint64_t groupsBefore = Stub::calls("ncclGroupStart");
  std::atomic<uint32_t> right{0};
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      WorkerPool pool(1, 0);
      for (uint32_t round = 0; round < rounds; ++round) {
        std::fill_n(memory[rank].begin(), gathers * count, static_cast<float>(10 * round + rank));
        for (uint32_t i = 0; i < gathers; ++i) {
          if (i + 1 < gathers)
            communicator.joinNext(rank);
          communicator.start(i, rank, at(rank, i * count), at(rank, (gathers + i * ranks) * count));
        }
        for (uint32_t i = 0; i < gathers; ++i) {
          communicator.wait(i, rank, pool);
          for (uint32_t from = 0; from < ranks; ++from)
            right += memory[rank][(gathers + i * ranks + from) * count + 7] ==
                     static_cast<float>(10 * round + from);
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, ranks * rounds * gathers * ranks);
  EXPECT_EQ(Stub::calls("ncclGroupStart") - groupsBefore, ranks * rounds);
  communicator.leave();
  EXPECT_EQ(Stub::firstViolation(), "");
}

/// If the arenas are on GPUs, a collective runs after earlier work and before later work of the
/// rank's compute stream, and the host does not wait for the collective.
TEST_F(Nccl, IsOrderedByTheQueuesOfGpus) {
  constexpr uint32_t ranks = 2, bytes = 400;
  CudaDriver cuda("a test", CudaDriver::Use::transfers);
  std::vector<std::unique_ptr<CudaQueue>> queues;
  std::vector<CudaPointer> arenas(ranks);
  Stub::set("late_rank", 1);
  Stub::set("late_ms", 100);
  {
    NcclCommunicator communicator(
        std::make_unique<LocalCommunicator>(Mesh({{"shard", ranks}}), 60, 0), 0, {},
        /*isOnDevice=*/true);
    EXPECT_TRUE(communicator.isOnDevice());
    communicator.add(keyOf(CollectiveKind::all_gather));
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      CudaContext context = nullptr;
      ASSERT_EQ(cuda.primaryContextRetain(&context, static_cast<int>(rank)), cudaOk);
      queues.push_back(std::make_unique<CudaQueue>(cuda, rank, context, nullptr));
      ASSERT_EQ(cuda.memAlloc(&arenas[rank], 65536), cudaOk);
      communicator.registerArena(
          rank, {reinterpret_cast<std::byte *>(arenas[rank]), 65536, -1, queues[rank].get()});
    }
    communicator.connect();
    std::atomic<uint32_t> early{0};
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        WorkerPool pool(1, 0);
        auto *arena = reinterpret_cast<std::byte *>(arenas[rank]);
        CudaStream compute = queues[rank]->stream(CudaQueue::compute);
        auto fill = [&](unsigned char value) {
          return cuda.memsetAsync(arenas[rank], value, bytes, compute);
        };
        for (uint32_t round = 0; round < 3; ++round) {
          queues[rank]->use();
          EXPECT_EQ(fill(static_cast<unsigned char>(10 * round + rank)), cudaOk);
          communicator.start(0, rank, arena, arena + 1024);
          communicator.wait(0, rank, pool);
          early += cuda.streamQuery(compute) == cudaNotReady;
          // A write to the source after the wait must not change the result.
          EXPECT_EQ(fill(99), cudaOk);
          queues[rank]->finish([] {});
          for (uint32_t from = 0; from < ranks; ++from)
            EXPECT_EQ(arena[1024 + from * bytes + 7], std::byte(10 * round + from));
          EXPECT_EQ(arena[7], std::byte(99));
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_GT(early, 0u) << "a wait has waited for the device";
    communicator.releaseArenas();
  }
  EXPECT_EQ(Stub::firstViolation(), "");
  queues.clear();
  for (CudaPointer arena : arenas)
    cuda.memFree(arena);
}

TEST_F(Nccl, RegistersMemoryOfTheDevice) {
  NcclCommunicator communicator(std::make_unique<LocalCommunicator>(Mesh({{"shard", 1}}), 60, 0),
                                0);
  communicator.add(keyOf(CollectiveKind::all_gather));
  CudaDriver cuda("backend 'nccl'", CudaDriver::Use::transfers);
  CudaPointer memory = 0;
  ASSERT_EQ(cuda.memAlloc(&memory, 65536), cudaOk);
  auto *arena = reinterpret_cast<std::byte *>(memory);
  communicator.registerArena(0, {arena, 65536});
  communicator.connect();
  EXPECT_EQ(Stub::count("fsdprt_nccl_stub_registered"), 1u);
  EXPECT_EQ(Stub::calls("cuMemHostRegister"), 0u);
  WorkerPool pool(1, 0);
  std::memset(arena, 3, 400);
  communicator.start(0, 0, arena, arena + 1024);
  communicator.wait(0, 0, pool);
  EXPECT_EQ(std::memcmp(arena, arena + 1024, 400), 0);
  communicator.releaseArenas();
  EXPECT_EQ(Stub::calls("ncclCommDeregister"), 1u);
  cuda.memFree(memory);
}

TEST_F(Nccl, RefusesMemoryThatTheDeviceCannotReach) {
  Stub::set("pin", 0);
  expectText(cause(run(Mesh({{"shard", 2}}), gatherAndReduce)), FSDPRT_BAD_INPUT,
             {"expected arenas of device 'cpu' in memory that CUDA device", "out of memory",
              "use another --backend"});
  expectAllAborted();
  Stub::reset();
  Stub::set("pin", 0);
  Stub::set("pageable", 1); // The device can access pageable memory.
  EXPECT_EQ(cause(run(Mesh({{"shard", 2}}), gatherAndReduce)).text, "");
}

TEST_F(Nccl, RefusesAnOldVersion) {
  Stub::set("version", 21705);
  expectText(cause(run(Mesh({{"shard", 2}}), gatherAndReduce)), FSDPRT_BAD_INPUT,
             {"expected NCCL 2.18.1 or later, found 2.17.5 in '", "set FSDPRT_NCCL_LIBRARY"});
}

TEST_F(Nccl, SaysThatALibraryIsMissing) {
  setenv("FSDPRT_NCCL_LIBRARY", "/none/libnccl.so.2", 1);
  expectText(cause(run(Mesh({{"shard", 2}}), gatherAndReduce)), FSDPRT_BAD_INPUT,
             {"backend 'nccl' needs NCCL: expected '/none/libnccl.so.2', found none",
              "set FSDPRT_NCCL_LIBRARY"});
  setenv("FSDPRT_NCCL_LIBRARY", FSDPRT_NCCL_STUB_LIBRARY, 1);
  setenv("FSDPRT_CUDA_LIBRARY", "/none/libcuda.so.1", 1);
  expectText(cause(run(Mesh({{"shard", 2}}), gatherAndReduce)), FSDPRT_BAD_INPUT,
             {"backend 'nccl' needs CUDA's driver: expected '/none/libcuda.so.1'",
              "set FSDPRT_CUDA_LIBRARY"});
  setenv("FSDPRT_CUDA_LIBRARY", FSDPRT_NCCL_STUB_LIBRARY, 1);
}

TEST_F(Nccl, NeedsADeviceForEachRank) {
  Stub::set("devices", 1);
  expectText(
      cause(run(Mesh({{"shard", 2}}), gatherAndReduce)), FSDPRT_BAD_INPUT,
      {"expected a CUDA device for each of 2 ranks, found 1", "NCCL_MULTI_RANK_GPU_ENABLE=1"});
  Stub::set("version", 22907);
  expectText(cause(run(Mesh({{"shard", 2}}), gatherAndReduce)), FSDPRT_BAD_INPUT,
             {"NCCL 2.30 does"});
  Stub::set("version", 23000);
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  EXPECT_EQ(cause(run(Mesh({{"shard", 2}}), gatherAndReduce)).text, "");
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
  Stub::set("devices", 0);
  expectText(cause(run(Mesh({{"shard", 1}}), gatherAndReduce)), FSDPRT_BAD_INPUT,
             {"expected at least one, found none"});
}

TEST_F(Nccl, SaysThatRanksCannotMeet) {
  Stub::set("init_error", ncclSystemError);
  Stub::set("init_error_rank", 1);
  expectText(cause(run(Mesh({{"shard", 3}}), gatherAndReduce)), FSDPRT_FAILED,
             {"cannot connect ranks over NCCL 2.30.7", "error 2, 'unhandled system error'",
              "no socket interface found"});
  expectAllAborted();
}

TEST_F(Nccl, DoesNotWaitForEverToMeet) {
  Stub::set("init_hang", 1);
  expectText(cause(run(Mesh({{"shard", 2}}), gatherAndReduce, /*timeoutSeconds=*/0.5)), FSDPRT_HUNG,
             {"cannot connect ranks over NCCL 2.30.7", "not all of 2 ranks did within 0.5 s"});
  expectAllAborted();
}

TEST_F(Nccl, ReportsAnErrorThatComesLater) {
  Stub::set("error", ncclRemoteError);
  Stub::set("error_rank", 1);
  Stub::set("error_at", 4);
  std::vector<Outcome> outcomes = run(Mesh({{"shard", 3}}), gatherAndReduce);
  expectText(outcomes[1], FSDPRT_LOST,
             {"rank 1 at collective 42 (reduce_scatter 'h.0 gather', unit 'h.0')",
              "error 6, 'remote process exited or there was a network error' (net: connection "
              "closed by peer)"});
  EXPECT_EQ(outcomes[0].status, FSDPRT_ABANDONED) << outcomes[0].text;
  EXPECT_EQ(outcomes[2].status, FSDPRT_ABANDONED) << outcomes[2].text;
  expectAllAborted();
}

TEST_F(Nccl, NamesACollectiveThatDoesNotEnd) {
  Stub::set("hang_at", 3);
  Outcome first = cause(run(Mesh({{"shard", 2}}), gatherAndReduce, /*timeoutSeconds=*/1));
  expectText(first, FSDPRT_HUNG,
             {"waited 1 s at collective 42 (all_gather 'h.0 gather', unit 'h.0')",
              "all its ranks have started and NCCL 2.30.7", "has not completed: rank ",
              "last seen in step 7 at command 2, 'h.0 mlp'"});
  expectAllAborted();
}

TEST_F(Nccl, WaitsForALateRank) {
  Stub::set("late_rank", 1);
  Stub::set("late_ms", 150);
  EXPECT_EQ(cause(run(Mesh({{"shard", 2}}), gatherAndReduce, 60, 1)).text, "");
  EXPECT_EQ(Stub::calls("ncclCommAbort"), 0u);
  EXPECT_EQ(Stub::firstViolation(), "");
}

/// Calls the stub directly, because collectives of a Communicator never differ between ranks.
TEST_F(Nccl, StandInSeesSizesThatDiffer) {
  NcclLibrary nccl;
  CudaDriver cuda("backend 'nccl'", CudaDriver::Use::transfers);
  NcclId id;
  ASSERT_EQ(nccl.getUniqueId(&id), ncclOk);
  NcclRank a(nccl, cuda, 0, 1), b(nccl, cuda, 1, 1);
  auto settle = [&] {
    for (int i = 0; i < 100 && (!a.isSettled() || !b.isSettled());)
      ++i;
    ASSERT_TRUE(a.isSettled() && b.isSettled());
  };
  a.joinAll(id, 2, 0, NcclConfig());
  b.joinAll(id, 2, 1, NcclConfig());
  settle();
  a.joinLane(0, 0, 0);
  b.joinLane(0, 0, 1);
  settle();
  Arena arenas[2] = {Arena(65536), Arena(65536)};
  NcclCall call = {CollectiveKind::all_gather, ncclF32, ncclSum, 100, 0, 0};
  a.adopt({arenas[0].at(0), 65536});
  b.adopt({arenas[1].at(0), 65536});
  a.prepare({call}, {false});
  call.count = 99;
  b.prepare({call}, {false});
  a.begin(0, arenas[0].at(0), arenas[0].at(1024));
  b.begin(0, arenas[1].at(0), arenas[1].at(1024));
  std::string text;
  try {
    for (int i = 0; i < 100 && !a.isComplete(0); ++i)
      b.check();
  } catch (const NcclFailure &error) {
    text = error.what();
  }
  EXPECT_NE(
      text.find("rank 0 has ncclAllGather(100, type 7, op 0, root 0), rank 1 ncclAllGather(99, "),
      std::string::npos)
      << text;
}
