//===- NullRaceTest.cpp - Races and missing waits ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/null/HandMade.h"
#include <gtest/gtest.h>

using namespace fsdprt;
using namespace fsdprt::test;
using Kind = fb::CollectiveKind;

TEST(Null, FindsNothingInASoundStep) {
  for (uint32_t channel : {0u, 1u}) {
    NullResult result = soundStep(channel).walk();
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].text;
    EXPECT_EQ(result.ranks, 2u);
    EXPECT_EQ(result.kinds, 1u);
    EXPECT_EQ(result.order.collectives, 2u);
    EXPECT_EQ(result.counts.commands,
              1 + 1 + 6 * 6u); // two walks of init, and six steps with six commands each
  }
}

TEST(Null, AReadBeforeTheWaitIsARace) {
  HandMade hand = soundStep();
  std::swap(hand.step()[1], hand.step()[2]);
  EXPECT_FOUND(
      hand,
      "race: step 1, ranks 0 to 1: command 1 (launch 'forward') reads [512, +512) of 'full' as "
      "binding "
      "1, which command 0 "
      "(all_gather 'u', collective 7 on channel 1) still receives; expected a wait for 7 before");
}

TEST(Null, AShardThatPeersStillReadMayNotBeUpdated) {
  HandMade hand = soundStep();
  hand.launch(hand.step(), "early", {}, {}, {hand.parameter()});
  std::rotate(hand.step().begin() + 1, hand.step().end() - 1, hand.step().end());
  EXPECT_FOUND(hand, "race: step 1, ranks 0 to 1: command 1 (launch 'early') writes [0, +256) of "
                     "'u parameter' as binding 0, which "
                     "command 0 "
                     "(all_gather 'u', collective 7 on channel 1) still sends, peers read it in "
                     "place; expected a wait for 7 before");
}

TEST(Null, AReductionsSourceMayNotBeFilledAgainBeforePeersHaveReadIt) {
  HandMade hand = soundStep();
  fb::Slice gradient(1024, 512, 0, 0, 0);
  hand.fill(hand.step(), fb::Slice(1024 + 64, 64, 0, 0, 0));
  std::rotate(hand.step().begin() + 4, hand.step().end() - 1, hand.step().end());
  EXPECT_FOUND(
      hand, "command 4 (fill 'f') writes [1088, +64) of 'gradient' as the target, which command 3 "
            "(reduce_scatter 'u', collective 8 on "
            "channel 1) still sends, peers read it in place");
}

TEST(Null, TransfersOfOneChannelAreNotOrderedByIt) {
  HandMade hand;
  fb::Slice a = hand.buffer("a", 512, 0, 3);
  hand.gather(hand.step(), 1, hand.parameter(), a);
  hand.gather(hand.step(), 2, hand.parameter(), a);
  hand.wait(hand.step(), 1);
  hand.wait(hand.step(), 2);
  EXPECT_FOUND(hand, "command 1 (all_gather 'u', collective 2 on channel 1) writes [512, +512) of "
                     "'a' as the target, which command 0");
}

TEST(Null, ManyMayReadWhatIsSent) {
  HandMade hand;
  fb::Slice a = hand.buffer("a", 512, 0, 4), b = hand.buffer("b", 512, 1, 4),
            c = hand.buffer("c", 256, 2, 2);
  hand.gather(hand.step(), 1, hand.parameter(), a);
  hand.gather(hand.step(), 2, hand.parameter(), b);
  hand.launch(hand.step(), "reader", {hand.parameter()}, {c});
  hand.wait(hand.step(), 1);
  hand.wait(hand.step(), 2);
  EXPECT_EQ(hand.findings(), "");
  std::swap(hand.step()[2]->body.AsLaunch()->bindings[0],
            hand.step()[2]->body.AsLaunch()->bindings[1]);
  EXPECT_FOUND(hand, "command 0"); // another command also causes a race
}

