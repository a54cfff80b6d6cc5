//===- RendezvousTest.cpp - Rendezvous of launched processes --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests the protocol by sending frames to a host or a rank. LauncherRunTest.cpp tests whole runs.
//
//===----------------------------------------------------------------------===//

#include "launch/Rendezvous.h"
#include "core/Error.h"
#include "core/FutexEvent.h"
#include "test/launch/Ports.h"
#include "test/run/RunFixture.h"
#include <sys/resource.h>
#include <thread>

using namespace fsdprt;
using namespace fsdprt::test;

static LaunchPlace placeOf(uint32_t rank, uint32_t ranks, uint32_t port) {
  LaunchPlace place;
  place.rank = rank;
  place.ranks = ranks;
  place.address = "127.0.0.1";
  place.port = port;
  return place;
}

/// Runs the host, rank 0, and a made-up rank 1. `change` modifies the hello message of rank 1.
/// Returns the errors of the host, rank 0 and rank 1.
static std::vector<std::string> meetOddly(const std::function<void(Frame &)> &change,
                                          fsdprt_status status) {
  uint32_t port = freePort();
  std::vector<std::string> told(3);
  auto tell = [&](size_t who, const std::function<void()> &body) {
    return std::thread([&told, who, body, status] {
      try {
        body();
      } catch (const Error &error) {
        EXPECT_EQ(error.status, status) << error.what();
        told[who] = error.what();
      }
    });
  };
  RendezvousHost host(placeOf(0, 2, port), 20);
  std::thread hosting = tell(0, [&] { host.gather(); });
  std::thread first = tell(1, [&] { close(attendRendezvous(placeOf(0, 2, port), 20)); });
  Descriptor odd = connectTo(port);
  Frame hello = Frame::make(Frame::hello);
  hello.rank = 1;
  hello.ranks = 2;
  std::strncpy(hello.machine, machineIdentity().c_str(), sizeof hello.machine - 1);
  std::strncpy(hello.host, "nodeB", sizeof hello.host - 1);
  change(hello);
  EXPECT_TRUE(sendFrame(odd.get(), hello));
  FrameReader reader;
  for (double limit = monotonicSeconds() + 30; monotonicSeconds() < limit && told[2].empty();
       usleep(10000)) {
    FrameReader::State state = reader.read(odd.get());
    if (state == FrameReader::State::end || state == FrameReader::State::foreign)
      break;
    if (state == FrameReader::State::complete && reader.get().kind == Frame::refusal)
      told[2] = reader.get().text;
    if (state == FrameReader::State::complete)
      reader.clear();
  }
  hosting.join();
  first.join();
  return told;
}

static void expectTold(const std::vector<std::string> &told,
                       const std::vector<std::string> &words) {
  for (const std::string &each : told)
    for (const std::string &word : words)
      EXPECT_NE(each.find(word), std::string::npos) << "'" << word << "' in '" << each << "'";
}

TEST(Rendezvous, RefusesOtherMachines) {
  expectTold(
      meetOddly([](Frame &hello) { std::strcpy(hello.machine, "another"); }, FSDPRT_BAD_INPUT),
      {"need MPI", "mpirun", "rank 0 on " + machineName(), "rank 1 on nodeB"});
}

TEST(Rendezvous, RefusesOtherVersions) {
  expectTold(meetOddly([](Frame &hello) { hello.interface = (9 << 16) | 7; }, FSDPRT_BAD_INPUT),
             {"rank 1 (process 0 on nodeB) has interface 9.7 of the runtime",
              "start all ranks from one installation"});
}

TEST(Rendezvous, RefusesRanksThatAreNone) {
  expectTold(meetOddly([](Frame &hello) { hello.rank = 2; }, FSDPRT_BAD_INPUT),
             {"found rank 2 of 2"});
}

TEST(Rendezvous, RefusesOtherNumbersOfRanks) {
  expectTold(meetOddly([](Frame &hello) { hello.ranks = 4; }, FSDPRT_BAD_INPUT),
             {"the number of ranks (WORLD_SIZE) is 2 on rank 0 and 4 on rank 1"});
}

