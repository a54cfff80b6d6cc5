//===- NullRanksTest.cpp - Ranks that differ, damaged files -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "null/Shadow.h"
#include "test/null/HandMade.h"
#include <gtest/gtest.h>
#include <random>

using namespace fsdprt;
using namespace fsdprt::test;
using Kind = fb::CollectiveKind;

/// Returns the text of the findings of a run in which `ranks` run the artifact of `peer`.
static std::string findingsWithPeers(const HandMade &hand, std::vector<uint64_t> ranks,
                                     const HandMade &peer) {
  NullOptions options;
  for (uint64_t rank : ranks)
    options.peers[rank] = peer.artifact();
  std::string text;
  for (const Finding &finding : hand.walk(options).findings)
    text += finding.text + "\n";
  return text;
}

/// Returns a step with two gathers, one over each of two axes. If `swapped` is true, the two
/// gathers change places.
static HandMade twoAxes(bool swapped) {
  HandMade hand(2, 2);
  fb::Slice a = hand.buffer("a", 512, 0, 1), b = hand.buffer("b", 512, 0, 1);
  for (uint32_t axis : swapped ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{1, 0})
    hand.collective(hand.step(), Kind::all_gather, axis, hand.parameter(), axis ? a : b, 64, 0,
                    {axis});
  return hand;
}

TEST(Null, MembersOfAGroupStartTheSameCollectives) {
  EXPECT_EQ(findingsWithPeers(soundStep(), {1}, soundStep()), "");
  HandMade other = soundStep();
  other.step()[0]->body.AsCollective()->id = 9;
  other.step()[1]->body.AsWait()->id = 9;
  std::string text = findingsWithPeers(soundStep(), {1}, other);
  EXPECT_TRUE(contains(text, "order: program 'step': rank 0 is at command 0 (all_gather 'u', "
                             "collective 7 on channel 1, 64 elements of "
                             "f32, [0, +256) -> "
                             "[512, +512), 512 bytes), while rank 1 is at command 0 (all_gather "
                             "'u', collective 9 on channel 1"))
      << text;
  HandMade less = soundStep();
  less.step().resize(3);
  text = findingsWithPeers(soundStep(), {1}, less);
  EXPECT_TRUE(contains(text, "rank 0 is at command 3 (reduce_scatter") &&
              contains(text, "while rank 1 is at the end of the program"))
      << text;
}

/// Each case changes one property of a collective on one rank, so that the property is no longer
/// equal on all members of the group.
TEST(Null, MembersAgreeOnAllOfACollective) {
  auto text = [](void (*change)(fb::CollectiveT &)) {
    HandMade other = soundStep();
    change(*other.step()[3]->body.AsCollective());
    return findingsWithPeers(soundStep(), {1}, other);
  };
  const char *words = "expected the same collective on all members of a group";
  EXPECT_EQ(text([](fb::CollectiveT &) {}), "");
  for (auto change : {+[](fb::CollectiveT &c) {
                        c.reduction = c.reduction == fb::Reduction::avg ? fb::Reduction::sum
                                                                        : fb::Reduction::avg;
                      },
                      +[](fb::CollectiveT &c) { c.root = 1; },
                      +[](fb::CollectiveT &c) { c.unit = c.unit < 0 ? 0 : -1; },
                      +[](fb::CollectiveT &c) { c.id = 9; }})
    EXPECT_TRUE(contains(text(change), words)) << text(change);
}

TEST(Null, GroupsThatWaitForEachOtherAreInACircle) {
  EXPECT_EQ(twoAxes(false).findings(), "");
  EXPECT_EQ(twoAxes(true).findings(), "");
  std::vector<uint64_t> three = {3};
  EXPECT_EQ(findingsWithPeers(twoAxes(false), three, twoAxes(true)),
            ""); // First ranks 0 and 1 can advance, then 1 and 3, ...
  std::string text = findingsWithPeers(twoAxes(false), {1, 2}, twoAxes(true));
  EXPECT_TRUE(
      contains(text, "each would wait for ever: expected one order of collectives on all ranks"))
      << text;
}

TEST(Null, PeersHaveToFit) {
  EXPECT_THROW(findingsWithPeers(soundStep(), {2}, soundStep()), Error);
  EXPECT_THROW(findingsWithPeers(soundStep(), {1}, HandMade(4)), Error);
}

