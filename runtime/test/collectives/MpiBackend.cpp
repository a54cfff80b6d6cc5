//===- MpiBackend.cpp - MPI, for the conformance tests -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// mpirun starts N processes of this program. Each process is a rank and runs the same tests in the
// same order. Tests whose meshes do not have N ranks are skipped. This file also tests what only
// this backend has: sums that the MPI library computes, and a rendezvous over MPI that fails.
//
//===----------------------------------------------------------------------===//

#include "collectives/mpi/Mpi.h"
#include "collectives/nccl/Nccl.h"
#include "core/Agreement.h"
#include "test/collectives/RankThreads.h"
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

using namespace fsdprt;
using namespace fsdprt::test;

static constexpr double meetingSeconds = 120;

static std::unique_ptr<MpiCommunicator> join(const Meeting &meeting, MpiReduce reduce) {
  return std::make_unique<MpiCommunicator>(meeting.mesh, MpiLibrary::get(meetingSeconds).rank(),
                                           reduce, "", meeting.timeoutSeconds, meetingSeconds, 3);
}

static void attend(const Meeting &meeting, Communicator &communicator,
                   const std::function<void(Attendee &)> &body) {
  attendAlone(communicator, meeting, communicator.firstRank(), /*sumsInOrder=*/true, body);
  if (!communicator.getWatchdog().hasFailed())
    communicator.leave();
}

namespace {
class MpiBackend : public Backend {
public:
  const char *name() const override { return "mpi"; }
  bool isOneProcess() const override { return false; }
  bool canMeet(uint32_t ranks) const override {
    return MpiLibrary::get(meetingSeconds).size() == ranks;
  }
  void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) override {
    attend(meeting, *join(meeting, MpiReduce::ordered), body);
  }
};
} // namespace

static RegisterBackend registered(std::make_unique<MpiBackend>());

#ifdef FSDPRT_NCCL_STUB_LIBRARY
static const int paths = setenv("FSDPRT_NCCL_LIBRARY", FSDPRT_NCCL_STUB_LIBRARY, 1) |
                         setenv("FSDPRT_CUDA_LIBRARY", FSDPRT_NCCL_STUB_LIBRARY, 1);

namespace {
/// A backend that uses NCCL, or the NCCL stub, between processes that MPI connects.
class NcclOverMpi final : public MpiBackend {
public:
  const char *name() const override { return "nccl_over_mpi"; }
  void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) override {
    NcclCommunicator communicator(join(meeting, MpiReduce::ordered), /*spins=*/100);
    attend(meeting, communicator, body);
  }
};
} // namespace

static RegisterBackend overNccl(std::make_unique<NcclOverMpi>());
#endif

static uint32_t processes() { return MpiLibrary::get(meetingSeconds).size(); }

/// Checks sums that the MPI library computes. The summands are whole numbers, so that their sum is
/// exact in any order.
template <typename Float>
static void checkLibrarySums(fb::CollectiveKind kind, DType type, fb::Reduction reduction,
                             bool inPlace) {
  constexpr uint64_t count = 5003;
  uint32_t ranks = processes(), sent = kind == fb::CollectiveKind::reduce_scatter ? ranks : 1;
  Meeting meeting{Mesh({{"shard", ranks}}), {{kind, reduction, type, count, 0, {0}, 1, "", ""}}};
  attend(meeting, *join(meeting, MpiReduce::library), [&](Attendee &at) {
    auto *target = reinterpret_cast<Float *>(at.arena.at(0)),
         *source = inPlace ? target : target + count;
    for (int round = 0; round < 2; ++round) {
      for (uint64_t i = 0; i < count * sent; ++i)
        source[i] = static_cast<Float>(i % 1000 + at.rank * 7);
      at.communicator.start(0, at.rank, at.arena.at(inPlace ? 0 : count * sizeof(Float)),
                            at.arena.at(0));
      at.communicator.wait(0, at.rank, at.pool);
      uint64_t first = sent > 1 ? at.rank * count : 0, wrong = 0;
      for (uint64_t i = 0; i < count; ++i) {
        Float sum = static_cast<Float>(ranks * ((first + i) % 1000) + ranks * (ranks - 1) / 2 * 7);
        Float expected =
            reduction == fb::Reduction::avg ? sum * (Float(1) / static_cast<Float>(ranks)) : sum;
        wrong += target[i] != expected;
      }
      EXPECT_EQ(wrong, 0u) << "rank " << at.rank;
    }
  });
}

