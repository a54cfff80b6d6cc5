//===- LaunchTest.cpp - Places of launched processes -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests how the runtime reads the environment variables of launchers. Also tests that ranks refuse
// to run together if a value that must be equal on all ranks is not equal.
//
//===----------------------------------------------------------------------===//

#include "core/Agreement.h"
#include "core/Error.h"
#include "launch/Rendezvous.h"
#include "test/collectives/MpiFixture.h"
#include <map>

using namespace fsdprt;
using namespace fsdprt::test;
using Variables = std::map<std::string, std::string>;

static std::optional<LaunchPlace> placeIn(const Variables &variables) {
  return findLaunchPlace([&](const char *name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

static std::string refusal(const Variables &variables) {
  try {
    placeIn(variables);
  } catch (const Error &error) {
    EXPECT_EQ(error.status, FSDPRT_BAD_INPUT);
    return error.what();
  }
  return "";
}

static const Variables torchrun = {{"RANK", "5"},         {"WORLD_SIZE", "8"},
                                   {"LOCAL_RANK", "1"},   {"LOCAL_WORLD_SIZE", "4"},
                                   {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29500"}};
static const Variables openMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                                  {"OMPI_COMM_WORLD_SIZE", "2"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
static const Variables slurm = {
    {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}};

TEST(Launch, NoLauncher) {
  EXPECT_FALSE(placeIn({}));
  // A Slurm batch script also has these variables, but is not a rank: the script may start the
  // ranks itself.
  EXPECT_FALSE(placeIn({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}));
}

TEST(Launch, Torchrun) {
  std::optional<LaunchPlace> place = placeIn(torchrun);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->text(), "rank 5 of 8 from torchrun's environment");
  EXPECT_EQ(place->localRank, 1u);
  EXPECT_EQ(place->localRanks, 4u);
  EXPECT_EQ(place->address, "n0");
  EXPECT_EQ(place->port, 29500u);
  EXPECT_FALSE(place->hasMpi);
}

TEST(Launch, OpenMpi) {
  std::optional<LaunchPlace> place = placeIn(openMpi);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->text(), "rank 1 of 2 from Open MPI's environment");
  EXPECT_TRUE(place->hasMpi);
}

TEST(Launch, PmiAndSlurm) {
  EXPECT_EQ(placeIn({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}})->text(),
            "rank 2 of 3 from PMI's environment");
  EXPECT_EQ(placeIn(slurm)->text(), "rank 3 of 4 from Slurm's environment");
}

TEST(Launch, WhereRanksMeet) {
  Variables variables = torchrun;
  EXPECT_EQ(placeIn(variables)->meetingName, "");
  // If the store of torchrun's agent uses the port, ranks meet at a name that contains the run id
  // and the restart count.
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  variables["TORCHELASTIC_RUN_ID"] = "job";
  variables["TORCHELASTIC_RESTART_COUNT"] = "2";
  EXPECT_EQ(placeIn(variables)->meetingName, "fsdp-run/torchrun/n0:29500/job/2");
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(placeIn(variables)->meetingName, "");
  EXPECT_FALSE(placeIn({{"RANK", "0"}, {"WORLD_SIZE", "2"}})->saysWhere());
  // A Slurm job step on one machine needs no address.
  variables = slurm;
  variables.insert({{"SLURM_JOB_ID", "17"}, {"SLURM_STEP_NUM_NODES", "1"}});
  EXPECT_EQ(placeIn(variables)->meetingName, "fsdp-run/slurm/17.0");
  variables["SLURM_STEP_NUM_NODES"] = "2";
  EXPECT_FALSE(placeIn(variables)->saysWhere());
  variables.insert({{"MASTER_ADDR", "n0"}, {"MASTER_PORT", "1000"}});
  EXPECT_EQ(placeIn(variables)->address, "n0");
  EXPECT_EQ(placeIn(variables)->meetingName, "");
}

TEST(Launch, TheInnermostLauncherCounts) {
  Variables both = slurm;
  both.insert(openMpi.begin(), openMpi.end());
  EXPECT_EQ(placeIn(both)->source, "Open MPI's environment");
  both.insert(torchrun.begin(), torchrun.end());
  EXPECT_EQ(placeIn(both)->source, "torchrun's environment");
}

TEST(Launch, RefusesContradictions) {
  EXPECT_EQ(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "torchrun's environment: expected RANK below WORLD_SIZE, from 0 to 1, found RANK=2 and "
            "WORLD_SIZE=2");
  EXPECT_EQ(
      refusal({{"RANK", "0"}}),
      "the environment has RANK without WORLD_SIZE; torchrun sets both: set both, or unset both");
  EXPECT_NE(refusal({{"WORLD_SIZE", "2"}}).find("WORLD_SIZE without RANK"), std::string::npos);
  EXPECT_EQ(refusal({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}),
            "the environment's RANK: expected a whole number, found '-1'");
  EXPECT_NE(refusal({{"RANK", "1x"}, {"WORLD_SIZE", "2"}}).find("found '1x'"), std::string::npos);
  EXPECT_NE(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}})
                .find("LOCAL_RANK below 2, found 2"),
            std::string::npos);
  EXPECT_NE(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "3"}})
                .find("from 1 to the 2"),
            std::string::npos);
  EXPECT_NE(
      refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}).find("found 70000"),
      std::string::npos);
}

