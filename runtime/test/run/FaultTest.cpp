//===- FaultTest.cpp - Loss of a rank ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests what fsdp-run does when a rank fails or hangs. Most faults occur at a given command of a
// step (--inject-rank-fault) and not at a given time, and the time limits are generous. The tests
// check which rank, step and collective the run reports. All cases of a test run concurrently,
// because they wait most of the time.
//
//===----------------------------------------------------------------------===//

#include "fsdprt/fsdprt.h"
#include "test/Sanitized.h"
#include "test/run/RunFixture.h"
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
class Faults : public Run {
protected:
  struct Case {
    std::string fault, arguments, environment; ///< parts of the command line
    int code;
    std::vector<std::string> words; ///< words expected in the output
  };

  /// Runs all cases concurrently, and checks that no process is left.
  void check(const std::vector<Case> &cases) {
    std::string script;
    for (size_t i = 0; i < cases.size(); ++i) {
      std::string n = std::to_string(i);
      script += "(" + cases[i].environment + " timeout 120 " FSDP_RUN " --flight-record=flight." +
                n + " " + cases[i].arguments +
                (cases[i].fault.empty() ? "" : " --inject-rank-fault=" + cases[i].fault) +
                " >log." + n + " 2>&1; echo $? >code." + n + ") &\n";
    }
    bash(script + "wait\n");
    for (size_t i = 0; i < cases.size(); ++i) {
      std::string n = std::to_string(i), log = text("log." + n),
                  what = cases[i].fault + " " + cases[i].arguments;
      EXPECT_EQ(text("code." + n), std::to_string(cases[i].code) + "\n") << what << "\n" << log;
      for (const std::string &word : cases[i].words)
        EXPECT_NE(log.find(word), std::string::npos) << "'" << word << "' of " << what << "\n"
                                                     << log;
    }
    EXPECT_NE(bash("pgrep -f " + folder + "/toy"), 0) << "a process is left";
  }

  /// Returns a case for each pair of a rank and a phase in `phases`: in the case, the rank has the
  /// fault in this phase.
  std::vector<Case> everywhere(const std::string &kind, const std::string &options, int code,
                               const std::vector<std::string> &phases) {
    std::vector<Case> cases;
    for (const std::string &phase : phases)
      for (int rank = 0; rank < 3; ++rank) {
        std::string r = std::to_string(rank), saves = "saves." + kind + phase + r;
        cases.push_back(
            {kind + ":" + r + ":" + phase + ":2",
             at("toy3.fsdp") + " --steps=4 --save=" + saves + " --save-every=1 " + options,
             "",
             code,
             {"rank " + r, "step 2", "collective ",
              "the last collectives of all ranks are in flight."}});
      }
    return cases;
  }
};
} // namespace

TEST_F(Faults, KilledInEachPhase) {
  check(everywhere("kill", "--processes", FSDPRT_LOST, {"gather", "compute", "reduce", "save"}));
  // The earlier save is undamaged, and a run resumes from this save.
  for (const char *phase : {"gather", "save"}) {
    std::string saves = std::string("saves.kill") + phase + "1";
    expect(0, "resumed after step 1",
           "toy3.fsdp --steps=4 --processes --save=" + saves + " --resume=" + saves +
               " --export=resumed.st");
    expect(0, "", "toy3.fsdp --steps=4 --export=whole.st");
    EXPECT_EQ(bash("cmp resumed.st whole.st"), 0);
  }
}

TEST_F(Faults, StoppedInEachPhase) {
  std::vector<Case> cases = everywhere("stop", "--processes --heartbeat-seconds=6", FSDPRT_HUNG,
                                       {"gather", "compute", "reduce", "save"});
  // Between programs, ranks check one another's heartbeats. The ranks find this fault before the
  // launcher finds it.
  cases.push_back({"stop:1:save:2",
                   at("toy3.fsdp") + " --steps=4 --save=saves.watched --save-every=1 --processes "
                                     "--heartbeat-seconds=60 --timeout-seconds=6",
                   "",
                   FSDPRT_HUNG,
                   {"waited 6 s to ", "for rank 1", "it sent no heartbeat"}});
  check(cases);
}

// The process of the rank sends heartbeats, but the rank makes no progress.
TEST_F(Faults, HangsInEachPhase) {
  check(everywhere("hang", "--processes --timeout-seconds=6", FSDPRT_HUNG,
                   {"gather", "compute", "reduce"}));
}

