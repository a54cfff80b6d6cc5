//===- RendezvousOrderTest.cpp - Interleavings of a rendezvous --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the rendezvous of two or three ranks in all orders that Interleavings.h describes. The tests
// include crashes, ranks that start late, two processes with the same rank, foreign processes, and
// a second job at the same address. After each run, the following must hold:
//
//  1. Every process has ended within a limited time and after a limited number of steps. It has
//     either completed the rendezvous or thrown an error with a status and a message.
//  2. A rank that completed the rendezvous received a channel to the host of its own job, and the
//     host's end of this channel belongs to this rank.
//  3. If no process of a job crashed, either all ranks of the job or none of them completed the
//     rendezvous. For each rank, at most one process has completed the rendezvous.
//
// To check rule 2, a host that has gathered its ranks sends each rank a tag that names the job and
// the rank. One test runs a rendezvous that does not compare job ids, and requires that a violation
// of these rules is found.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "launch/Rendezvous.h"
#include "test/explore/Interleavings.h"
#include <cstring>
#include <gtest/gtest.h>
#include <set>
#include <unistd.h>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
constexpr double limitSeconds = 3;

/// A process of a job. `job` is the name of the job in the test. `id` is the job id that the
/// process sends to other processes.
struct Rank {
  char job;
  uint32_t rank;
  double late = 0;     ///< delay of the process's start in seconds
  const char *id = ""; ///< id of the job; if empty, the name of the job
};

struct Outcome {
  Rank rank;
  const Interleavings::Process *process = nullptr, *host = nullptr;
  bool met = false, hasGathered = false;
  std::string tag;
  fsdprt_status status = FSDPRT_OK;
  std::string message;
};

/// Explores the orders in which the processes `wanted` and the foreign processes can run. Each job
/// has `ranks` ranks.
class Meeting {
public:
  Meeting(uint32_t ranks, std::vector<Rank> wanted, unsigned deviations, unsigned crashes)
      : ranks(ranks), wanted(std::move(wanted)), order(deviations, crashes) {}
  /// Adds a process that connects to the address, sends bytes, and closes the connection.
  Meeting &foreign(std::string bytes) {
    foreigners.push_back(std::move(bytes));
    return *this;
  }
  /// Requires that all ranks meet if no process crashes.
  Meeting &mustMeet() {
    meets = true;
    return *this;
  }
  std::string explore() {
    std::string problem = order.explore([&] { begin(); }, [&] { return judge(); });
    std::printf("%zu runs\n", order.numRuns());
    std::fflush(stdout);
    return problem;
  }

private:
  LaunchPlace placeOf(const Rank &rank) const {
    LaunchPlace place;
    place.rank = rank.rank;
    place.ranks = ranks;
    place.job = *rank.id ? rank.id : std::string(1, rank.job);
    place.meetingName = "fsdp-explore/" + std::to_string(getpid());
    return place;
  }
  void begin() {
    outcomes.clear();
    outcomes.resize(wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i)
      add(outcomes[i], wanted[i]);
    for (const std::string &bytes : foreigners)
      order.add("foreign process", [this, bytes] { visit(bytes); });
  }
  void add(Outcome &outcome, const Rank &rank) {
    outcome.rank = rank;
    std::string name = std::string("rank ") + rank.job + std::to_string(rank.rank);
    auto host = std::make_shared<std::unique_ptr<RendezvousHost>>();
    Interleavings::Process *hostProcess = nullptr;
    if (rank.rank == 0)
      outcome.host = hostProcess = &order.add(
          std::string("host ") + rank.job,
          [this, host, &outcome] { serve(std::move(*host), outcome); }, /*starts=*/false);
    outcome.process = &order.add(
        name, [this, host, hostProcess, &outcome] { attend(*host, hostProcess, outcome); });
  }

