//===- AsyncTransferWorkerTest.cpp - Collectives beside compute -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "collectives/local/Local.h"
#include "execute/CollectiveWorker.h"
#include "execute/Profile.h"
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

using namespace fsdprt;

namespace {

constexpr uint32_t count = 1000;

/// The ranks of one process. Each rank has memory for `collectives` gathers of `count` floats.
struct Meeting {
  Meeting(uint32_t ranks, uint32_t collectives, double timeoutSeconds, double bytesPerSecond = 0)
      : communicator(Mesh({{"a", ranks}}, {}), timeoutSeconds, 0), memory(ranks) {
    for (uint32_t i = 0; i < collectives; ++i)
      communicator.add({fb::CollectiveKind::all_gather,
                        fb::Reduction::sum,
                        DType::f32,
                        count,
                        0,
                        {0},
                        i,
                        "gather",
                        "u"});
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      memory[rank].resize(collectives * count * (ranks + 1));
      communicator.registerArena(rank,
                                 {bytes(memory[rank].data()), memory[rank].size() * sizeof(float)});
    }
    communicator.connect();
    for (uint32_t rank = 0; rank < ranks; ++rank)
      workers.push_back(makeCollectiveWorker(communicator, rank, bytesPerSecond));
  }
  static std::byte *bytes(float *at) { return reinterpret_cast<std::byte *>(at); }
  float *target(uint32_t rank, uint32_t i) {
    return memory[rank].data() + i * count * (memory.size() + 1);
  }
  float *source(uint32_t rank, uint32_t i) { return target(rank, i) + count * memory.size(); }

  void start(uint32_t rank, uint32_t i, float value) {
    std::fill(source(rank, i), source(rank, i) + count, value);
    communicator.start(i, rank, bytes(source(rank, i)), bytes(target(rank, i)));
    workers[rank]->post(i);
  }
  bool isWhole(uint32_t rank, uint32_t i, float value) {
    bool whole = true;
    for (uint32_t from = 0; from < memory.size(); ++from)
      for (uint32_t k = 0; k < count; ++k)
        whole &= target(rank, i)[from * count + k] == value + from;
    return whole;
  }

  LocalCommunicator communicator;
  std::vector<std::vector<float>> memory;
  std::vector<std::unique_ptr<AsyncTransferWorker>> workers;
};

template <typename Body>
void onRanks(uint32_t ranks, Body body) {
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { body(rank); });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace

TEST(AsyncTransferWorker, ManyInFlightInAnyOrderOfWaits) {
  Meeting meeting(3, 8, 60);
  std::atomic<uint32_t> right{0};
  onRanks(3, [&](uint32_t rank) {
    for (uint32_t round = 0; round < 20; ++round) {
      for (uint32_t i = 0; i < 8; ++i)
        meeting.start(rank, i, static_cast<float>(100 * round + 10 * i + rank));
      for (uint32_t k = 0; k < 8; ++k) {
        uint32_t i = (k * 5 + rank) % 8;
        meeting.workers[rank]->await(i);
        right += meeting.isWhole(rank, i, static_cast<float>(100 * round + 10 * i));
      }
    }
  });
  EXPECT_EQ(right, 3u * 20 * 8);
}

TEST(AsyncTransferWorker, MovesWhileItsRankDoesSomethingElse) {
  Meeting meeting(2, 1, 60);
  onRanks(2, [&](uint32_t rank) {
    meeting.start(rank, 0, static_cast<float>(rank));
    // The gather ends although no rank waits for it.
    while (!meeting.workers[rank]->isDone(0))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(meeting.isWhole(rank, 0, 0));
    meeting.workers[rank]->await(0);
  });
}

TEST(AsyncTransferWorker, TakesAsLongAsItsLinksWould) {
  // Each of the two gathers sends 4000 bytes per rank, which takes 40 ms at 100 kB/s.
  Meeting meeting(2, 2, 60, 100e3);
  EXPECT_EQ(meeting.communicator.wireBytes(0), 4000u);
  onRanks(2, [&](uint32_t rank) {
    uint64_t begin = Profile::now();
    meeting.start(rank, 0, 0);
    meeting.start(rank, 1, 0);
    meeting.workers[rank]->await(1);
    EXPECT_GE(Profile::now() - begin, 80'000'000u);
    AsyncTransferWorker::Span first = meeting.workers[rank]->span(0),
                              second = meeting.workers[rank]->span(1);
    EXPECT_GE(first.end - first.begin, 40'000'000u);
    EXPECT_GE(second.begin, first.end);
  });
}

TEST(AsyncTransferWorker, FailsWhereItsRankWaits) {
  Meeting meeting(2, 2, 0.2);
  meeting.start(0, 0, 0);
  meeting.start(0, 1, 0);
  for (uint32_t i : {0u, 1u, 0u})
    try {
      meeting.workers[0]->await(i);
      FAIL() << "expected an error";
    } catch (const Error &error) {
      EXPECT_EQ(error.status, FSDPRT_HUNG);
      EXPECT_NE(std::string(error.what()).find("collective 0 (all_gather 'gather', unit 'u')"),
                std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
    }
}

TEST(AsyncTransferWorker, CarriesWhateverItIsGivenInOrder) {
  std::vector<uint32_t> carried;
  AsyncTransferWorker transferWorker(3, [&](uint32_t transfer) {
    if (transfer == 2)
      throw Error(FSDPRT_FAILED, "no room");
    carried.push_back(transfer);
  });
  for (uint32_t transfer : {1u, 0u})
    transferWorker.post(transfer);
  transferWorker.await(0);
  EXPECT_EQ(carried, (std::vector<uint32_t>{1, 0}));
  transferWorker.post(2);
  transferWorker.post(1); // Transfer 2 has failed, so that no later transfer runs.
  for (uint32_t transfer : {2u, 1u})
    try {
      transferWorker.await(transfer);
      FAIL() << "expected an error";
    } catch (const Error &error) {
      EXPECT_STREQ(error.what(), "no room");
    }
  EXPECT_EQ(carried.size(), 2u);
}

TEST(AsyncTransferWorker, EndsWithWhatNobodyAwaits) {
  Meeting meeting(2, 1, 60);
  meeting.start(0, 0, 0);
  // If abort() did not end the collective, the worker would wait 60 s for rank 1.
  meeting.communicator.abort(FSDPRT_FAILED);
}