TEST_F(Faults, SlowRanksAreWaitedFor) {
  std::vector<Case> cases;
  for (std::string how : {"", " --processes", " --processes --backend=nccl"})
    cases.push_back({"slow:1:compute:2",
                     at("toy3.fsdp") + " --steps=3 --timeout-seconds=5" + how,
                     "",
                     0,
                     {"step 3/3"}});
  check(cases);
}

TEST_F(Faults, ThreadHangsInEachPhase) {
  check(everywhere("hang", "--timeout-seconds=6", FSDPRT_HUNG, {"gather", "compute", "reduce"}));
}

// These runs use the NCCL stub.
TEST_F(Faults, OverNcclBetweenProcesses) {
  std::string how = "--processes --backend=nccl ";
  check(everywhere("kill", how, FSDPRT_LOST, {"gather", "compute", "reduce", "save"}));
  check(everywhere("stop", how + "--heartbeat-seconds=6", FSDPRT_HUNG, {"gather", "reduce"}));
  check(everywhere("hang", how + "--timeout-seconds=6", FSDPRT_HUNG,
                   {"gather", "compute", "reduce"}));
}

TEST_F(Faults, NcclFailsBetweenProcesses) {
  std::string toy = at("toy3.fsdp") + " --processes --backend=nccl --steps=4 --timeout-seconds=6";
  check({{"",
          toy,
          "FSDPRT_NCCL_STUB=error=6,error_rank=1,error_at=5",
          FSDPRT_LOST,
          {"step ", "rank 1 at collective ",
           "NCCL reports error 6, 'remote process exited or there was a network error' (net: "
           "connection closed by peer)",
           "the last collectives of all ranks are in flight.0"}},
         {"",
          toy,
          "FSDPRT_NCCL_STUB=error=3,error_rank=2,error_at=5",
          FSDPRT_FAILED,
          {"rank 2 at collective ", "error 3, 'internal error'"}},
         {"",
          toy,
          "FSDPRT_NCCL_STUB=hang_at=3",
          FSDPRT_HUNG,
          {"waited 6 s at collective ", "which all its ranks have started and NCCL 2.30.7",
           "has not completed", "last seen in step"}},
         {"",
          toy,
          "FSDPRT_NCCL_STUB=init_hang=1",
          FSDPRT_HUNG,
          {"cannot connect ranks over NCCL 2.30.7", "not all of 3 ranks did within 6 s"}},
         {"",
          toy,
          "FSDPRT_NCCL_STUB=init_error=2,init_error_rank=1",
          FSDPRT_FAILED,
          {"cannot connect ranks over NCCL", "no socket interface found"}},
         {"", toy, "FSDPRT_NCCL_STUB=late_rank=1,late_ms=100", 0, {"step 4/4"}},
         {"",
          toy,
          "FSDPRT_NCCL_STUB=version=21700",
          FSDPRT_BAD_INPUT,
          {"expected NCCL 2.18.1 or later, found 2.17.0"}},
         {"exit:1:compute:2",
          toy,
          "",
          FSDPRT_LOST,
          {"rank 1", "ended with exit code 0 before the run did", "step 2"}}});
}

TEST_F(Faults, EndsEarly) {
  std::string toy = at("toy3.fsdp") + " --processes --timeout-seconds=8";
  check({{"exit:1:compute:2",
          toy,
          "",
          FSDPRT_LOST,
          {"rank 1", "ended with exit code 0 before the run did", "step 2"}},
         {"exit:0:start:0",
          toy,
          "",
          FSDPRT_LOST,
          {"rank 0", "ended with exit code 0 before the run did"}},
         {"kill:2:start:0", toy, "", FSDPRT_LOST, {"rank 2", "was killed by signal 9 (Killed)"}},
         {"stop:1:start:0", toy, "", FSDPRT_HUNG, {"rank 1 did not arrive within 8 s"}}});
}

TEST_F(Faults, FlightRecordHasAllRanks) {
  check({{"kill:1:reduce:3",
          at("toy3.fsdp") + " --processes --steps=5",
          "",
          FSDPRT_LOST,
          {"rank 1"}}});
  std::string record = text("flight.0");
  for (const char *words : {"\"reason\": \"rank 1", "\"rank\": 0", "\"rank\": 1", "\"rank\": 2",
                            "reduce_scatter", "\"run\": \"step 3\"", "\"took_ms\""})
    EXPECT_NE(record.find(words), std::string::npos) << words << "\n" << record;
  EXPECT_EQ(bash("python3 -m json.tool flight.0 >/dev/null"), 0) << record;
}

