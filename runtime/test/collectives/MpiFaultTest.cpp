//===- MpiFaultTest.cpp - A rank under mpirun is lost -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests that a run under mpirun ends soon after one of its ranks ends or stops. mpirun itself
// detects that a process has ended. The exit code of the run must not be 0.
//
//===----------------------------------------------------------------------===//

#include "fsdprt/fsdprt.h"
#include "test/collectives/MpiFixture.h"

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
class MpiFaults : public MpiRun {
protected:
  /// Runs fsdp-run with a fault, and with so many steps that a run without the fault would take
  /// more than 600 s. The limit is much longer than any run, because all processes of the run may
  /// be stopped for minutes.
  Result lose(const std::string &fault, const std::string &options = "",
              const std::string &mpiOptions = "") {
    Result result = run("toy3.fsdp --steps=100000000 --inject-rank-fault=" + fault + " " + options,
                        "timeout 600 " + mpi(3, mpiOptions));
    EXPECT_NE(result.code, 124) << fault << ": it did not end\n" << result.output;
    EXPECT_NE(bash("pgrep -f ' toy3.fsdp --steps=100000000 --inject-rank-fault=" + fault + "'"), 0)
        << fault << ": a process is left\n"
        << result.output;
    return result;
  }
};
} // namespace

// If a rank is killed, mpirun ends the other ranks, usually with a message of mpirun.
TEST_F(MpiFaults, AKilledRankEndsAll) {
  for (std::string fault :
       {"kill:1:gather:3", "kill:0:compute:3", "kill:2:reduce:3", "kill:1:start:0"}) {
    Result result = lose(fault);
    EXPECT_EQ(result.code, 128 + 9) << fault << "\n" << result.output;
  }
}

// Even if a rank ends early with exit code 0, mpirun must return another exit code.
TEST_F(MpiFaults, ARankThatEndsEarlyEndsAll) {
  Result result = lose("exit:1:compute:3");
  EXPECT_NE(result.code, 0) << result.output;
}

TEST_F(MpiFaults, SurvivorsNameARankThatMpirunPassesOver) {
  if (bash("mpirun --version | grep -q 'Open MPI'") != 0)
    GTEST_SKIP() << "mpirun is not Open MPI's";
  Result result = lose("kill:1:gather:3", "--timeout-seconds=6", "--enable-recovery");
  EXPECT_NE(result.output.find("step 3: rank "), std::string::npos) << result.output;
  // The missing heartbeats are reported before the progress timeout of the watchdog expires.
  EXPECT_NE(result.output.find("rank 1 has sent no heartbeat for 3 s: rank 1 (last seen"),
            std::string::npos)
      << result.output;
}

// In the first run, the processors of all ranks lack a feature. In the second run, only the
// processor of one rank lacks the feature.
TEST_F(MpiFaults, RefusesAnArtifactForANewerProcessor) {
  ToyOptions options;
  options.shards = 2;
  auto manifest = toyManifest(options);
  manifest.isa = {"sse2"};
  auto file = pack(manifest);
  writeFile(at("toyisa.fsdp"), file.data(), file.size());
  script("one", "[ $OMPI_COMM_WORLD_RANK = 1 ] && export FSDPRT_HIDE_FEATURES=sse2; exec \"$@\"");
  expectMpi(2, FSDPRT_BAD_INPUT, "processor features that this machine lacks: sse2",
            "toyisa.fsdp --steps=2", "env FSDPRT_HIDE_FEATURES=sse2");
  expectMpi(2, FSDPRT_BAD_INPUT,
            "rank 1: toyisa.fsdp: manifest: the kernels need processor features",
            "toyisa.fsdp --steps=2", "sh ./one");
  expectMpi(2, 0, "step 2/2", "toyisa.fsdp --steps=2");
}
