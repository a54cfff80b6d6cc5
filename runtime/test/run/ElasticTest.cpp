//===- ElasticTest.cpp - Restarts with fewer ranks --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests which artifacts --elastic finds in a folder, how a run restarts after the loss of ranks,
// and which artifact the ranks of a launcher's job choose.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "test/launch/Ports.h"
#include "test/run/RunFixture.h"
#include "train/ElasticArtifacts.h"

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
class Elastic : public Run {
protected:
  /// Creates a folder that contains only one artifact for each mesh.
  void SetUp() override {
    Run::SetUp();
    for (int shards = 1; shards <= 4; ++shards)
      std::remove(at("async" + std::to_string(shards) + ".fsdp").c_str());
  }
  void add(const std::string &name, const fb::ManifestT &manifest) {
    auto file = pack(manifest);
    writeFile(at(name), file.data(), file.size());
  }
  static fb::ManifestT toy(uint64_t shards, std::vector<std::string> options = {}) {
    ToyOptions with;
    with.shards = shards;
    auto manifest = toyManifest(with);
    manifest.options = std::move(options);
    return manifest;
  }
  std::string found(const std::string &artifact, uint64_t least, uint64_t most) {
    try {
      std::string list = ElasticArtifacts(at(artifact), folder, least, most).text();
      for (size_t here; (here = list.find(folder + "/")) != std::string::npos;)
        list.erase(here, folder.size() + 1);
      return list;
    } catch (const Error &error) {
      EXPECT_EQ(error.status, FSDPRT_BAD_INPUT);
      return error.what();
    }
  }
  void expectIn(const std::string &text, const std::string &words) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
};
} // namespace

TEST_F(Elastic, FindsArtifactsOfTheModel) {
  EXPECT_EQ(found("toy4.fsdp", 2, 4), "4 ranks: toy4.fsdp, 3 ranks: toy3.fsdp, 2 ranks: toy2.fsdp");
  EXPECT_EQ(found("toy2.fsdp", 1, 3), "3 ranks: toy3.fsdp, 2 ranks: toy2.fsdp, 1 rank: toy1.fsdp");
  // An option such as --async-save makes an artifact less similar to the given artifact.
  auto copies = pack(toyManifest({.shards = 3, .snapshot = true}));
  writeFile(at("copies.fsdp"), copies.data(), copies.size());
  EXPECT_EQ(found("toy4.fsdp", 3, 4), "4 ranks: toy4.fsdp, 3 ranks: toy3.fsdp");
  std::remove(at("copies.fsdp").c_str());
  // Artifacts of other models, damaged artifacts, and files without the extension are ignored.
  auto other = toy(3);
  other.params[0]->name = "v";
  add("toy3.fsdp", other);
  auto sgd = toy(2);
  sgd.params.pop_back();
  add("toy2.fsdp", sgd);
  auto damaged = pack(toy(5));
  damaged[damaged.size() / 2] ^= std::byte{4};
  writeFile(at("damaged.fsdp"), damaged.data(), damaged.size());
  add("toy6.artifact", toy(6));
  ASSERT_EQ(bash("mkdir folder.fsdp"), 0);
  EXPECT_EQ(found("toy4.fsdp", 1, 9), "4 ranks: toy4.fsdp, 1 rank: toy1.fsdp");
  expectIn(found("toy4.fsdp", 5, 9), "--elastic=5:9: " + at("toy4.fsdp") +
                                         " is for 4 ranks; expected a range that includes it");
}

TEST_F(Elastic, PrefersTheNearestArtifact) {
  // Artifacts are compared by these criteria, in this order: whether the file is named after the
  // given artifact, the number of differing compiler options, and the number of tokens of a step.
  add("a.fsdp", toy(4, {"mesh=shard=4", "overlap=true"}));
  add("toy3.fsdp", toy(3, {"mesh=shard=3"}));
  auto fewer = toy(3, {"mesh=shard=3", "overlap=true"});
  fewer.tokens_per_rank = 4;
  add("b.fsdp", fewer);
  EXPECT_EQ(found("a.fsdp", 3, 4), "4 ranks: a.fsdp, 3 ranks: b.fsdp");
  add("c.fsdp", toy(3, {"mesh=shard=3", "overlap=true", "grad-accum=2"}));
  EXPECT_EQ(found("a.fsdp", 3, 4), "4 ranks: a.fsdp, 3 ranks: c.fsdp");
  auto nearer = toy(3, {"mesh=shard=3", "overlap=true"});
  nearer.tokens_per_rank = 10;
  add("d.fsdp", nearer);
  EXPECT_EQ(found("a.fsdp", 3, 4), "4 ranks: a.fsdp, 3 ranks: d.fsdp");
  nearer.constants = 1;
  add("e.fsdp", nearer);
  expectIn(found("a.fsdp", 3, 4), "--elastic: expected one artifact for 3 ranks of the model in");
  expectIn(found("a.fsdp", 3, 4),
           "d.fsdp and " + at("e.fsdp") + ", which are equally near to it; remove one of them");
  add("a.shard3.fsdp", toy(3, {"mesh=shard=3", "beta2=0.5"}));
  EXPECT_EQ(found("a.fsdp", 3, 4), "4 ranks: a.fsdp, 3 ranks: a.shard3.fsdp");
  EXPECT_EQ(found("a.fsdp", 4, 4), "4 ranks: a.fsdp");
}