TEST_F(Faults, RanksDieWithTheirLauncher) {
  EXPECT_EQ(bash("rm -f log; " FSDP_RUN " " + at("toy3.fsdp") +
                 " --processes --steps=100000000 >log 2>&1 & run=$!\n"
                 "for i in $(seq 600); do grep -qs '^step' log && break; sleep 0.1; done\n"
                 "kill -KILL $run; wait $run\n"
                 "for i in $(seq 600); do pgrep -f " +
                 folder + "/toy >/dev/null || exit 7; sleep 0.1; done\n"),
            7);
}

// When a terminal is closed, the processes of its session receive SIGHUP. The run must then end the
// current step, save, and end.
TEST_F(Faults, AHangupEndsBehindTheStep) {
  for (std::string how : {"", " --processes"}) {
    EXPECT_EQ(bash("rm -rf hung log; setsid " FSDP_RUN " " + at("toy3.fsdp") + how +
                   " --steps=100000000 --save=hung >log 2>&1 & run=$!\n"
                   "for i in $(seq 600); do grep -qs '^step' log && break; sleep 0.1; done\n"
                   "kill -HUP -- -$run; wait $run"),
              128 + SIGHUP)
        << text("log");
    EXPECT_EQ(bash("test -s hung/latest"), 0) << text("log");
  }
}

// The launcher and all ranks are stopped for 4 s. The launcher continues first, and must not report
// that the ranks sent no heartbeats.
TEST_F(Faults, APauseOfAllIsNobodysSilence) {
  EXPECT_EQ(bash("rm -f log; " FSDP_RUN " " + at("toy3.fsdp") +
                 " --processes --heartbeat-seconds=3 --steps=100000000 >log 2>&1 & run=$!\n"
                 "for i in $(seq 600); do grep -qs '^step' log && break; sleep 0.1; done\n"
                 "ranks=$(pgrep -P $run); kill -STOP $run $ranks; sleep 4; kill -CONT $run; sleep "
                 "0.5; kill -CONT $ranks\n"
                 "sleep 0.2; kill -TERM $run; wait $run"),
            128 + SIGTERM)
      << text("log");
  EXPECT_EQ(text("log").find("no heartbeat"), std::string::npos) << text("log");
}

TEST_F(Faults, AnInterruptBeforeTheFirstStepIsSaid) {
  for (std::string how : {"", " --processes"}) {
    std::string fault = how.empty() ? "hang:0:start:0" : "stop:0:start:0";
    EXPECT_EQ(bash(FSDP_RUN " " + at("toy3.fsdp") + how +
                   " --steps=2 --inject-rank-fault=" + fault +
                   " >log 2>&1 & run=$!\n"
                   "sleep 2; kill -TERM $run; sleep 1; pkill -CONT -P $run; wait $run"),
              128 + SIGTERM)
        << text("log");
    EXPECT_NE(text("log").find("fsdp-run: ended before the first step"), std::string::npos)
        << text("log");
  }
}

/// Rank 1 stops in step 2, the launcher receives SIGTERM, and then the shell command `then` runs.
TEST_F(Faults, AnInterruptDoesNotHideALostRank) {
  auto interrupted = [&](const std::string &name, const std::string &arguments,
                         const std::string &then) {
    int code = bash(FSDP_RUN " " + at("toy3.fsdp") +
                    " --processes --steps=1000 --save=saves --inject-rank-fault=stop:1:compute:2 " +
                    arguments + " --flight-record=flight >" + name +
                    " 2>&1 & run=$!\n"
                    "for i in $(seq 600); do grep -q '^step' " +
                    name +
                    " && break; sleep 0.1; done\n"
                    "kill -TERM $run; for i in $(seq 600); do grep -q 'ending after this step' " +
                    name +
                    " && break; sleep 0.1; done\n"
                    "sleep 0.5; " +
                    then + "\nwait $run");
    return std::make_pair(code, text(name));
  };
  auto [hung, hangs] = interrupted("hangs", "--heartbeat-seconds=3", "");
  EXPECT_EQ(hung, FSDPRT_HUNG) << hangs;
  EXPECT_NE(hangs.find("has sent no heartbeat"), std::string::npos) << hangs;
  auto [lost, killed] = interrupted("killed", "--heartbeat-seconds=60",
                                    "kill -KILL $(pgrep -P $run -f launched-rank=1)");
  EXPECT_EQ(lost, FSDPRT_LOST) << killed;
  EXPECT_NE(killed.find("was killed by signal 9 (Killed): rank 1 (last seen in step 2"),
            std::string::npos)
      << killed;
}

