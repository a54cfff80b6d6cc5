//===- LauncherRunTest.cpp - fsdp-run under a launcher -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs fsdp-run as torchrun does: there is one process for each rank, and its environment variables
// contain the rank of the process and an address at which the ranks meet. A test starts
// the processes of all its cases at once.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "test/launch/Ports.h"
#include "test/run/RunFixture.h"
#include <sys/resource.h>
#include <thread>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
class Meets : public Run {
protected:
  struct Process {
    std::string environment, arguments;
    int code; ///< expected exit code; -1 accepts every exit code
    std::vector<std::string> words;
  };
  struct Case {
    std::vector<Process> processes;
    /// Shell commands to run after all processes have started. $p0, $p1, ... are the processes'
    /// ids, and the output of process N is in log.CASE.N.
    std::string meanwhile = "";
  };

  static std::string torchrun(int rank, int ranks, uint32_t port,
                              const std::string &address = "127.0.0.1") {
    std::string r = std::to_string(rank), n = std::to_string(ranks);
    return "RANK=" + r + " WORLD_SIZE=" + n + " LOCAL_RANK=" + r + " LOCAL_WORLD_SIZE=" + n +
           " GROUP_RANK=0 ROLE_RANK=" + r + " MASTER_ADDR=" + address +
           " MASTER_PORT=" + std::to_string(port) + " TORCHELASTIC_RUN_ID=none";
  }
  Case all(int ranks, const std::string &arguments, int code,
           const std::vector<std::string> &words = {}) {
    uint32_t port = freePort();
    Case result;
    for (int rank = 0; rank < ranks; ++rank)
      result.processes.push_back({torchrun(rank, ranks, port), arguments, code, words});
    return result;
  }

  void check(const std::vector<Case> &cases) {
    std::string script;
    for (size_t i = 0; i < cases.size(); ++i) {
      script += "(i=" + std::to_string(i) + "\n";
      for (size_t k = 0; k < cases[i].processes.size(); ++k) {
        const Process &process = cases[i].processes[k];
        std::string n = std::to_string(k);
        script += "env " + process.environment + " " FSDP_RUN " --flight-record=flight.$i " +
                  process.arguments + " >log.$i." + n + " 2>&1 & p" + n + "=$!\n";
      }
      script += "(trap 'kill $nap; exit' TERM; sleep 200 & nap=$!; wait $nap; kill -KILL $p0 $p1 "
                "$p2 $p3) & late=$!\n" +
                cases[i].meanwhile + "\n";
      for (size_t k = 0; k < cases[i].processes.size(); ++k)
        script += "wait $p" + std::to_string(k) + "; echo $? >code.$i." + std::to_string(k) + "\n";
      script += "kill $late) 2>/dev/null &\n";
    }
    bash(script + "wait\n");
    for (size_t i = 0; i < cases.size(); ++i)
      for (size_t k = 0; k < cases[i].processes.size(); ++k)
        checkProcess(cases[i].processes[k], std::to_string(i) + "." + std::to_string(k));
    EXPECT_EQ(bash("for i in $(seq 100); do pgrep -f " + folder +
                   "/toy >/dev/null || exit 7; sleep 0.1; done"),
              7)
        << "a process is left";
  }
  void checkProcess(const Process &process, const std::string &n) {
    std::string log = text("log." + n),
                what = process.environment + " " + process.arguments + "\n" + log;
    if (process.code >= 0) {
      EXPECT_EQ(text("code." + n), std::to_string(process.code) + "\n") << what;
    }
    for (const std::string &word : process.words)
      EXPECT_NE(log.find(word), std::string::npos) << "'" << word << "' of " << what;
  }
  std::string toy(int ranks) { return at("toy" + std::to_string(ranks) + ".fsdp"); }
};
} // namespace