TEST(Rendezvous, TellsAllWhyOneDoesNotCome) {
  expectTold(meetOddly(
                 [](Frame &refusal) {
                   refusal.kind = Frame::refusal;
                   refusal.status = FSDPRT_BAD_INPUT;
                   std::strcpy(refusal.text, "rank 1: no\nthanks");
                 },
                 FSDPRT_BAD_INPUT),
             {"rank 1: no?thanks"});
}

/// A process of another job that connects has no effect on the rendezvous. This process receives an
/// error that contains the names of both jobs.
TEST(Rendezvous, TurnsAwayOtherJobs) {
  for (uint32_t kind : {uint32_t(Frame::hello), uint32_t(Frame::refusal)}) {
    uint32_t port = freePort();
    auto ours = [&](uint32_t rank) {
      LaunchPlace place = placeOf(rank, 2, port);
      place.job = "'ours'";
      return place;
    };
    RendezvousHost host(ours(0), 30);
    std::vector<RendezvousHost::Member> members;
    std::thread hosting([&] { members = host.gather(); });
    Descriptor other = connectTo(port);
    Frame hello = Frame::make(static_cast<Frame::Kind>(kind));
    hello.rank = 1;
    hello.ranks = 2;
    hello.status = FSDPRT_BAD_INPUT;
    hello.secondsLeft = 0.001; // this must not limit the time of other ranks
    std::strcpy(hello.job, "'theirs'");
    std::strcpy(hello.host, "nodeB");
    EXPECT_TRUE(sendFrame(other.get(), hello));
    FrameReader reader;
    FrameReader::State state = FrameReader::State::partial;
    for (double limit = monotonicSeconds() + 30;
         monotonicSeconds() < limit && state == FrameReader::State::partial; usleep(1000))
      state = reader.read(other.get());
    ASSERT_EQ(state, FrameReader::State::complete);
    EXPECT_EQ(reader.get().kind, uint32_t(Frame::refusal));
    EXPECT_NE(
        reader.get().words().find(
            "rank 1 (process 0 on nodeB) is of job 'theirs', but ranks of job 'ours' meet here"),
        std::string::npos)
        << reader.get().words();
    std::thread first([&] { close(attendRendezvous(ours(0), 30)); });
    close(attendRendezvous(ours(1), 30));
    first.join();
    hosting.join();
    EXPECT_EQ(members.size(), 2u);
  }
}