TEST_F(Elastic, RefusesBadUsage) {
  for (std::string bad : {"2", "0:2", "3:2", "2:", ":2", "2:x", "2-4", "2:4:6", "-1:2"})
    expect(2, "--elastic: expected MIN:MAX, numbers of ranks from 1, such as 2:8, found '" + bad,
           "toy4.fsdp --processes --save=s --on-failure=restart --elastic=" + bad);
  expect(2, "--elastic needs --on-failure=restart with --processes",
         "toy4.fsdp --processes --elastic=2:4");
  expect(2, "--elastic has no effect without --processes or a launcher", "toy4.fsdp --elastic=2:4");
  expect(2, "--elastic-artifacts requires --elastic", "toy4.fsdp --elastic-artifacts=.");
  expect(2, "--launched-artifact are for processes started by fsdp-run itself",
         "toy4.fsdp --launched-artifact=toy3.fsdp");
  std::string elastic = "toy4.fsdp --processes --save=s --on-failure=restart --elastic=";
  expect(2, "is for 4 ranks; expected a range that includes it", elastic + "2:3");
  expect(2,
         "--elastic=4:8: expected an artifact for another number of ranks, found those for 4 "
         "ranks: toy4.fsdp; compile one with fsdp-compile --also-mesh=shard=N",
         elastic + "4:8");
  writeFile(at("toy4.shard3.fsdp"), "not an artifact", 15);
  expect(2, "warning: --elastic does not use toy4.shard3.fsdp: ", elastic + "4:8");
  expect(2, "no: cannot search for artifacts for --elastic: No such file",
         elastic + "2:4 --elastic-artifacts=no");
}

TEST_F(Elastic, GoesOnWithTheRanksThatAreLeft) {
  std::string elastic = "--processes --steps=8 --save-every=2 --on-failure=restart --elastic=2:4 "
                        "--ranks=4 --inject-rank-fault=";
  Result result =
      run("toy4.fsdp --save=a --export=a.st --metrics=m --seed=3 " + elastic + "kill:1:reduce:5");
  EXPECT_EQ(result.code, 0) << result.output;
  for (std::string words :
       {"elastic: 4 ranks: toy4.fsdp, 3 ranks: toy3.fsdp, 2 ranks: toy2.fsdp",
        "restarting from the last save in a on 3 ranks with toy3.fsdp (1 of at most 3)",
        "resumed after step 4 of a/step-00000004", "a step has 6 samples of 'ids'", "step 8/8"})
    expectIn(result.output, words);
  // The weights must equal the weights of a run that ends after step 4 and is resumed on 3 ranks.
  expect(0, "saved step 4", "toy4.fsdp --steps=4 --save=b --seed=3");
  expect(0, "saved step 8", "toy3.fsdp --steps=8 --save=b --resume=b --export=b.st");
  EXPECT_TRUE(text("a.st") == text("b.st"));
  EXPECT_EQ(bash("[ $(wc -l <m) = 8 ]"), 0) << text("m");
  expect(0, "resumed after step 8", "toy4.fsdp --steps=9 --save=a --resume=a");
  // A rank that sends no heartbeats counts as lost, too. Without a save, the run restarts from the
  // beginning.
  result = run("toy3.fsdp --save=c " + elastic + "stop:0:gather:1 --heartbeat-seconds=3 --ranks=3");
  EXPECT_EQ(result.code, 2) << result.output; // --ranks is given twice
  result = run("toy3.fsdp --processes --steps=3 --save=c --on-failure=restart --elastic=2:3 "
               "--heartbeat-seconds=6 --inject-rank-fault=stop:2:gather:1");
  EXPECT_EQ(result.code, 0) << result.output;
  expectIn(result.output, "restarting from the beginning on 2 ranks with toy2.fsdp (1 of at most");
}

