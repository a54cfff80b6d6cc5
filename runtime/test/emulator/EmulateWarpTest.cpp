//===- EmulateWarpTest.cpp - Shuffles, votes and reductions -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulateFixture.h"

using namespace fsdprt::test;

static std::vector<uint32_t> perLane(const std::string &body) {
  return runBlock<uint32_t>(outElement + body + "\nst.global.b32 [%rd10], %r5;\n", 32);
}

TEST(EmulateWarp, Shuffles) {
  struct Case {
    const char *text;
    uint32_t (*source)(uint32_t lane);
  };
  const Case cases[] = {
      {"shfl.sync.idx.b32 %r5|%p1, %r0, 5, 31, -1;", [](uint32_t) { return 5u; }},
      {"shfl.sync.bfly.b32 %r5|%p1, %r0, 3, 31, -1;", [](uint32_t lane) { return lane ^ 3; }},
      {"shfl.sync.up.b32 %r5|%p1, %r0, 2, 0, -1;",
       [](uint32_t lane) { return lane >= 2 ? lane - 2 : 100; }},
      {"shfl.sync.down.b32 %r5|%p1, %r0, 4, 31, -1;",
       [](uint32_t lane) { return lane + 4 < 32 ? lane + 4 : 100; }},
      // The bits 0x1800 of the operands 0x1800 and 0x181f divide a warp into segments of 8 lanes.
      {"shfl.sync.up.b32 %r5|%p1, %r0, 2, 0x1800, -1;",
       [](uint32_t lane) { return lane % 8 >= 2 ? lane - 2 : 100; }},
      {"shfl.sync.down.b32 %r5|%p1, %r0, 3, 0x181f, -1;",
       [](uint32_t lane) { return lane % 8 + 3 < 8 ? lane + 3 : 100; }},
      {"shfl.sync.idx.b32 %r5|%p1, %r0, 9, 0x181f, -1;",
       [](uint32_t lane) { return lane / 8 * 8 + 1; }},
  };
  for (const Case &each : cases) {
    std::vector<uint32_t> found = perLane(std::string(each.text) + "\n@!%p1 mov.u32 %r5, 100;");
    for (uint32_t lane = 0; lane < 32; ++lane)
      EXPECT_EQ(found[lane], each.source(lane)) << each.text << " lane " << lane;
  }
}

TEST(EmulateWarp, Votes) {
  EXPECT_EQ(perLane("setp.lt.u32 %p1, %r0, 7; vote.sync.ballot.b32 %r5, %p1, -1;"),
            std::vector<uint32_t>(32, 0x7f));
  EXPECT_EQ(
      perLane("setp.lt.u32 %p1, %r0, 7; vote.sync.any.pred %p2, %p1, -1; selp.b32 %r5, 1, 0, %p2;"),
      std::vector<uint32_t>(32, 1));
  EXPECT_EQ(
      perLane(
          "setp.lt.u32 %p1, %r0, 7; vote.sync.all.pred %p2, !%p1, -1; selp.b32 %r5, 1, 0, %p2;"),
      std::vector<uint32_t>(32, 0));
  EXPECT_EQ(
      perLane(
          "setp.lt.u32 %p1, %r0, 70; vote.sync.uni.pred %p2, %p1, -1; selp.b32 %r5, 1, 0, %p2;"),
      std::vector<uint32_t>(32, 1));
}

TEST(EmulateWarp, MatchesAndReductions) {
  std::vector<uint32_t> found = perLane("and.b32 %r1, %r0, 3; match.any.sync.b32 %r5, %r1, -1;");
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(found[lane], 0x11111111u << lane % 4);
  EXPECT_EQ(perLane("redux.sync.add.u32 %r5, %r0, -1;"), std::vector<uint32_t>(32, 496));
  EXPECT_EQ(perLane("neg.s32 %r1, %r0; redux.sync.min.s32 %r5, %r1, -1;"),
            std::vector<uint32_t>(32, -31));
  EXPECT_EQ(perLane("redux.sync.xor.b32 %r5, %r0, -1;"), std::vector<uint32_t>(32, 0));
  found = perLane("elect.sync _|%p1, -1; selp.b32 %r5, 1, 0, %p1;");
  EXPECT_EQ(found[0], 1u);
  EXPECT_EQ(found[1], 0u);
}

TEST(EmulateWarp, MissingLanesAreReported) {
  std::string message = errorOfBlock("mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16; @%p1 bra out; "
                                     "shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; out:");
  EXPECT_NE(message.find("the mask 0xffffffff names lanes 0-15, which are not here (warp 0 of "
                         "block (0,0,0), lanes 16-31)"),
            std::string::npos)
      << message;
  message = errorOfBlock("mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16; @%p1 bra out; "
                         "shfl.sync.idx.b32 %r1, %r0, 0, 31, 0xffff0000; out:");
  EXPECT_NE(message.find("reads lane 0, which does not take part"), std::string::npos) << message;
  message = errorOfBlock("vote.sync.ballot.b32 %r1, 1, 0xff;");
  EXPECT_NE(message.find("the mask 0x000000ff does not name the lane itself"), std::string::npos)
      << message;
}
