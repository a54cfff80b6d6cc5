//===- EmulateBarrierTest.cpp - Barriers, their misuse and deadlocks *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulateFixture.h"

using namespace fsdprt::test;

TEST(EmulateBarrier, WarpsExchangeThroughSharedMemory) {
  std::vector<uint32_t> found = runBlock<uint32_t>(tileElement + R"(
    st.shared.b32 [%r2], %r0;
    bar.sync 0;
    sub.u32 %r3, 127, %r0; mad.lo.u32 %r4, %r3, 4, %r1;
    ld.shared.b32 %r5, [%r4]; st.global.b32 [%rd10], %r5;)",
                                                   128, 128, tile);
  for (uint32_t tid = 0; tid < 128; ++tid)
    EXPECT_EQ(found[tid], 127 - tid);
}

/// Warps 0 and 1 produce data that warps 2 and 3 consume. Two named barriers order the accesses of
/// the producers and the consumers.
TEST(EmulateBarrier, ProducersArriveConsumersWait) {
  std::string body = tileElement + R"(
    shr.u32 %r6, %r0, 6; setp.ne.u32 %p1, %r6, 0;
    mov.u32 %r7, 0;
    @%p1 bra consumer;
  produce:
    bar.sync 2, 128;
    add.u32 %r8, %r0, %r7; st.shared.b32 [%r2], %r8;
    bar.arrive 1, 128;
    add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 3; @%p2 bra produce;
    bra done;
  consumer:
    mov.u32 %r9, 0;
  consume:
    bar.arrive 2, 128;
    bar.sync 1, 128;
    ld.shared.b32 %r8, [%r2+-256]; add.u32 %r9, %r9, %r8;
    add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 3; @%p2 bra consume;
    st.global.b32 [%rd10], %r9;
  done:)";
  std::vector<uint32_t> found = runBlock<uint32_t>(body, 128, 128, tile);
  for (uint32_t tid = 64; tid < 128; ++tid)
    EXPECT_EQ(found[tid], 3 * (tid - 64) + 3);
}

TEST(EmulateBarrier, ReductionsOverABlock) {
  std::string body = std::string(outElement) + R"(
    setp.lt.u32 %p1, %r0, 40;
    bar.red.popc.u32 %r1, 0, %p1;
    barrier.cta.red.and.aligned.pred %p2, 0, %p1; selp.b32 %r2, 1000, 0, %p2;
    bar.red.or.pred %p3, 0, %p1; selp.b32 %r3, 100, 0, %p3;
    add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.global.b32 [%rd10], %r1;)";
  EXPECT_EQ(runBlock<uint32_t>(body, 64, 64), std::vector<uint32_t>(64, 140));
}

TEST(EmulateBarrier, ThreadsThatLeftAreNotWaitedFor) {
  EXPECT_EQ(
      errorOfBlock("mov.u32 %r0, %tid.x; setp.ge.u32 %p1, %r0, 32; @%p1 exit; bar.sync 0;", 96),
      "");
}

TEST(EmulateBarrier, MisuseIsReported) {
  EXPECT_TRUE(says(
      errorOfBlock("mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 3; @%p1 bra out; bar.sync 0; out:"),
      "bar.sync: expected all lanes of the warp to arrive together, but lanes 0-2 are elsewhere"));
  EXPECT_TRUE(says(errorOfBlock("bar.sync 16;"), "barrier 16, expected 0 to 15"));
  EXPECT_TRUE(
      says(errorOfBlock("bar.sync 1, 40;"), "a barrier for 40 threads, expected a multiple of 32"));
  EXPECT_TRUE(says(errorOfBlock("bar.sync 1, 64;"), "a barrier for 64 threads in a block of 32"));
  EXPECT_TRUE(says(errorOfBlock("mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 32; @%p1 bra a; "
                                "bar.sync 1, 96; a: bar.sync 1, 64;",
                                96),
                   "barrier 1 is for 96 threads here, but for 64 threads where others wait"));
}

