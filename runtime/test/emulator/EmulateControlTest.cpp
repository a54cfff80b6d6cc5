//===- EmulateControlTest.cpp - Branches, loops and divergence --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulateFixture.h"

using namespace fsdprt::test;

static std::string perLane(const std::string &body) {
  return outElement + body + "\nst.global.b32 [%rd10], %r5;\n";
}

TEST(EmulateControl, LanesMeetBehindABranch) {
  std::vector<uint32_t> found = runBlock<uint32_t>(perLane(R"(
    and.b32 %r1, %r0, 1;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra even;
    mov.u32 %r5, 100;
    bra.uni join;
  even:
    mov.u32 %r5, 200;
  join:
    activemask.b32 %r6;
    setp.ne.u32 %p2, %r6, 0xffffffff;
    @%p2 mov.u32 %r5, 0;)"),
                                                   32);
  for (uint32_t tid = 0; tid < 32; ++tid)
    EXPECT_EQ(found[tid], tid % 2 ? 100u : 200u);
}

TEST(EmulateControl, LoopsOfDifferentLengths) {
  std::vector<uint32_t> found = runBlock<uint32_t>(perLane(R"(
    mov.u32 %r1, 0; mov.u32 %r5, 0;
  outer:
    mov.u32 %r2, 0;
  inner:
    add.u32 %r5, %r5, 1;
    add.u32 %r2, %r2, 1;
    setp.le.u32 %p1, %r2, %r1;
    @%p1 bra inner;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, %r0;
    @%p2 bra outer;
    activemask.b32 %r6;
    shfl.sync.idx.b32 %r7, %r5, 0, 31, 0xffffffff;)"),
                                                   32);
  for (uint32_t tid = 0; tid < 32; ++tid) {
    uint32_t rounds = std::max(tid, 1u);
    EXPECT_EQ(found[tid], rounds * (rounds + 1) / 2);
  }
}

TEST(EmulateControl, LanesMayLeaveEarly) {
  std::vector<uint32_t> found = runBlock<uint32_t>(perLane(R"(
    mov.u32 %r5, 1;
    setp.lt.u32 %p1, %r0, 10;
    @%p1 exit;
    mov.u32 %r5, 2;
    setp.lt.u32 %p1, %r0, 20;
    @%p1 bra out;
    activemask.b32 %r5;
  out:)"),
                                                   32);
  for (uint32_t tid = 0; tid < 32; ++tid)
    EXPECT_EQ(found[tid], tid < 10 ? 0u : tid < 20 ? 2u : 0xfff00000u);
}

TEST(EmulateControl, BranchesByIndex) {
  std::vector<uint32_t> found = runBlock<uint32_t>(perLane(R"(
    and.b32 %r1, %r0, 3;
    mov.u32 %r5, 0;
    table: .branchtargets zero, one, two, one;
    brx.idx %r1, table;
  zero: add.u32 %r5, %r5, 1;
  one:  add.u32 %r5, %r5, 10;
  two:  add.u32 %r5, %r5, 100;)"),
                                                   32);
  const uint32_t expected[] = {111, 110, 100, 110};
  for (uint32_t tid = 0; tid < 32; ++tid)
    EXPECT_EQ(found[tid], expected[tid % 4]);
}

/// The lanes of a warp take a lock one after another. Lanes that wait for the lock must not prevent
/// the lane that has the lock from continuing.
TEST(EmulateControl, LanesOfAWarpTakeALockInTurn) {
  std::string body = std::string(outElement) + R"(
  again:
    atom.shared.cas.b32 %r1, [lock], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    ld.volatile.shared.b32 %r2, [count];
    add.u32 %r2, %r2, 1;
    st.volatile.shared.b32 [count], %r2;
    membar.cta;
    atom.shared.exch.b32 %r3, [lock], 0;
    bar.warp.sync 0xffffffff;
    ld.volatile.shared.b32 %r4, [count];
    st.global.b32 [%rd10], %r4;)";
  std::string start = "mov.u32 %r50, %tid.x; setp.eq.u32 %p5, %r50, 0; @%p5 st.volatile.shared.b32 "
                      "[lock], 0; @%p5 st.volatile.shared.b32 [count], 0; bar.sync 0;\n";
  std::vector<uint32_t> found =
      runBlock<uint32_t>(start + body, 32, 32, ".shared .b32 lock; .shared .b32 count;");
  EXPECT_EQ(found, std::vector<uint32_t>(32, 32));
}

TEST(EmulateControl, EndlessLoopsEnd) {
  EXPECT_NE(errorOfBlock("again: bra again;").find("the limit of 8388608 instructions is reached"),
            std::string::npos);
}

TEST(EmulateControl, TrapsAreReported) {
  EXPECT_NE(errorOfBlock("trap;").find("trap: the program ends itself"), std::string::npos);
}