TEST(Mpi, TheLibrarysOwnSums) {
  for (fb::Reduction reduction : {fb::Reduction::sum, fb::Reduction::avg}) {
    for (fb::CollectiveKind kind :
         {fb::CollectiveKind::reduce_scatter, fb::CollectiveKind::all_reduce}) {
      checkLibrarySums<float>(kind, DType::f32, reduction, false);
      checkLibrarySums<double>(kind, DType::f64, reduction, false);
    }
    checkLibrarySums<float>(fb::CollectiveKind::all_reduce, DType::f32, reduction, true);
  }
}

/// Returns the error of this rank in a rendezvous in which the ranks do not agree: the value of
/// `name` is `last` on the last rank, and `usual` on all other ranks.
static std::string disagreement(const std::string &name, const std::string &usual,
                                const std::string &last) {
  uint32_t ranks = processes();
  Agreement agreement;
  agreement.add("version", "1");
  agreement.add(name, MpiLibrary::get(meetingSeconds).rank() + 1 == ranks ? last : usual);
  try {
    MpiCommunicator communicator(Mesh({{"shard", ranks}}), MpiLibrary::get(meetingSeconds).rank(),
                                 MpiReduce::ordered, agreement.text(), 60, meetingSeconds, 3);
    communicator.leave();
  } catch (const Error &error) {
    EXPECT_EQ(error.status, FSDPRT_BAD_INPUT);
    return error.what();
  }
  return "";
}

TEST(Mpi, RanksHaveToAgree) {
  if (processes() == 1)
    GTEST_SKIP() << "needs more than one process";
  std::string told = disagreement("the artifact's SHA-256", "abc", "abd"),
              last = std::to_string(processes() - 1);
  EXPECT_NE(told.find("the artifact's SHA-256 is 'abc' on rank 0 and 'abd' on rank " + last),
            std::string::npos)
      << told;
  EXPECT_EQ(disagreement("x", "abc", "abc"), "");
}

TEST(Mpi, SchedulesHaveToAgree) {
  if (processes() == 1)
    GTEST_SKIP() << "needs more than one process";
  uint32_t rank = MpiLibrary::get(meetingSeconds).rank();
  MpiCommunicator communicator(Mesh({{"shard", processes()}}), rank, MpiReduce::ordered, "", 60,
                               meetingSeconds, 3);
  communicator.add({fb::CollectiveKind::all_gather,
                    fb::Reduction::sum,
                    DType::f32,
                    rank == 1 ? 4u : 5u,
                    0,
                    {0},
                    1,
                    "",
                    ""});
  try {
    communicator.connect();
    ADD_FAILURE() << "connected";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 has other collectives than rank 0"),
              std::string::npos)
        << error.what();
  }
}

TEST(Mpi, OtherNumberOfProcessesIsRefused) {
  uint32_t ranks = processes() + 1;
  try {
    MpiCommunicator(Mesh({{"shard", ranks}}), MpiLibrary::get(meetingSeconds).rank(),
                    MpiReduce::ordered, "", 60, meetingSeconds, 3);
    ADD_FAILURE() << "met";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("expected " + std::to_string(ranks) + " processes"),
              std::string::npos)
        << error.what();
  }
}

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  int result = RUN_ALL_TESTS();
  // The failures that tests have caused must not change the exit code.
  MpiLibrary::get(meetingSeconds).skipFinalize(false);
  return result;
}
