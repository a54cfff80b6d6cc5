//===- ShmBackend.cpp - Shared memory, for the conformance tests -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Registers a backend with one communicator per rank. Each communicator has its own mapping of the
// shared memory. The ranks are threads instead of processes, so that one process can check the
// results of all ranks. Also tests errors of ShmHost.
//
//===----------------------------------------------------------------------===//

#include "collectives/shm/Shm.h"
#include "collectives/shm/ShmHost.h"
#include "core/Agreement.h"
#include "test/collectives/RankThreads.h"
#include <gtest/gtest.h>
#include <thread>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
void host(ShmHost &host, std::atomic<bool> &over) {
  while (!over)
    host.serve(0.05);
}

class ShmBackend : public Backend {
public:
  const char *name() const override { return "shm"; }
  void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) override {
    meetAtHost(meeting, [&](uint32_t rank, int channel) {
      ShmCommunicator communicator(meeting.mesh, rank, channel, /*agreement=*/"",
                                   meeting.timeoutSeconds, /*spins=*/100);
      attendAlone(communicator, meeting, rank, /*sumsInOrder=*/true, body);
    });
  }
};
} // namespace

static RegisterBackend registered(std::make_unique<ShmBackend>());

/// Returns the error of a rendezvous in which rank 1 has the artifact `artifactOfRank1` and a
/// collective of `count` elements.
static std::string refusal(const char *artifactOfRank1, uint64_t count) {
  ShmHost block(2, 4);
  std::atomic<bool> over{false};
  std::thread serving([&] { host(block, over); });
  std::string told[2];
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      Agreement agreement;
      agreement.add("the mesh", "shard=2");
      agreement.add("the artifact", rank ? artifactOfRank1 : "07");
      try {
        ShmCommunicator communicator(Mesh({{"shard", 2}}), rank, block.takeEndOf(rank),
                                     agreement.text(), 20, 0);
        communicator.add({fb::CollectiveKind::all_gather,
                          fb::Reduction::sum,
                          DType::f32,
                          rank ? count : 5,
                          0,
                          {0},
                          1,
                          "",
                          ""});
        Arena arena(4096, Arena::Kind::shared);
        communicator.registerArena(rank, {arena.at(0), arena.mappedBytes(), arena.descriptor()});
        communicator.connect();
      } catch (const Error &error) {
        told[rank] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  over = true;
  serving.join();
  EXPECT_EQ(told[0], told[1]);
  return told[0];
}

TEST(ShmHost, RefusesOtherArtifactsBeforeMemory) {
  std::string told = refusal("08", 5);
  EXPECT_NE(told.find("the artifact is '07' on rank 0 and '08' on rank 1"), std::string::npos)
      << told;
}

TEST(ShmHost, RefusesOtherCollectives) {
  EXPECT_NE(refusal("07", 6).find("rank 1 has other collectives than rank 0"), std::string::npos);
  EXPECT_EQ(refusal("07", 5), "");
}

TEST(ShmHost, SaysWhoIsMissing) {
  ShmHost block(3, 1);
  Message hello;
  hello.kind = Message::hello;
  hello.rank = 1;
  Channel end(block.takeEndOf(1));
  ASSERT_TRUE(end.send(hello));
  block.serve(1);
  EXPECT_EQ(block.missing(), "0, 2");
  EXPECT_FALSE(block.areConnected());
}