  /// Runs the process of a rank as LauncherRendezvous.cpp does.
  void attend(std::unique_ptr<RendezvousHost> &host, Interleavings::Process *hostProcess,
              Outcome &outcome) {
    LaunchPlace place = placeOf(outcome.rank);
    if (outcome.rank.late > 0)
      order.sleep(outcome.rank.late);
    try {
      if (hostProcess) {
        host = std::make_unique<RendezvousHost>(place, limitSeconds);
        order.start(*hostProcess);
      }
      Descriptor channel(attendRendezvous(place, limitSeconds));
      pollfd readable = {channel.get(), POLLIN, 0};
      order.poll(&readable, 1, 20);
      char tag[8] = "";
      if (recv(channel.get(), tag, sizeof tag - 1, MSG_DONTWAIT) > 0) {
        outcome.met = true;
        outcome.tag = tag;
      } else {
        outcome.status = FSDPRT_LOST;
        outcome.message = "the host is gone";
      }
    } catch (const Error &error) {
      outcome.status = error.status;
      outcome.message = error.what();
    }
  }
  /// Performs the part of the host in the rendezvous. The host's ends of the channels remain open
  /// until judge() is called.
  void serve(std::unique_ptr<RendezvousHost> host, Outcome &outcome) {
    try {
      std::vector<RendezvousHost::Member> members = host->gather();
      for (uint32_t rank = 0; rank < members.size(); ++rank) {
        std::string tag = outcome.rank.job + std::to_string(rank);
        ::send(members[rank].channel.get(), tag.data(), tag.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      }
      outcome.hasGathered = true;
    } catch (const Error &) { // the host has already sent the error to the ranks
    }
  }
  void visit(const std::string &bytes) {
    MeetingAddress address = MeetingAddress::abstract(placeOf({'A', 1}).meetingName);
    for (int attempt = 0; attempt < 3; ++attempt, order.sleep(0.3)) {
      Descriptor file(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (order.connect(file.get(), address.address, address.bytes) == 0)
        ::send(file.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }

  std::string judge() {
    std::set<std::string> met;
    std::map<char, std::pair<unsigned, unsigned>> jobs; ///< numbers of all processes and of
                                                        ///< connected processes
    std::set<char> crashed;
    bool anyCrash = false;
    for (const Outcome &each : outcomes) {
      std::string name = std::string("rank ") + each.rank.job + std::to_string(each.rank.rank);
      bool hasCrashed =
          each.process->hasCrashed || (each.host && each.host->hasStarted && each.host->hasCrashed);
      if (hasCrashed)
        crashed.insert(each.rank.job);
      anyCrash |= hasCrashed;
      if (each.process->hasCrashed)
        continue;
      ++jobs[each.rank.job].first;
      if (!each.met && (each.status == FSDPRT_OK || each.message.empty()))
        return name + " ended without an error and without the others";
      if (!each.met)
        continue;
      ++jobs[each.rank.job].second;
      if (each.tag != name.substr(5))
        return name + " began with the group of another: " + each.tag;
      if (!met.insert(each.tag).second)
        return name + " began twice";
    }
    for (const auto &[job, counts] : jobs) {
      if (crashed.count(job))
        continue;
      if (counts.second != 0 && counts.second != ranks)
        return std::string("of job ") + job + " only some ranks met";
      if (meets && !anyCrash && counts.second != ranks)
        return std::string("job ") + job + " did not meet: " + outcomes.front().message +
               outcomes.back().message;
    }
    return "";
  }

  uint32_t ranks;
  std::vector<Rank> wanted;
  std::vector<std::string> foreigners;
  bool meets = false;
  Interleavings order;
  std::vector<Outcome> outcomes;
};
} // namespace

TEST(RendezvousOrder, AllRanksMeet) {
  EXPECT_EQ(Meeting(2, {{'A', 0}, {'A', 1}}, 2, 0).mustMeet().explore(), "");
  EXPECT_EQ(Meeting(3, {{'A', 0}, {'A', 1}, {'A', 2}}, 1, 0).mustMeet().explore(), "");
  EXPECT_EQ(Meeting(2, {{'A', 0, 1.7}, {'A', 1}}, 2, 0).mustMeet().explore(), "");
}

TEST(RendezvousOrder, ACrashAnywhere) {
  EXPECT_EQ(Meeting(2, {{'A', 0}, {'A', 1}}, 1, 1).explore(), "");
  EXPECT_EQ(Meeting(3, {{'A', 0}, {'A', 1}, {'A', 2}}, 0, 1).explore(), "");
  EXPECT_EQ(Meeting(2, {{'A', 0}, {'A', 1}}, 0, 2).explore(), "");
}

// Two processes have the same rank, for example because a launcher has started a second process
// after a crash.
TEST(RendezvousOrder, ARankTwice) {
  EXPECT_EQ(Meeting(2, {{'A', 0}, {'A', 1}, {'A', 1, 0.2}}, 1, 1).explore(), "");
  EXPECT_EQ(Meeting(2, {{'A', 0}, {'A', 1}, {'A', 0, 0.2}}, 1, 1).explore(), "");
}

TEST(RendezvousOrder, AMissingRank) {
  EXPECT_EQ(Meeting(2, {{'A', 0}}, 1, 0).explore(), "");
  EXPECT_EQ(Meeting(2, {{'A', 1}}, 1, 0).explore(), "");
}

TEST(RendezvousOrder, ForeignProcesses) {
  Frame half = Frame::make(Frame::hello);
  std::string bytes(reinterpret_cast<const char *>(&half), sizeof half / 2);
  EXPECT_EQ(Meeting(2, {{'A', 0}, {'A', 1}}, 1, 0)
                .foreign("GET / HTTP/1.1\r\n\r\n")
                .foreign(bytes)
                .mustMeet()
                .explore(),
            "");
}

TEST(RendezvousOrder, TwoJobsAtOneAddress) {
  EXPECT_EQ(Meeting(2, {{'A', 0}, {'A', 1}, {'B', 0}, {'B', 1}}, 1, 0).explore(), "");
  EXPECT_EQ(Meeting(2, {{'A', 0}, {'A', 1, 0.7}, {'B', 0}, {'B', 1}}, 1, 0).explore(), "");
  EXPECT_EQ(Meeting(2, {{'A', 0}, {'A', 1}, {'B', 0}, {'B', 1}}, 0, 1).explore(), "");
}

// Plants a mistake: two jobs have the same id, which has the effect of a rendezvous that does not
// compare ids.
TEST(RendezvousOrder, FindsJobsThatAreNotKeptApart) {
  std::string problem =
      Meeting(2, {{'A', 0, 0, "J"}, {'A', 1, 0.7, "J"}, {'B', 0, 0, "J"}, {'B', 1, 0, "J"}}, 1, 0)
          .explore();
  EXPECT_NE(problem.find("began with the group of another"), std::string::npos) << problem;
}
