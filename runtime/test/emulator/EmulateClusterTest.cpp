//===- EmulateClusterTest.cpp - Shared memory of other blocks ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulateTensors.h"

using namespace fsdprt::test;
using namespace fsdprt::emulate;

static TensorKernel pair(const std::string &body, unsigned threads = 32) {
  TensorKernel kernel;
  // %r2 is the address of the lane's word of `tile` in the lane's own block, and %r12 is the
  // address of the same word in the other block. %r3 and %r13 are the addresses of `full` in these
  // two blocks.
  kernel.body = R"(
    mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; xor.b32 %r11, %r1, 1;
    mov.u32 %r2, tile; mad.lo.u32 %r2, %r0, 4, %r2; mov.u32 %r3, full; mapa.shared::cluster.u32 %r12, %r2, %r11; mapa.shared::cluster.u32 %r13, %r3, %r11;
    setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r1, 0; mad.lo.u32 %r4, %r1, 32, %r0; mul.wide.u32 %rd1, %r4, 4; add.u64 %rd1, %rd0, %rd1;
  )" + body;
  kernel.blocks = 2, kernel.threads = threads;
  return kernel;
}

static std::string errorOf(const std::string &body) { return pair(body).error(); }

static const std::string meet = "barrier.cluster.arrive; barrier.cluster.wait;";

TEST(EmulateCluster, BlocksExchange) {
  TensorKernel kernel =
      pair("st.shared.b32 [%r2], %r4;" + meet +
           "ld.shared::cluster.b32 %r5, [%r12]; st.global.b32 [%rd1], %r5;" + meet);
  kernel.run();
  for (unsigned k = 0; k < 64; ++k)
    EXPECT_EQ(kernel.out[k], k ^ 32);
  kernel = pair("st.shared::cluster.b32 [%r12], %r4;" + meet +
                "ld.shared.b32 %r5, [%r2]; st.global.b32 [%rd1], %r5;");
  kernel.run();
  for (unsigned k = 0; k < 64; ++k)
    EXPECT_EQ(kernel.out[k], k ^ 32);
}

TEST(EmulateCluster, RacesBetweenBlocksAreFound) {
  const std::string write = "st.shared.b32 [%r2], %r4;",
                    read = "ld.shared::cluster.b32 %r5, [%r12];";
  EXPECT_EQ(errorOf(write + meet + read + meet), "");
  EXPECT_TRUE(says(errorOf(write + meet + write + read + meet), "data race"));
  EXPECT_TRUE(says(errorOf(write + meet + read + write + meet), "data race"));
  // Neither a block's barrier nor a relaxed barrier of the cluster orders accesses of several
  // blocks.
  EXPECT_TRUE(says(errorOf(write + meet + "bar.sync 0;" + write + "bar.sync 0;" + read + meet),
                   "data race"));
  const std::string relaxed = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;";
  EXPECT_TRUE(says(errorOf(write + relaxed + read + meet), "data race"));
  EXPECT_EQ(errorOf(write + "fence.acq_rel.cluster;" + relaxed + read + meet), "");
}

TEST(EmulateCluster, ABlockThatHasEndedHasNoMemory) {
  const std::string write = "st.shared.b32 [%r2], %r4;" + meet,
                    read = "ld.shared::cluster.b32 %r5, [%r12];";
  const std::string later =
      "mov.u32 %r6, 0; later: add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 1000; @%p4 bra later;";
  EXPECT_TRUE(says(errorOf(write + "@%p1 exit;" + later + read),
                   "uses shared memory of block (0,0,0), which has ended"));
  // The race must be reported, although here the block happens to end after the access.
  EXPECT_TRUE(says(errorOf(write + "@!%p1 bra go;" + later + "exit; go:" + read),
                   "the block ends, but line"));
  EXPECT_EQ(errorOf(write + "@!%p1 bra go;" + later + meet + "exit; go:" + read + meet), "");
}