TEST_F(Faults, RestartsFromTheLastSave) {
  std::string common =
      at("toy3.fsdp") + " --processes --steps=6 --on-failure=restart --heartbeat-seconds=6 ";
  check({{"kill:1:reduce:5",
          common + "--save=a --save-every=2 --export=a.st",
          "",
          0,
          {"restarting from the last save in a (1 of at most 3)", "resumed after step 4",
           "step 6/6"}},
         {"stop:0:gather:3",
          common + "--save=b --save-every=2 --export=b.st",
          "",
          0,
          {"restarting from the last save in b", "resumed after step 2", "step 6/6"}},
         {"kill:2:compute:1",
          common + "--save=c --save-every=2 --export=c.st --max-restarts=1",
          "",
          FSDPRT_LOST,
          {"restarting from the beginning (1 of at most 1)", "rank 2", "was killed by signal 9"}}});
  expect(0, "", "toy3.fsdp --steps=6 --export=whole.st");
  EXPECT_EQ(bash("cmp a.st whole.st && cmp b.st whole.st"), 0);
  expect(2, "expected --save=DIR", "toy3.fsdp --processes --on-failure=restart");
  expect(2, "--on-failure has no effect without --processes",
         "toy3.fsdp --on-failure=restart --save=d");
}

TEST_F(Faults, OtherArtifactOnOneRank) {
  writeOtherArtifacts("other.fsdp", "damaged.fsdp");
  std::string toy = at("toy3.fsdp") + " --processes --steps=2";
  auto on = [&](const std::string &file) {
    return "LD_PRELOAD=" FSDPRT_FAILPOINT
           " FAIL_HOW=replace FAIL_RANK=1 FAIL_IN=toy3.fsdp FAIL_OTHER=" +
           at(file);
  };
  check(
      {{"",
        toy,
        on("other.fsdp"),
        FSDPRT_BAD_INPUT,
        {"ranks do not agree: the artifact's SHA-256 is '", "' on rank 0 and '", "' on rank 1"}},
       {"", toy, on("damaged.fsdp"), FSDPRT_BAD_INPUT, {"toy3.fsdp"}},
       {"", toy, on("toy2.fsdp"), FSDPRT_BAD_INPUT, {"expected rank 1 of 3, found rank 1 of 2"}}});
}

// The disk becomes full during a later save, because FAIL_AT is larger than the number of calls of
// the first save.
TEST_F(Faults, FullDiskDuringASave) {
  std::string toy = at("toy3.fsdp") + " --steps=4 --save-every=1 ";
  std::string full = "LD_PRELOAD=" FSDPRT_FAILPOINT " FAIL_HOW=full FAIL_IN=";
  std::vector<std::string> words = {"could not be saved", "No space left on device",
                                    "earlier saves are untouched"};
  check({{"", toy + "--save=full.a", full + "full.a FAIL_AT=60", FSDPRT_FAILED, words},
         {"", toy + "--processes --save=full.b", full + "full.b FAIL_AT=20 FAIL_RANK=1",
          FSDPRT_FAILED, words},
         {"", toy + "--processes --save=full.c", full + "full.c FAIL_AT=20 FAIL_RANK=0",
          FSDPRT_FAILED, words}});
  for (std::string saves : {"full.a", "full.b", "full.c"}) {
    expect(0, "resumed after step", "toy3.fsdp --steps=4 --resume=" + saves);
    EXPECT_EQ(bash("test -z \"$(find " + saves + " -name '*.tmp')\""), 0);
  }
}

