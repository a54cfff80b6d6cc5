//===- ProcessesTest.cpp - One process per rank -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests that fsdp-run --processes writes the same files as fsdp-run.
//
//===----------------------------------------------------------------------===//

#include "test/run/RunFixture.h"

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
class Processes : public Run {
protected:
  void SetUp() override {
    Run::SetUp();
    std::string words;
    for (int i = 0; i < 3000; ++i)
      words += static_cast<char>('a' + i * i % 23);
    writeFile(at("words"), words.data(), words.size());
  }
  void expectSame(const std::string &a, const std::string &b) {
    EXPECT_EQ(bash("diff -r " + a + " " + b), 0) << a << " and " << b;
  }
};
} // namespace

TEST_F(Processes, LeaveTheSameFiles) {
  for (int ranks : {1, 2, 3, 4}) {
    std::string n = std::to_string(ranks),
                common = "toy" + n + ".fsdp --text=words --save-every=3 --save=";
    expect(0, "step 6/6", common + "a" + n + " --steps=6 --export=a.st --tensorboard=ta" + n);
    expect(0, "step 6/6",
           common + "b" + n + " --steps=6 --export=b.st --processes --tensorboard=tb" + n);
    expectSame("a.st", "b.st");
    expectSame("a" + n, "b" + n);
    // A run with --processes resumes from a save of a run without --processes, and vice versa.
    expect(0, "resumed",
           common + "a" + n + " --resume=a" + n + " --processes --steps=9 --export=a.st");
    expect(0, "resumed", common + "b" + n + " --resume=b" + n + " --steps=9 --export=b.st");
    expectSame("a.st", "b.st");
    expectSame("a" + n, "b" + n);
  }
}

/// Uses the NCCL stub, which adds in the order of the ranks, so that the results are equal.
TEST_F(Processes, LeaveTheSameFilesOverNccl) {
  ToyOptions options;
  options.shards = options.replicas = 2;
  auto file = pack(toyManifest(options));
  writeFile(at("toy2x2.fsdp"), file.data(), file.size());
  for (std::string mesh : {"1", "2", "3", "4", "2x2"}) {
    std::string common =
        "toy" + mesh + ".fsdp --text=words --steps=6 --save-every=3 --val-every=2 --save=";
    expect(0, "step 6/6", common + "a" + mesh + " --export=a.st");
    Result result =
        run(common + "b" + mesh + " --export=b.st --processes --backend=nccl --trace=t.json");
    EXPECT_EQ(result.code, 0) << result.output;
    for (const char *words : {"step 6/6", "ranks communicate over NCCL 2.30.7", "steps of "})
      EXPECT_NE(result.output.find(words), std::string::npos) << words << "\n" << result.output;
    expectSame("a.st", "b.st");
    expectSame("a" + mesh, "b" + mesh);
  }
  expect(0, "check against unsharded passed: 5 steps on 3 ranks",
         "toy3.fsdp --processes --backend=nccl --text=words --steps=5 --check-against=unsharded");
  expect(2, "--processes needs --backend=shm or nccl, found --backend=mpi",
         "toy2.fsdp --processes --backend=mpi");
}

TEST_F(Processes, NeedADeviceEachOverNccl) {
  Result result =
      run("toy3.fsdp --processes --backend=nccl --steps=2", "FSDPRT_NCCL_STUB=devices=2");
  EXPECT_EQ(result.code, 2) << result.output;
  EXPECT_NE(result.output.find("expected a CUDA device for each rank, found one shared by ranks 0 "
                               "and 2; NCCL 2.30 with NCCL_MULTI_RANK_GPU_ENABLE=1 allows several "
                               "ranks on one device"),
            std::string::npos)
      << result.output;
  EXPECT_EQ(run("toy3.fsdp --processes --backend=nccl --steps=2",
                "NCCL_MULTI_RANK_GPU_ENABLE=1 FSDPRT_NCCL_STUB=devices=2")
                .code,
            0);
}

TEST_F(Processes, TakeWeightsAndReport) {
  expect(0, "", "toy3.fsdp --text=words --steps=2 --export=w.st");
  std::string common =
      "toy3.fsdp --text=words --steps=4 --init=w.st --val-every=2 --assert-no-allocations ";
  Result threads = run(common + "--export=a.st --metrics=a.jsonl");
  Result processes =
      run(common + "--export=b.st --metrics=b.jsonl --backend=shm --profile --trace=t.json");
  EXPECT_EQ(threads.code, 0) << threads.output;
  EXPECT_EQ(processes.code, 0) << processes.output;
  expectSame("a.st", "b.st");
  EXPECT_EQ(bash("for f in a b; do grep -o "
                 "'\"loss\":[^,]*\\|\"validation_loss\":[^,}]*\\|\"all_gather_bytes\":[^,]*' "
                 "$f.jsonl > $f.losses; done; diff a.losses b.losses && test -s a.losses"),
            0);
  for (const char *words : {"3 processes", "profile: 3 steps", "trace: the last 4 steps of 3 ranks",
                            "no memory was allocated", "validation loss"})
    EXPECT_NE(processes.output.find(words), std::string::npos) << words << "\n" << processes.output;
  for (const char *rank : {"\"pid\":0", "\"pid\":1", "\"pid\":2"})
    EXPECT_NE(text("t.json").find(rank), std::string::npos) << rank;
}

TEST_F(Processes, CheckAgainstUnsharded) {
  expect(0, "check against unsharded passed: 5 steps on 3 ranks",
         "toy3.fsdp --processes --text=words --steps=5 --check-against=unsharded");
  expect(1, "check against unsharded failed",
         "toy3.fsdp --processes --steps=5 --check-against=unsharded --inject-fault=drop-gradient");
  expect(1, "check against unsharded failed",
         "toy2.fsdp --processes --steps=5 --check-against=unsharded "
         "--inject-fault=skip-shard-element");
}

TEST_F(Processes, SayOnceWhatIsWrong) {
  Result result = run("toy3.fsdp --processes --text=nothing");
  EXPECT_EQ(result.code, 2) << result.output;
  EXPECT_EQ(result.output,
            "fsdp-run: error: nothing: cannot open the tokens: No such file or directory\n");
  expect(2, "compiled for 3 ranks", "toy3.fsdp --processes --ranks=2");
  expect(2, "--heartbeat-seconds applies to several processes", "toy3.fsdp --heartbeat-seconds=3");
  expect(2, "cannot", "toy3.fsdp --processes --export=no/such/folder --steps=2");
}

// The test sends the signal only to the launcher.
TEST_F(Processes, EndBehindAStepWhenAsked) {
  EXPECT_EQ(bash(FSDP_RUN
                 " toy3.fsdp --processes --steps=100000000 --save=saves >log 2>&1 & run=$!\n"
                 "for i in $(seq 600); do grep -q '^step' log && break; sleep 0.1; done\n"
                 "kill -TERM $run; wait $run; code=$?; cat log >&2\n"
                 "grep -q 'interrupted after step' log && test -s saves/latest || exit 99\n"
                 "pgrep -P $run && exit 98; exit $code"),
            128 + 15);
}