TEST(Null, AWaitEndsItsOwnTransferAlone) {
  HandMade hand;
  fb::Slice a = hand.buffer("a", 512, 0, 4), b = hand.buffer("b", 512, 1, 4),
            c = hand.buffer("c", 64, 3, 3);
  hand.gather(hand.step(), 1, hand.parameter(), a);
  hand.gather(hand.step(), 2, hand.parameter(), b);
  hand.wait(hand.step(), 2);
  hand.launch(hand.step(), "reader", {a}, {c});
  hand.wait(hand.step(), 1);
  EXPECT_FOUND(hand, "expected a wait for 1 before");
}

TEST(Null, CopiesOnChannelsToTheHostAndTheFile) {
  HandMade hand;
  hand.layout().host_bytes = 4096;
  hand.layout().file_bytes = 4096;
  uint64_t host = hostBegin(*hand.artifact()->manifest().layouts()->Get(0)),
           file = fileBegin(*hand.artifact()->manifest().layouts()->Get(0));
  hand.layout().buffers.clear(); // Without buffers, there are no lifetimes to check.
  fb::Slice onHost(host, 256, 0, 0, 0), inFile(file, 256, 0, 0, 0);
  hand.copy(hand.step(), 1, hand.parameter(), onHost, 4);
  hand.wait(hand.step(), 1);
  hand.copy(hand.step(), 2, onHost, inFile, 6);
  hand.wait(hand.step(), 2);
  EXPECT_EQ(hand.findings(), "");
  std::swap(hand.step()[1], hand.step()[2]);
  EXPECT_FOUND(hand, "command 1 (copy 'c', copy 2 on channel 6) reads");
  EXPECT_FOUND(
      hand,
      "which command 0 (copy 'c', copy 1 on channel 4) still writes; expected a wait for 1 before");
  hand.step()[2]->body.AsCopy();
  hand.layout().file_bytes = 128;
  EXPECT_FOUND(hand, "has the target at");
}

TEST(Null, StartsAndWaitsGoTogether) {
  HandMade never = soundStep();
  never.step().erase(never.step().begin() + 4);
  EXPECT_FOUND(never, "wait: step 1, ranks 0 to 1: command 3 (reduce_scatter 'u', collective 8 on "
                      "channel 1) is not waited for");
  HandMade nothing = soundStep();
  nothing.step()[0]->body.AsCollective()->channel = 0;
  EXPECT_FOUND(nothing,
               "wait: step 1, ranks 0 to 1: command 1 (wait for 7), which nothing has started");
  HandMade again = soundStep();
  again.step()[3]->body.AsCollective()->id = 7;
  again.step().erase(again.step().begin() + 1);
  EXPECT_FOUND(again, "starts 7 again, which command 0 (all_gather 'u', collective 7 on channel 1) "
                      "started and nothing has waited for");
}

TEST(Null, AnIterationWaitsForWhatItStarts) {
  HandMade hand;
  fb::Slice full = hand.buffer("full", 512, 0, 2);
  fb::LoopT loop;
  loop.count = 3;
  hand.gather(loop.body, 1, hand.parameter(), full);
  auto command = std::make_unique<fb::CommandT>();
  command->body.Set(std::move(loop));
  hand.step().push_back(std::move(command));
  hand.wait(hand.step(), 1);
  EXPECT_FOUND(hand, "is not waited for");
}

TEST(Null, WhatIsBehindALoopsBeginLivesThroughAllIterations) {
  HandMade hand;
  fb::Slice before = hand.buffer("before", 64, 0, 3), within = hand.buffer("within", 64, 2, 3);
  hand.launch(hand.step(), "make", {}, {before});
  fb::LoopT loop;
  loop.count = 3;
  hand.launch(loop.body, "first", {before}, {within});
  hand.launch(loop.body, "last", {before, within}, {}, {hand.parameter()});
  auto command = std::make_unique<fb::CommandT>();
  command->body.Set(std::move(loop));
  hand.step().push_back(std::move(command));
  fb::Slice behind = hand.buffer("behind", 64, 4, 4);
  hand.launch(hand.step(), "behind", {}, {behind});
  EXPECT_EQ(hand.findings(), "");
  hand.layout().buffers[4]->last = 1; // The lifetime of 'before' ends in the loop.
  EXPECT_FOUND(hand, "command 2 (launch 'first') has binding 0 at [512, +64) of no live buffer");
}