TEST_F(Elastic, ShrinksUntilTheLeast) {
  // The fault of rank 2 occurs again after each restart, until there is no rank 2.
  Result result = run("toy4.fsdp --processes --steps=3 --save=a --on-failure=restart "
                      "--elastic=1:4 --inject-rank-fault=kill:2:compute:2");
  EXPECT_EQ(result.code, 0) << result.output;
  expectIn(result.output, "on 3 ranks with toy3.fsdp (1 of at most 3)");
  expectIn(result.output, "on 2 ranks with toy2.fsdp (2 of at most 3)");
  expectIn(result.output, "toy2.fsdp: 2 processes");
  result = run("toy4.fsdp --processes --steps=3 --save=b --on-failure=restart "
               "--elastic=3:4 --inject-rank-fault=kill:2:compute:2");
  EXPECT_EQ(result.code, FSDPRT_LOST) << result.output;
  expectIn(result.output, "on 3 ranks with toy3.fsdp (1 of at most 3)");
  expectIn(result.output, "; no restart: --elastic=3:4: expected an artifact for at most 2 ranks, "
                          "found those for 4 ranks: toy4.fsdp, 3 ranks: toy3.fsdp");
  // 3 ranks are left, but there is no artifact for 3 ranks, so that the run restarts on 2 ranks.
  ASSERT_EQ(bash("rm toy3.fsdp"), 0);
  result = run("toy4.fsdp --processes --steps=3 --save=c --on-failure=restart "
               "--elastic=1:4 --inject-rank-fault=kill:2:compute:2");
  EXPECT_EQ(result.code, 0) << result.output;
  expectIn(result.output, "on 2 ranks with toy2.fsdp (1 of at most 3)");
}

TEST_F(Elastic, CountsEachLostRank) {
  EXPECT_EQ(bash("exec 2>&1 >out\n" FSDP_RUN
                 " toy4.fsdp --processes --steps=200000 --save=s --on-failure=restart "
                 "--elastic=1:4 >log 2>&1 & run=$!\n"
                 "for i in $(seq 300); do grep -q 'step 1/' log && break; sleep 0.1; done\n"
                 "kill -KILL $(pgrep -P $run -f launched-rank=1) $(pgrep -P $run -f "
                 "launched-rank=3)\n"
                 "for i in $(seq 300); do grep -q 'toy2.fsdp: 2 proc' log && break; sleep 0.1; "
                 "done\n"
                 "kill -TERM $run; wait $run; [ $? = 143 ]"),
            0)
      << text("log").substr(0, 4000);
  expectIn(text("log"), "restarting from the beginning on 2 ranks with toy2.fsdp (1 of at most 3)");
}

/// With --elastic, the ranks of a launcher's job load the artifact for their number of ranks.
TEST_F(Elastic, FollowsTheLauncher) {
  auto start = [&](int ranks, const std::string &arguments) {
    std::string port = std::to_string(freePort()), script;
    for (int rank = 0; rank < ranks; ++rank)
      script += format("RANK=%d WORLD_SIZE=%d MASTER_ADDR=127.0.0.1 MASTER_PORT=%s " FSDP_RUN
                       " %s >log.%d 2>&1 & p%d=$!\n",
                       rank, ranks, port.c_str(), arguments.c_str(), rank, rank);
    for (int rank = 0; rank < ranks; ++rank)
      script += format("wait $p%d || code=$?\n", rank);
    return bash("code=0\n" + script + "exit $code");
  };
  EXPECT_EQ(start(4, "toy4.fsdp --elastic=1:4 --steps=2 --save=s"), 0) << text("log.0");
  for (int ranks : {3, 1}) {
    std::string steps = std::to_string(6 - ranks);
    EXPECT_EQ(start(ranks, "toy4.fsdp --elastic=1:4 --save=s --resume=s --steps=" + steps), 0)
        << text("log.0");
    expectIn(text("log.0"), "toy" + std::to_string(ranks) + ".fsdp: " + std::to_string(ranks));
    expectIn(text("log.0"), "saved step " + steps);
  }
  EXPECT_EQ(start(2, "toy4.fsdp --elastic=3:4 --save=s --resume=s"), 2);
  expectIn(text("log.1"), "--elastic=3:4: expected an artifact for 2 ranks, found those for 4");
}