// A resumed run must have the losses, weights and optimizer states of an uninterrupted run.
TEST_F(Faults, GoesOnAsIfNeverInterrupted) {
  std::string words;
  for (int i = 0; i < 3000; ++i)
    words += static_cast<char>('a' + i * i % 23);
  writeFile(at("words"), words.data(), words.size());
  std::string common = "toy3.fsdp --text=words --seed=5 --steps=";
  expect(0, "", common + "7 --save=whole --export=whole.st --metrics=whole.jsonl");
  for (std::string how : {"", " --processes"}) {
    std::string n = how.empty() ? "a" : "b";
    expect(0, "saved step 3", common + "3 --save=" + n + " --metrics=" + n + ".jsonl" + how);
    expect(0, "resumed after step 3",
           common + "7 --save=" + n + " --resume=" + n + " --export=" + n + ".st --metrics=" + n +
               ".jsonl" + how);
    EXPECT_EQ(bash("cmp whole.st " + n + ".st && cmp whole/latest " + n + "/latest"), 0)
        << how; // 'latest' is equal only if all files of the save are equal.
    EXPECT_EQ(bash("for f in whole " + n +
                   "; do grep -o '\"step\":[^,]*,\"loss\":[^,]*' $f.jsonl > $f.losses; done; "
                   "test $(wc -l < whole.losses) = 7 && cmp whole.losses " +
                   n + ".losses"),
              0)
        << how;
  }
}

// The run must fail before the first step, and its message must contain the position of the invalid
// token.
TEST_F(Faults, TokensThatAreNone) {
  auto words = [](std::vector<uint16_t> ids) {
    return std::string(reinterpret_cast<char *>(ids.data()), 2 * ids.size());
  };
  auto header = [](int32_t magic, int32_t version, int32_t count) {
    std::string bytes(1024, '\0');
    int32_t fields[3] = {magic, version, count};
    std::memcpy(bytes.data(), fields, sizeof fields);
    return bytes;
  };
  std::string some = words(std::vector<uint16_t>(500, 3));
  struct Bad {
    std::string name, content, options, says;
  };
  std::vector<Bad> files = {
      {"large", some + words({60000}), "--token-dtype=uint16",
       "large: token 500 (byte offset 1000): expected an id in [0, "},
      {"odd", some + "x", "--token-dtype=uint16", "odd: expected a multiple of 2 bytes"},
      {"longer", header(20240520, 1, 501) + some, "", "which makes 2026 bytes, found 2024"},
      {"negative", header(20240520, 1, -1) + some, "", "its header says -1"},
      {"version", header(20240520, 9, 500) + some, "", "expected version 1"},
      {"wide", header(20240520, 1, 500) + some, "--token-dtype=uint32", "omit the option"},
      {"empty", "", "", "empty: expected tokens, found an empty file"},
      {"short", words({1, 2}), "--token-dtype=uint16",
       "expected at least 5 tokens for one sample of 4 and its targets, found 2"}};
  std::vector<Case> cases;
  for (const Bad &bad : files) {
    writeFile(at(bad.name), bad.content.data(), bad.content.size());
    for (const char *how : {"", " --processes"})
      cases.push_back({"",
                       at("toy3.fsdp") + " --steps=2 --data=" + bad.name + " " + bad.options + how,
                       "",
                       FSDPRT_BAD_INPUT,
                       {bad.says}});
  }
  check(cases);
}

TEST_F(Faults, MemoryLimitBelowThePlan) {
  if (isSanitized)
    GTEST_SKIP() << "a sanitizer needs address space of its own";
  ToyOptions options;
  options.shards = 2;
  auto manifest = toyManifest(options);
  manifest.layouts[0]->arena_bytes = uint64_t(1) << 31;
  auto file = pack(manifest);
  writeFile(at("toylarge.fsdp"), file.data(), file.size());
  std::string limited = "ulimit -v 3000000;", large = at("toylarge.fsdp") + " --steps=2";
  check({{"",
          large,
          limited,
          FSDPRT_FAILED,
          {"the plan needs 4.0 GiB", "the limit of this process (ulimit -v) leaves"}},
         {"",
          large + " --processes",
          limited,
          FSDPRT_FAILED,
          {"the plan needs 4.0 GiB", "the limit of this process (ulimit -v) leaves"}}});
}

TEST_F(Faults, InstructionsThatTheProcessorLacks) {
  ToyOptions options;
  options.shards = 3;
  auto manifest = toyManifest(options);
  manifest.isa = {"amx_fp8_of_tomorrow"};
  auto file = pack(manifest);
  writeFile(at("toyisa.fsdp"), file.data(), file.size());
  check({{"", at("toyisa.fsdp"), "", FSDPRT_BAD_INPUT, {"amx_fp8_of_tomorrow"}},
         {"", at("toyisa.fsdp") + " --processes", "", FSDPRT_BAD_INPUT, {"amx_fp8_of_tomorrow"}}});
}