TEST(Agreement, NamesValuesAndRanks) {
  auto textOf = [](const char *steps, const char *more = nullptr) {
    Agreement agreement;
    agreement.add("version", "1");
    agreement.add("--steps", steps);
    if (more)
      agreement.add(more, "1");
    return agreement.text();
  };
  auto differences = [](const std::vector<std::string> &texts) -> std::string {
    try {
      compareAgreements(texts);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(differences({textOf("3"), textOf("3"), textOf("3")}), "");
  std::string told = differences({textOf("3"), textOf("3"), textOf("4")});
  EXPECT_NE(told.find("--steps is '3' on rank 0 and '4' on rank 2"), std::string::npos) << told;
  told = differences({textOf("3"), textOf("3", "--new")});
  EXPECT_NE(told.find("--new is not set on rank 0 and '1' on rank 1"), std::string::npos) << told;
}

TEST(Agreement, ComparesNoDetails) {
  auto textOf = [](const char *content, const std::string &path) {
    Agreement agreement;
    agreement.add("the content of --text", content, path);
    return agreement.text();
  };
  compareAgreements({textOf("abc", "a.txt"), textOf("abc", "b\tc\nd.txt")});
  try {
    compareAgreements(
        {textOf("abc", "a.txt"), textOf("abd", "b\tc\nd" + std::string(200, 'x') + ".txt")});
    ADD_FAILURE() << "two contents were taken for one";
  } catch (const Error &error) {
    std::string told = error.what();
    EXPECT_NE(told.find("the content of --text is 'abc' (a.txt) on rank 0 and 'abd' (...xxx"),
              std::string::npos)
        << told;
    EXPECT_NE(told.find("xxx.txt) on rank 1"), std::string::npos) << told;
  }
}

TEST(Launch, NamesTheJob) {
  auto jobOf = [](std::map<std::string, std::string> more) {
    more.insert({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}});
    return placeIn(more)->job;
  };
  EXPECT_EQ(jobOf({}), "");
  EXPECT_EQ(jobOf({{"SLURM_JOB_ID", "12"}, {"SLURM_STEP_ID", "3"}}), "'12' (Slurm)");
  EXPECT_EQ(jobOf({{"SLURM_JOB_ID", "12"}, {"PMIX_NAMESPACE", "n7"}}), "'n7' (PMIX_NAMESPACE)");
  EXPECT_EQ(jobOf({{"TORCHELASTIC_RUN_ID", "x"}, {"TORCHELASTIC_RESTART_COUNT", "0"}}),
            "'x' (torchrun)");
  EXPECT_EQ(jobOf({{"TORCHELASTIC_RUN_ID", "x"}, {"TORCHELASTIC_RESTART_COUNT", "2"}}),
            "'x' (torchrun) restarted 2 times");
  // The default run id of torchrun is the same for all jobs, but each job has its own log folder.
  EXPECT_EQ(jobOf({{"TORCHELASTIC_RUN_ID", "none"}}), "");
  std::map<std::string, std::string> none = {
      {"TORCHELASTIC_RUN_ID", "none"},
      {"TORCHELASTIC_ERROR_FILE", "/tmp/t_1/none_2/attempt_0/1/error.json"}};
  EXPECT_EQ(jobOf(none), "'/tmp/t_1/none_2/attempt_0' (torchrun)");
  // If several torchrun agents start the ranks, each agent has its own log folder.
  none["LOCAL_WORLD_SIZE"] = "1";
  EXPECT_EQ(jobOf(none), "");
  none["FSDP_RUN_JOB_ID"] = "mine";
  EXPECT_EQ(jobOf(none), "'mine' (FSDP_RUN_JOB_ID)");
  EXPECT_LT(jobOf({{"FSDP_RUN_JOB_ID", std::string(1000, 'x')}}).size(), sizeof Frame::job);
  EXPECT_EQ(placeIn({{"SLURM_PROCID", "1"},
                     {"SLURM_NTASKS", "2"},
                     {"SLURM_JOB_ID", "12"},
                     {"SLURM_STEP_ID", "3"}})
                ->job,
            "'12.3' (Slurm)");
}

namespace {
class LaunchRun : public Run {
protected:
  void refuse(const std::string &words, const std::string &arguments,
              const std::string &environment) {
    Result result = run(arguments, environment);
    EXPECT_EQ(result.code, 2) << result.output;
    EXPECT_NE(result.output.find(words), std::string::npos) << result.output;
  }
};
} // namespace

TEST_F(LaunchRun, RefusesContradictions) {
  refuse("--ranks=3, but the process is rank 1 of 2 from torchrun's environment",
         "toy2.fsdp --ranks=3 --steps=1", "RANK=1 WORLD_SIZE=2");
  refuse("expected RANK below WORLD_SIZE, from 0 to 1, found RANK=2 and WORLD_SIZE=2",
         "toy2.fsdp --steps=1", "RANK=2 WORLD_SIZE=2");
  refuse("compiled for 3 ranks, but the process is rank 1 of 2 from Open MPI's environment",
         "toy3.fsdp --steps=1", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2");
  refuse("rank 1 of 2 from torchrun's environment, without a place where ranks meet: set "
         "MASTER_ADDR and MASTER_PORT",
         "toy2.fsdp --steps=1", "RANK=1 WORLD_SIZE=2");
  refuse("has MASTER_ADDR without MASTER_PORT", "toy2.fsdp --steps=1",
         "RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost");
  refuse("4 of them on this machine", "toy2.fsdp --steps=1",
         "RANK=1 WORLD_SIZE=8 LOCAL_WORLD_SIZE=4 MASTER_ADDR=n0 MASTER_PORT=1 "
         "TORCHELASTIC_USE_AGENT_STORE=True");
  refuse("--on-failure=restart needs --processes",
         "toy2.fsdp --save=s --backend=shm --on-failure=restart",
         "RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1");
  refuse("--backend=local has all ranks in one process, but this process is rank 0 of 2 from Open "
         "MPI's environment",
         "toy2.fsdp --steps=1 --backend=local", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2");
  refuse("--processes starts all ranks", "toy2.fsdp --steps=1 --processes",
         "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2");
}

TEST_F(LaunchRun, OneProcessIsAloneWithAllRanks) {
  Result result = run("toy2.fsdp --steps=2", "RANK=0 WORLD_SIZE=1");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("2 ranks"), std::string::npos) << result.output;
}

TEST_F(MpiRun, LeavesTheSameFiles) {
  for (int ranks : {2, 3}) {
    std::string n = std::to_string(ranks),
                common = "toy" + n + ".fsdp --text=words --save-every=3 --save=";
    expect(0, "step 6/6", common + "a" + n + " --steps=6 --export=a.st");
    expectMpi(ranks, 0, "step 6/6",
              common + "b" + n + " --steps=6 --export=b.st --metrics=b.jsonl --val-every=2");
    expectSame("a.st", "b.st");
    EXPECT_EQ(bash("test $(wc -l < b.jsonl) = 6"), 0);
    // A run under mpirun resumes from a save of a run without mpirun, and vice versa.
    expectMpi(ranks, 0, "resumed",
              common + "a" + n + " --resume=a" + n + " --steps=9 --export=a.st");
    expect(0, "resumed", common + "b" + n + " --resume=b" + n + " --steps=9 --export=b.st");
    expectSame("a.st", "b.st");
  }
}

TEST_F(MpiRun, TakesWeightsAndSaysWhoItIs) {
  expect(0, "", "toy3.fsdp --text=words --steps=2 --export=w.st");
  expect(0, "", "toy3.fsdp --text=words --steps=4 --init=w.st --export=a.st");
  expectMpi(3, 0, "rank 0 of 3 from Open MPI's environment, over mpi",
            "toy3.fsdp --text=words --steps=4 --init=w.st --export=b.st --trace=t.json");
  expectSame("a.st", "b.st");
  for (const char *rank : {"\"pid\":0", "\"pid\":1", "\"pid\":2"})
    EXPECT_NE(text("t.json").find(rank), std::string::npos) << rank;
}

// The ranks meet over MPI, and collectives use the NCCL stub.
TEST_F(MpiRun, LeavesTheSameFilesOverNccl) {
  for (int ranks : {1, 2, 4}) {
    std::string n = std::to_string(ranks),
                common = "toy" + n + ".fsdp --text=words --save-every=3 --save=";
    expect(0, "step 6/6", common + "a" + n + " --steps=6 --export=a.st");
    expectMpi(ranks, 0, "ranks communicate over NCCL 2.30.7",
              common + "b" + n + " --steps=6 --export=b.st --backend=nccl");
    expectSame("a.st", "b.st");
    expectSame("a" + n, "b" + n);
  }
}

TEST_F(MpiRun, NcclFails) {
  expectMpi(2, FSDPRT_FAILED, "rank 1 at collective ", "toy2.fsdp --steps=4 --backend=nccl",
            "env FSDPRT_NCCL_STUB=error=3,error_rank=1,error_at=5");
  Result result = run("toy2.fsdp --steps=4 --backend=nccl --timeout-seconds=6",
                      mpi(2, "env FSDPRT_NCCL_STUB=hang_at=5"));
  EXPECT_NE(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("which all its ranks have started and NCCL 2.30.7"),
            std::string::npos)
      << result.output;
}

// mpirun returns the exit code of the process that ends first. In this test, the process that ends
// first is not the process that has failed.
TEST_F(MpiRun, OthersEndWithTheStatusOfTheFailure) {
  script("late", "[ $OMPI_COMM_WORLD_RANK = 0 ] && exec \"$@\"; env $FAULT \"$@\"; code=$?; sleep "
                 "2; exit $code");
  std::string full =
      "env FAULT='LD_PRELOAD=" FSDPRT_FAILPOINT " FAIL_HOW=full FAIL_AT=1 FAIL_IN=saves' ";
  expectMpi(2, FSDPRT_FAILED, "rank 0: step 4 could not be saved: rank 1: saves",
            "toy2.fsdp --steps=4 --save=saves", full + "sh ./late");
  expectMpi(2, FSDPRT_FAILED, "rank 0: step 1: stopped because another rank failed",
            "toy2.fsdp --steps=4 --backend=nccl",
            "env FAULT= FSDPRT_NCCL_STUB=error=3,error_rank=1,error_at=5 sh ./late");
}

TEST_F(MpiRun, ChecksAgainstUnsharded) {
  expectMpi(2, 0, "check against unsharded passed: 5 steps on 2 ranks",
            "toy2.fsdp --text=words --steps=5 --check-against=unsharded");
  expectMpi(2, 1, "check against unsharded failed",
            "toy2.fsdp --steps=5 --check-against=unsharded --inject-fault=drop-gradient");
}

TEST_F(MpiRun, RefusesWhatRanksDoNotShare) {
  ToyOptions options;
  options.shards = 2;
  options.asynchronous = false;
  std::vector<std::byte> file = pack(toyManifest(options));
  writeFile(at("other.fsdp"), file.data(), file.size());
  // In these scripts, rank 1 has another number of steps or another artifact than rank 0.
  script("steps", "[ $OMPI_COMM_WORLD_RANK = 1 ] && set -- \"$1\" \"$2\" --steps=4; exec \"$@\"");
  script("artifact", "run=$1; shift 2; [ $OMPI_COMM_WORLD_RANK = 1 ] && exec $run other.fsdp "
                     "\"$@\"; exec $run toy2.fsdp \"$@\"");
  expectMpi(2, 2, "--steps is '3' on rank 0 and '4' on rank 1", "toy2.fsdp --steps=3",
            "sh ./steps");
  expectMpi(2, 2, "the artifact's SHA-256 is '", "toy2.fsdp --steps=3", "sh ./artifact");
  expectMpi(3, 2, "compiled for 2 ranks, but the process is rank", "toy2.fsdp --steps=3");
}

TEST_F(MpiRun, NamesARankThatIsStopped) {
  script("stops", "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then me=$$; (for i in $(seq 300); do [ -s m ] "
                  "&& break; sleep 0.1; done; "
                  "sleep 1; kill -STOP $me; sleep 60; kill -KILL $me) & fi; exec \"$@\"");
  Result result =
      run("toy2.fsdp --steps=100000000 --timeout-seconds=2 --metrics=m", mpi(2, "sh ./stops"));
  EXPECT_NE(result.code, 0);
  EXPECT_NE(result.output.find("rank 0 waited 2 s"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("rank 1 (last seen in step"), std::string::npos) << result.output;
}