TEST_F(Meets, LeavesTheSameFiles) {
  std::string words;
  for (int i = 0; i < 3000; ++i)
    words += static_cast<char>('a' + i * i % 23);
  writeFile(at("words"), words.data(), words.size());
  std::vector<Case> cases;
  for (int ranks : {2, 3, 4}) {
    std::string n = std::to_string(ranks),
                common = toy(ranks) + " --text=words --steps=6 --save-every=3 --val-every=2 ";
    expect(0, "step 6/6", common + "--save=a" + n + " --export=a" + n + ".st");
    cases.push_back(
        all(ranks, common + "--save=b" + n + " --export=b" + n + ".st --assert-no-allocations", 0));
    cases.back().processes[0].words = {"rank 0 of " + n + " from torchrun's environment, over shm",
                                       "step 6/6", "no memory was allocated"};
  }
  check(cases);
  for (std::string n : {"2", "3", "4"})
    EXPECT_EQ(bash("diff -r a" + n + " b" + n + " && cmp a" + n + ".st b" + n + ".st"), 0);
}

// These runs use the NCCL stub.
TEST_F(Meets, OverNccl) {
  expect(0, "", toy(3) + " --steps=4 --export=a.st");
  Case fine = all(3, toy(3) + " --steps=4 --export=b.st --backend=nccl", 0);
  fine.processes[0].words = {"rank 0 of 3 from torchrun's environment, over shm",
                             "ranks communicate over NCCL 2.30.7", "step 4/4"};
  Case lost =
      all(3, toy(3) + " --steps=4 --backend=nccl --inject-rank-fault=kill:0:gather:2", FSDPRT_LOST,
          {"rank 0 (process ", "is gone", "in step 2", "last started collective "});
  lost.processes[0] = {lost.processes[0].environment, lost.processes[0].arguments, 128 + 9, {}};
  check({fine, lost});
  EXPECT_EQ(bash("cmp a.st b.st"), 0);
}

/// In a Slurm job step, or if torchrun's agent uses MASTER_PORT, no port is left for fsdp-run.
TEST_F(Meets, WhereTheLauncherLeavesNoPort) {
  uint32_t port;
  Descriptor agent = listenSomewhere(port);
  expect(0, "", toy(3) + " --steps=4 --export=a.st");
  Case store, slurm;
  for (int rank = 0; rank < 3; ++rank) {
    std::string id = std::to_string(port), r = std::to_string(rank);
    store.processes.push_back(
        {torchrun(rank, 3, port) +
             " TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RESTART_COUNT=0",
         toy(3) + " --steps=4 --export=b.st",
         0,
         {}});
    slurm.processes.push_back(
        {"SLURM_JOB_ID=" + id +
             " SLURM_STEP_ID=0 SLURM_NTASKS=3 SLURM_STEP_NUM_NODES=1 SLURM_PROCID=" + r,
         toy(3) + " --steps=4 --export=c.st",
         0,
         {}});
  }
  check({store, slurm});
  EXPECT_EQ(bash("cmp a.st b.st && cmp a.st c.st"), 0);
}

TEST_F(Meets, NamesRanksThatDoNotArrive) {
  std::string limit = " --rendezvous-timeout=3";
  Case some = all(4, toy(4) + limit, FSDPRT_HUNG, {"ranks 1, 3 of 4 did not arrive within 3 s"});
  some.processes.erase(some.processes.begin() + 3);
  some.processes.erase(some.processes.begin() + 1);
  Case noFirst =
      all(3, toy(3) + limit, FSDPRT_HUNG,
          {"rank 0 was not found at 127.0.0.1:", "within 3 s: no process listens there"});
  noFirst.processes.erase(noFirst.processes.begin());
  Case alone = all(2, toy(2) + limit, FSDPRT_HUNG, {"rank 1 of 2 did not arrive within 3 s"});
  alone.processes.pop_back();
  check({some, noFirst, alone});
}