TEST(EmulateBarrier, DeadlocksNameWhoWaits) {
  std::string message = errorOfBlock(
      "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 32;\n@%p1 bar.sync 1, 64;\n@!%p1 bar.sync 2, 64;",
      64);
  EXPECT_TRUE(says(message, "test.ptx:13:6: error: deadlock: no thread can continue: "));
  EXPECT_TRUE(says(message, "warp 0 of block (0,0,0), all lanes at line 13: barrier 1, to which 32 "
                            "of 64 threads have come"));
  EXPECT_TRUE(says(message, "warp 1 of block (0,0,0), all lanes at line 14: barrier 2, to which 32 "
                            "of 64 threads have come"));
}

TEST(EmulateBarrier, LanesOfAWarpWaitForOneAnother) {
  std::string body = tileElement + R"(
    setp.lt.u32 %p1, %r0, 16;
    @%p1 bra writer;
    bar.warp.sync -1;
    ld.shared.b32 %r5, [%r2+-64]; st.global.b32 [%rd10], %r5;
    bra done;
  writer:
    st.shared.b32 [%r2], %r0;
    bar.warp.sync -1;
  done:)";
  std::vector<uint32_t> found = runBlock<uint32_t>(body, 32, 32, tile);
  for (uint32_t tid = 16; tid < 32; ++tid)
    EXPECT_EQ(found[tid], tid - 16);
  EXPECT_TRUE(says(errorOfBlock("mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16; @%p1 bra other; "
                                "bar.warp.sync -1; bra done; other: bar.sync 0; done:"),
                   "bar.sync: expected all lanes of the warp to arrive together"));
}

TEST(EmulateBarrier, ClustersMeet) {
  std::vector<uint32_t> out(128);
  Emulator emulator("test.ptx", kernel(R"(
    mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, tile; mad.lo.u32 %r3, %r0, 4, %r2;
    mad.lo.u32 %r4, %r1, 100, %r0; st.shared.b32 [%r3], %r4;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    xor.b32 %r5, %r1, 1; mapa.shared::cluster.u32 %r6, %r3, %r5; ld.shared::cluster.b32 %r7, [%r6];
    mov.u32 %r8, %ctaid.x; mad.lo.u32 %r9, %r8, 32, %r0; mul.wide.u32 %rd1, %r9, 4; add.s64 %rd2, %rd0, %rd1; st.global.b32 [%rd2], %r7;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;)",
                                       1, tile));
  Launch launch;
  launch.entry = "k";
  launch.grid[0] = 4, launch.cluster[0] = 2, launch.block[0] = 32;
  launch.argument(emulator.memory().attach("out", out.data(), 512).base);
  emulator.launch(launch);
  for (uint32_t k = 0; k < 128; ++k)
    EXPECT_EQ(out[k], (k / 32 % 2 ? 0 : 100) + k % 32);
}

TEST(EmulateBarrier, ClustersAlternateWithASeed) {
  // Each block draws 1000 numbers from a counter, and stores its first number.
  auto firstOfSecond = [](uint32_t seed) {
    std::vector<uint32_t> out(3);
    Emulator emulator("test.ptx", kernel(R"(
      mov.u32 %r0, %ctaid.x; mov.u32 %r1, 0; atom.relaxed.gpu.global.add.u32 %r2, [%rd0], 1;
      mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd0, %rd1; st.global.b32 [%rd1+4], %r2;
      again: atom.relaxed.gpu.global.add.u32 %r3, [%rd0], 1; add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 999; @%p0 bra again;)",
                                         1));
    Launch launch;
    launch.entry = "k";
    launch.grid[0] = 2, launch.block[0] = 1, launch.seed = seed;
    launch.argument(emulator.memory().attach("out", out.data(), 12).base);
    emulator.launch(launch);
    EXPECT_EQ(out[0], 2000u);
    return out[2];
  };
  EXPECT_EQ(firstOfSecond(0), 1000u);
  EXPECT_LT(firstOfSecond(1), 1000u);
}