/// The host must read and ignore messages that a rank sends after its hello. If the host did not
/// read these messages, the waits of the host would return at once, and the host would use the
/// processor all the time.
TEST(Rendezvous, IgnoresWhatFollowsAHello) {
  uint32_t port = freePort();
  RendezvousHost host(placeOf(0, 2, port), 2);
  rusage before = {}, after = {};
  std::thread hosting([&] {
    getrusage(RUSAGE_THREAD, &before);
    EXPECT_THROW(host.gather(), Error);
    getrusage(RUSAGE_THREAD, &after);
  });
  Descriptor rank = connectTo(port);
  Frame hello = Frame::make(Frame::hello);
  hello.rank = 1;
  hello.ranks = 2;
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(sendFrame(rank.get(), hello));
  hosting.join();
  auto seconds = [](const rusage &usage) {
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  EXPECT_LT(seconds(after) - seconds(before), 0.5);
}

/// If a foreign process listens at the port of rank 0, a rank must fail, whatever status this
/// process sends to the rank.
TEST(Rendezvous, NoRefusalIsASuccess) {
  for (int32_t status : {0, 1, 2, 3, 4, 5, 99, 255, 256, -1}) {
    uint32_t port;
    Descriptor listening = listenSomewhere(port);
    std::thread answering([&] {
      Descriptor guest(accept(listening.get(), nullptr, nullptr));
      Frame frame = Frame::make(Frame::refusal);
      frame.status = status;
      std::strcpy(frame.text, "no thanks");
      FrameReader reader;
      for (double limit = monotonicSeconds() + 30;
           monotonicSeconds() < limit && reader.read(guest.get()) == FrameReader::State::partial;)
        usleep(1000);
      sendFrame(guest.get(), frame);
      usleep(200000);
    });
    try {
      attendRendezvous(placeOf(1, 2, port), 20);
      ADD_FAILURE() << status;
    } catch (const Error &error) {
      EXPECT_EQ(error.status, status >= 1 && status <= 4 ? status : FSDPRT_FAILED);
      EXPECT_STREQ(error.what(), "no thanks");
    }
    answering.join();
  }
}

/// Error messages must not contain control characters that a received name contains. Received texts
/// may have no terminating zero byte.
TEST(Rendezvous, BelievesNoText) {
  expectTold(meetOddly(
                 [](Frame &hello) {
                   hello.rank = 7;
                   std::memset(hello.host, '\n', sizeof hello.host);
                   std::memset(hello.text, 'x', sizeof hello.text);
                   std::memset(hello.machine, 'x', sizeof hello.machine);
                 },
                 FSDPRT_BAD_INPUT),
             {"on ????"});
}

TEST(Rendezvous, AConnectionThatSaysNothingChangesNothing) {
  uint32_t port = freePort();
  RendezvousHost host(placeOf(0, 2, port), 20);
  std::vector<RendezvousHost::Member> members;
  std::thread hosting([&] { members = host.gather(); });
  Descriptor silent = connectTo(port), foreign = connectTo(port), half = connectTo(port),
             gone = connectTo(port);
  EXPECT_GT(send(foreign.get(), "GET / HTTP/1.0\r\n\r\n", 18, 0), 0);
  EXPECT_GT(send(half.get(), Frame::expected, 5, 0), 0);
  gone = Descriptor();
  std::vector<int> ends(2);
  std::thread other([&] { ends[1] = attendRendezvous(placeOf(1, 2, port), 20); });
  ends[0] = attendRendezvous(placeOf(0, 2, port), 20);
  other.join();
  hosting.join();
  ASSERT_EQ(members.size(), 2u);
  // Each rank has the other end of the channel that the host has for this rank.
  for (int rank : {0, 1}) {
    Message message;
    message.kind = Message::hello;
    message.rank = static_cast<uint32_t>(rank) + 5;
    EXPECT_TRUE(Channel(ends[static_cast<size_t>(rank)]).send(message));
    int attached;
    Message got;
    EXPECT_EQ(
        Channel(members[static_cast<size_t>(rank)].channel.release()).receive(got, attached, 10),
        Channel::Received::message);
    EXPECT_EQ(got.rank, message.rank);
  }
}

TEST(Rendezvous, CountsConnectionsThatSayNothing) {
  uint32_t port = freePort();
  RendezvousHost host(placeOf(0, 3, port), 2);
  std::string told;
  std::thread hosting([&] {
    try {
      host.gather();
    } catch (const Error &error) {
      told = error.what();
    }
  });
  Descriptor silent = connectTo(port);
  Descriptor confused = connectTo(port); // sends a frame that no rank sends
  EXPECT_TRUE(sendFrame(confused.get(), Frame::make(Frame::welcome)));
  hosting.join();
  EXPECT_EQ(told,
            "ranks 0, 1, 2 of 3 (1 connection did not identify a rank) did not arrive within 2 s");
}

TEST(Rendezvous, NoiseChangesNothing) {
  uint32_t port = freePort();
  RendezvousHost host(placeOf(0, 2, port), 30);
  std::vector<RendezvousHost::Member> members;
  std::thread hosting([&] { members = host.gather(); });
  std::mt19937 random(1);
  std::vector<Descriptor> noise;
  for (int i = 0; i < 200; ++i) {
    char bytes[2 * sizeof(Frame)];
    for (char &byte : bytes)
      byte = static_cast<char>(random());
    noise.push_back(connectTo(port));
    send(noise.back().get(), bytes, random() % sizeof bytes, MSG_NOSIGNAL);
  }
  std::vector<int> ends(2);
  std::thread other([&] { ends[1] = attendRendezvous(placeOf(1, 2, port), 30); });
  ends[0] = attendRendezvous(placeOf(0, 2, port), 30);
  other.join();
  hosting.join();
  EXPECT_EQ(members.size(), 2u);
  for (int end : ends)
    close(end);
}