/// Block 1 writes to block 0, and then signals block 0 through an mbarrier of block 0.
static std::string remoteArrival(const std::string &fence, const std::string &arrive) {
  return "@%p0 mbarrier.init.shared.b64 [%r3], 32;" + fence + "@%p1 bra wait;\n" +
         "st.shared::cluster.b32 [%r12], %r4; " + arrive + " bra done;\n" +
         "wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0; "
         "ld.shared.b32 %r5, [%r2]; st.global.b32 [%rd1], %r5;\n" +
         "done: " + meet;
}

TEST(EmulateCluster, ArrivesAtAnMbarrierOfAnotherBlock) {
  const std::string arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13];";
  const std::string light =
      "fence.mbarrier_init.release.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait;";
  for (const std::string &fence : {meet, light}) {
    TensorKernel kernel = pair(remoteArrival(fence, arrive));
    kernel.run();
    for (unsigned k = 0; k < 32; ++k)
      EXPECT_EQ(kernel.out[k], 32 + k);
  }
  EXPECT_TRUE(
      says(errorOf(remoteArrival("barrier.cluster.arrive.relaxed; barrier.cluster.wait;", arrive)),
           "data race: writes 8 bytes"));
  EXPECT_TRUE(says(errorOf(remoteArrival(
                       meet, "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r13];")),
                   "data race: reads 4 bytes"));
  EXPECT_TRUE(says(errorOf(remoteArrival(meet, "@!%p0 " + arrive)),
                   "of block (0,0,0), which waits for 1 of 32 arrivals"));
  EXPECT_TRUE(says(errorOf(remoteArrival("bar.sync 0;", arrive)), "data race: writes 8 bytes"));
}

/// Each lane stores a word to the other block. An mbarrier of the other block counts the stored
/// bytes.
static std::string asyncStores(const std::string &store, const std::string &bytes) {
  return "st.shared.b32 [%r2], 100; @%p0 mbarrier.init.shared.b64 [%r3], 1; @%p0 "
         "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], " +
         bytes + ";" + meet + store +
         "mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; ld.shared.b32 %r5, [%r2]; "
         "st.global.b32 [%rd1], %r5;" +
         meet;
}

TEST(EmulateCluster, StoresThatAnMbarrierWaitsFor) {
  TensorKernel kernel = pair(asyncStores(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r12], %r4, [%r13];",
      "128"));
  kernel.run();
  for (unsigned k = 0; k < 64; ++k)
    EXPECT_EQ(kernel.out[k], k ^ 32);
  kernel = pair(asyncStores("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::"
                            "bytes.add.u32 [%r12], %r4, [%r13];",
                            "128"));
  kernel.run();
  for (unsigned k = 0; k < 64; ++k)
    EXPECT_EQ(kernel.out[k], 100 + (k ^ 32));
  EXPECT_EQ(errorOf(asyncStores("mad.lo.u32 %r12, %r0, 4, %r12; @%p0 "
                                "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 "
                                "[%r12], {%r4, %r4}, [%r13];",
                                "8")),
            "");
  EXPECT_TRUE(says(
      errorOf(asyncStores(
          "@!%p0 st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r12], %r4, [%r13];",
          "128")),
      "and 4 bytes"));
  EXPECT_TRUE(says(
      errorOf(asyncStores(
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r12], %r4, [%r3];", "128")),
      "the mbarrier is in the shared memory of another block than the destination"));
  EXPECT_TRUE(says(
      errorOf(asyncStores(
          "red.async.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%r12], %r4, [%r13];",
          "128")),
      "unsupported vector of f32"));
}

/// Warps of all blocks of a cluster take turns, so a loop that waits for the other block ends.
TEST(EmulateCluster, BlocksRunInTurn) {
  const std::string spin = R"(
    @%p0 st.shared.b32 [%r2], 0; )" +
                           meet + R"(
    @!%p0 bra done; @%p1 bra tell;
  spin: ld.relaxed.cluster.shared.b32 %r5, [%r2]; setp.eq.u32 %p3, %r5, 0; @%p3 bra spin; bra done;
  tell: st.relaxed.cluster.shared::cluster.b32 [%r12], 1;
  done: )" + meet;
  EXPECT_EQ(errorOf(spin), "");
}