// Immediately after a failed attempt, ranks can meet at the same address. The ranks must not
// receive errors of the failed attempt.
TEST_F(Meets, StartsAgainAtTheSameAddress) {
  uint32_t port = freePort();
  std::string run = " " FSDP_RUN " " + toy(2) + " --steps=2 --rendezvous-timeout=";
  Case alone;
  alone.processes.push_back({torchrun(0, 2, port),
                             toy(2) + " --rendezvous-timeout=1",
                             FSDPRT_HUNG,
                             {"rank 1 of 2 did not arrive"}});
  alone.meanwhile = "wait $p0\nenv " + torchrun(1, 2, port) + run +
                    "20 >again.1 2>&1 & q=$!\nenv " + torchrun(0, 2, port) + run +
                    "20 >again.0 2>&1; echo $? >again; wait $q; echo $? >>again";
  check({alone});
  EXPECT_EQ(text("again"), "0\n0\n") << text("again.0") << text("again.1");
}

TEST_F(Meets, RefusesRanksThatContradictEachOther) {
  std::string arguments = toy(3) + " --rendezvous-timeout=20";
  Case twice = all(3, arguments, FSDPRT_BAD_INPUT, {"two processes have rank 1 of 3: process "});
  twice.processes[2].environment = twice.processes[1].environment;
  Case size =
      all(3, arguments, FSDPRT_BAD_INPUT, {"compiled for 3 ranks, but the process is rank 2 of 4"});
  size.processes[2].environment += " WORLD_SIZE=4";
  check({twice, size, all(2, arguments, FSDPRT_BAD_INPUT, {"compiled for 3 ranks, but "})});
}

/// A rank that fails early reports its error to the other ranks immediately, not after a timeout.
TEST_F(Meets, OneThatDoesNotComeSaysWhy) {
  std::string arguments = toy(2) + " --rendezvous-timeout=60 --steps=2";
  std::vector<Case> cases;
  for (size_t wrong : {0, 1}) {
    std::string r = std::to_string(wrong);
    cases.push_back(all(2, arguments, FSDPRT_BAD_INPUT, {"--steps"}));
    cases.back().processes[wrong].arguments = toy(2) + " --steps=none";
    cases.back().processes[1 - wrong].words = {"rank " + r + ": --steps: ", "found 'none'"};
    cases.push_back(all(2, arguments, FSDPRT_BAD_INPUT,
                        {"rank " + r + ": ", "--backend=local has all ranks in one process"}));
    cases.back().processes[wrong].arguments += " --backend=local";
    cases.push_back(
        all(2, arguments, FSDPRT_BAD_INPUT,
            {"rank " + r + ": ",
             "toy3.fsdp: compiled for 3 ranks, but the process is rank " + r + " of 2"}));
    cases.back().processes[wrong].arguments = toy(3) + " --steps=2";
  }
  cases.push_back(all(2, toy(2) + " --steps=none", FSDPRT_BAD_INPUT, {"found 'none'"}));
  Case alone =
      all(3, toy(2), FSDPRT_BAD_INPUT,
          {"rank 1: ",
           "compiled for 2 ranks, but the process is rank 1 of 3 from torchrun's environment"});
  alone.processes = {alone.processes[1]};
  cases.push_back(alone);
  double began = monotonicSeconds();
  check(cases);
  EXPECT_LT(monotonicSeconds() - began, 45);
}

TEST_F(Meets, WrongAddress) {
  uint32_t port = freePort();
  std::string arguments = toy(2) + " --rendezvous-timeout=3";
  // No machine has these addresses: RFC 5737 reserves 192.0.2.0/24, and RFC 6761 reserves the
  // domain "invalid".
  check({{{{torchrun(0, 2, port, "192.0.2.1"),
            arguments,
            FSDPRT_BAD_INPUT,
            {"192.0.2.1:", "no address of this machine"}},
           {torchrun(1, 2, port, "192.0.2.1"),
            arguments,
            FSDPRT_HUNG,
            {"rank 0 was not found at 192.0.2.1:", "within 3 s: "}}}},
         {{{torchrun(0, 2, port, "nowhere.invalid"),
            arguments,
            -1,
            {"MASTER_ADDR", "nowhere.invalid"}},
           {torchrun(1, 2, port, "nowhere.invalid"),
            arguments,
            -1,
            {"MASTER_ADDR", "nowhere.invalid"}}}}});
}