TEST(Null, RanksWithTheSameRangesAreAlike) {
  for (auto [shards, replicas, split, kinds] :
       {std::tuple(4, 1, fb::Split::whole, 1), std::tuple(4, 1, fb::Split::shard, 4),
        std::tuple(2, 2, fb::Split::shard, 2), std::tuple(2, 2, fb::Split::shard_replicate, 4),
        std::tuple(2, 3, fb::Split::replicate, 3)}) {
    HandMade hand(shards, replicas);
    fb::Slice a = hand.buffer("a", 512, 0, 0);
    bool isPiece = split != fb::Split::whole;
    hand.launch(hand.step(), "mine", {},
                {fb::Slice(a.offset(), 64, 0, isPiece ? 64 : 0, uint64_t(split))});
    NullResult result = hand.walk();
    EXPECT_TRUE(result.findings.empty());
    EXPECT_EQ(result.kinds, static_cast<uint64_t>(kinds));
    EXPECT_EQ(result.walked, result.kinds);
  }
}

TEST(Null, OfManyKindsTheFirstAndTheLastAreWalked) {
  HandMade hand(1024);
  fb::Slice a = hand.buffer("a", 64 * 1023, 0, 0);
  hand.launch(hand.step(), "mine", {},
              {fb::Slice(a.offset(), 64, 0, 64, uint64_t(fb::Split::shard))});
  NullResult result = hand.walk();
  EXPECT_EQ(result.kinds, 1024u);
  EXPECT_EQ(result.walked, 64u);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_TRUE(contains(result.findings[0].text, "rank 1023")) << result.findings[0].text;
}

TEST(Null, TheToyIsSoundOnceItsPaddingIsSet) {
  for (auto [replicas, shards] : {std::pair(1, 1), std::pair(1, 3), std::pair(2, 2)})
    for (bool asynchronous : {false, true}) {
      ToyOptions options;
      options.replicas = replicas;
      options.shards = shards;
      options.asynchronous = asynchronous;
      fb::ManifestT manifest = toyManifest(options);
      for (size_t p : {0, 2}) { // A fill writes the padding before the initial values are written.
        auto &commands = manifest.programs[p == 0 ? 0 : manifest.programs.size() - 2]->commands;
        const fb::StateT &state = *manifest.layouts[p == 0 ? 0 : 1]->states[0];
        auto command = std::make_unique<fb::CommandT>();
        fb::FillT fill;
        fill.target = std::make_unique<fb::Slice>(state.offset, state.elements * 4, 0, 0, 0);
        command->body.Set(std::move(fill));
        commands.insert(commands.begin(), std::move(command));
      }
      std::vector<std::byte> file = pack(manifest);
      NullResult result =
          walkPrograms(*Artifact::fromMemory(file.data(), file.size(), "toy"), NullOptions());
      EXPECT_TRUE(result.findings.empty()) << result.findings[0].text;
    }
}

/// A damaged manifest may be refused or accepted. An accepted manifest must be walked to its end.
TEST(Null, SurvivesDamagedManifests) {
  std::mt19937 random(1);
  fb::ManifestT manifest = soundStep().manifest;
  std::vector<std::byte> file = pack(manifest, {});
  unsigned walked = 0;
  for (unsigned i = 0; i < 3000; ++i) {
    std::vector<std::byte> damaged = file;
    damaged[128 + random() % (file.size() - 128)] ^= std::byte(1 << random() % 8);
    seal(damaged);
    try {
      auto artifact = Artifact::fromMemory(damaged.data(), damaged.size(), "damaged", Rules::form);
      walkPrograms(*artifact, NullOptions());
      ++walked;
    } catch (const Error &) {
    }
  }
  EXPECT_GT(walked, 500u);
}

TEST(Shadow, IsWhatAByteMapIs) {
  std::mt19937 random(2);
  Shadow shadow(200);
  std::vector<uint32_t> times(200, 0);
  std::vector<Cell::State> states(200, Cell::unwritten);
  for (uint32_t turn = 1; turn < 2000; ++turn) {
    uint64_t begin = random() % 200, end = begin + random() % (201 - begin);
    if (random() % 3) {
      shadow.write(begin, end, {{0, turn}, {}});
      std::fill(times.begin() + begin, times.begin() + end, turn);
      std::fill(states.begin() + begin, states.begin() + end, Cell::written);
    } else {
      shadow.end(begin, end);
      for (uint64_t at = begin; at < end; ++at)
        states[at] = states[at] == Cell::written ? Cell::ended : states[at];
    }
    uint64_t next = 0;
    shadow.visit(0, 200, [&](uint64_t from, uint64_t to, const Cell &cell) {
      EXPECT_EQ(from, next);
      for (uint64_t at = from; at < to; ++at) {
        EXPECT_EQ(cell.state, states[at]);
        EXPECT_EQ(cell.write.epoch.time, times[at]);
      }
      next = to;
    });
    EXPECT_EQ(next, 200u);
  }
}

TEST(Shadow, OneWriteMakesOneRange) {
  Shadow shadow(1000);
  for (uint64_t at = 0; at < 1000; at += 10)
    shadow.write(at, at + 5, {});
  EXPECT_EQ(shadow.numCells(), 200u);
  shadow.write(0, 1000, {});
  EXPECT_EQ(shadow.numCells(), 1u);
}