/// When a rank tries to connect to the port of rank 0, the system can choose the same port as the
/// rank's own ephemeral port, and the rank then connects to itself. This is likely if the system
/// has few ephemeral ports.
TEST_F(Meets, NobodyMeetsThemselves) {
  if (bash("unshare -rn true") != 0)
    GTEST_SKIP() << "a network of one's own is not allowed here";
  auto start = [&](int rank) {
    return torchrun(rank, 2, 40000) + " " FSDP_RUN " " + toy(2) +
           " --steps=2 --rendezvous-timeout=30";
  };
  EXPECT_EQ(bash("unshare -rn bash -c 'ip link set lo up; echo 40000 40003 "
                 ">/proc/sys/net/ipv4/ip_local_port_range\n"
                 "env " +
                 start(1) + " >log.1 2>&1 & sleep 1.5; env " + start(0) +
                 " >log.0 2>&1; zero=$?; wait $!; exit $((zero + $?))'"),
            0)
      << text("log.0") << text("log.1");
}

TEST_F(Meets, SomethingElseAtThePort) {
  uint32_t silentPort, otherPort;
  Descriptor silent = listenSomewhere(silentPort), other = listenSomewhere(otherPort);
  std::atomic<bool> over{false};
  std::thread answering([&] {
    while (!over) {
      Descriptor guest(accept(other.get(), nullptr, nullptr));
      send(guest.get(), "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL);
      usleep(100000);
    }
  });
  std::string arguments = toy(2) + " --rendezvous-timeout=3",
              mine = "another process uses it; choose another MASTER_PORT";
  check({{{{torchrun(0, 2, silentPort), arguments, FSDPRT_BAD_INPUT, {mine}},
           {torchrun(1, 2, silentPort),
            arguments,
            FSDPRT_HUNG,
            {"a process listens there, but does not answer"}}}},
         {{{torchrun(0, 2, otherPort), arguments, FSDPRT_BAD_INPUT, {mine}},
           {torchrun(1, 2, otherPort),
            arguments,
            FSDPRT_BAD_INPUT,
            {"expected rank 0, found another program that listens there"}}}}});
  over = true;
  connectTo(otherPort);
  answering.join();
}

TEST_F(Meets, LostWhileTheyMeet) {
  std::string arguments = toy(3) + " --rendezvous-timeout=60";
  std::vector<Case> cases;
  for (const char *lost : {"0", "1"}) {
    Case each =
        all(3, arguments, FSDPRT_LOST,
            {std::string("rank ") + lost + " (process ", "was lost before all ranks had met"});
    each.processes.pop_back();
    each.processes[static_cast<size_t>(lost[0] - '0')] = {
        each.processes[static_cast<size_t>(lost[0] - '0')].environment, arguments, 128 + 9, {}};
    each.meanwhile = std::string("sleep 2; kill -KILL $p") + lost;
    cases.push_back(each);
  }
  check(cases);
}

TEST_F(Meets, DifferentArtifactsAndOptions) {
  writeOtherArtifacts("toyother.fsdp", "toydamaged.fsdp");
  std::vector<Case> cases = {
      all(3, toy(3) + " --steps=2", FSDPRT_BAD_INPUT,
          {"the artifact's SHA-256 is '", "' on rank 0 and '", "' on rank 1"}),
      all(3, toy(3) + " --steps=2", FSDPRT_BAD_INPUT, {"rank 1: ", "toydamaged.fsdp: "}),
      all(3, toy(3) + " --steps=2", FSDPRT_BAD_INPUT, {"toydamaged.fsdp: "}),
      all(3, toy(3) + " --steps=2", FSDPRT_BAD_INPUT,
          {"--steps is '2' on rank 0 and '3' on rank 2"}),
      all(3, toy(3) + " --steps=2", FSDPRT_BAD_INPUT,
          {"the seed is '0' on rank 0 and '7' on rank 1"}),
      all(3, toy(3) + " --steps=2", FSDPRT_BAD_INPUT,
          {"--backend is 'nccl' on rank 0 and 'shm' on rank 1"})};
  cases[0].processes[1].arguments = at("toyother.fsdp") + " --steps=2";
  cases[1].processes[1].arguments = at("toydamaged.fsdp") + " --steps=2";
  cases[2].processes[0].arguments = at("toydamaged.fsdp") + " --steps=2";
  cases[3].processes[2].arguments = toy(3) + " --steps=3";
  cases[4].processes[1].arguments = toy(3) + " --steps=2 --seed=7";
  cases[5].processes[0].arguments += " --backend=nccl";
  check(cases);
}

TEST_F(Meets, ARankIsLost) {
  std::vector<Case> cases;
  auto add = [&](const std::string &kind, size_t rank, const std::string &phase, int code,
                 const std::string &more, int own, const std::string &words) {
    std::string r = std::to_string(rank);
    Case each = all(
        3, toy(3) + " --steps=4 --inject-rank-fault=" + kind + ":" + r + ":" + phase + ":2 " + more,
        code,
        {"rank " + r, words, "in step 2", "last started collective ",
         "the last collectives of all ranks are in flight."});
    each.processes[rank].code = own;
    each.processes[rank].words.clear();
    cases.push_back(each);
  };
  for (size_t rank : {0, 1, 2})
    for (const char *phase : {"gather", "compute", "reduce"}) {
      add("kill", rank, phase, FSDPRT_LOST, "", 128 + 9,
          "is gone; it was killed or ended before the run did");
      add("stop", rank, phase, FSDPRT_HUNG, "--heartbeat-seconds=6", 128 + 9,
          "has sent no heartbeat for 6");
    }
  add("exit", 1, "compute", FSDPRT_LOST, "", 0,
      "is gone; it was killed or ended before the run did");
  add("hang", 0, "reduce", FSDPRT_HUNG, "--timeout-seconds=6", FSDPRT_HUNG, "it made no progress");
  check(cases);
}

TEST_F(Meets, ARankFails) {
  std::string full =
      " LD_PRELOAD=" FSDPRT_FAILPOINT " FAIL_HOW=full FAIL_RANK=1 FAIL_AT=20 FAIL_IN=saves";
  Case each = all(3, toy(3) + " --steps=4 --save-every=1 --save=saves", FSDPRT_FAILED,
                  {"rank 1: ", "could not be saved", "No space left on device"});
  each.processes[1].environment += full;
  check({each});
}

TEST_F(Meets, EndsBehindAStepWhenOneIsAsked) {
  Case each = all(2, toy(2) + " --steps=100000000 --save=saves", 128 + 15);
  each.processes[0].words = {"interrupted after step", "saved step"};
  each.meanwhile =
      "for n in $(seq 600); do grep -q '^step' log.$i.0 && break; sleep 0.1; done; kill -TERM $p1";
  check({each});
  EXPECT_EQ(bash("test -s saves/latest"), 0);
}

TEST_F(Meets, TheHostIsLost) {
  Case each = all(
      2, toy(2) + " --steps=100000000", FSDPRT_LOST,
      {"the process that watches the ranks (started by rank 0) is gone", "(last seen in step "});
  each.meanwhile = "for n in $(seq 600); do grep -q '^step' log.$i.0 && break; sleep 0.1; done; "
                   "pkill -KILL -P $p0";
  check({each});
}
