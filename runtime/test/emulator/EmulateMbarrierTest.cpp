//===- EmulateMbarrierTest.cpp - mbarriers and bulk copies, with planted faults *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulateFixture.h"

using namespace fsdprt::test;

static const char *const shared =
    ".shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty;";

/// One warp writes a buffer three times. After each write, another warp reads the buffer.
static std::string pipeline(const std::string &fence, const std::string &fullParity,
                            const std::string &emptyParity, const std::string &arrivals = "32") {
  return std::string(outElement) + R"(
    setp.ne.u32 %p1, %r0, 0; @%p1 bra ready;
    mbarrier.init.shared.b64 [full], )" +
         arrivals + R"(; mbarrier.init.shared.b64 [empty], 32;
    fence.mbarrier_init.release.cluster;
  ready: )" +
         fence + R"(
    setp.ge.u32 %p2, %r0, 32; mov.u32 %r1, tile; mov.u32 %r7, 0; mov.u32 %r9, 0;
    and.b32 %r2, %r0, 31; mad.lo.u32 %r3, %r2, 4, %r1;
    @%p2 bra consume;
  produce:
    and.b32 %r4, %r7, 1; )" +
         emptyParity + R"(
    mbarrier.try_wait.parity.shared.b64 %p3, [empty], %r4;
    add.u32 %r5, %r0, %r7; st.shared.b32 [%r3], %r5;
    mbarrier.arrive.shared.b64 %rd1, [full];
    add.u32 %r7, %r7, 1; setp.lt.u32 %p4, %r7, 3; @%p4 bra produce;
    bra done;
  consume:
    and.b32 %r4, %r7, 1; )" +
         fullParity + R"(
    mbarrier.try_wait.parity.shared.b64 %p3, [full], %r4;
    xor.b32 %r6, %r2, 1; mad.lo.u32 %r6, %r6, 4, %r1;
    ld.shared.b32 %r5, [%r6]; add.u32 %r9, %r9, %r5;
    mbarrier.arrive.shared.b64 _, [empty];
    add.u32 %r7, %r7, 1; setp.lt.u32 %p4, %r7, 3; @%p4 bra consume;
    st.global.b32 [%rd10], %r9;
  done:)";
}
static const std::string flip = "xor.b32 %r4, %r4, 1;";

TEST(EmulateMbarrier, ProducerAndConsumer) {
  std::vector<uint32_t> found =
      runBlock<uint32_t>(pipeline("bar.sync 0;", "", flip), 64, 64, shared);
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(found[32 + lane], 3 * (lane ^ 1) + 3);
}

TEST(EmulateMbarrier, FaultsAreFound) {
  auto run = [](const std::string &body) { return errorOfBlock(body, 64, shared); };
  // With a wrong parity, the consumer reads data that have not arrived.
  EXPECT_TRUE(says(run(pipeline("bar.sync 0;", flip, flip)), "never written"));
  // With a wrong parity, the producer waits for the release of a buffer that no thread ever
  // releases.
  std::string message = run(pipeline("bar.sync 0;", "", ""));
  EXPECT_TRUE(says(message, "deadlock: no thread can continue: "));
  EXPECT_TRUE(says(message, "the phase of parity 0 of the mbarrier at shared address"));
  EXPECT_TRUE(says(run(pipeline("bar.sync 0;", "", flip, "33")), "deadlock"));
  EXPECT_TRUE(says(run(pipeline("bar.sync 0;", "", flip, "31")), "data race"));
  EXPECT_TRUE(says(run(pipeline("bar.sync 0;", "", flip, "0")), "an mbarrier for 0 arrivals"));
  EXPECT_TRUE(says(run("mbarrier.arrive.shared.b64 _, [full];"),
                   "expected an mbarrier at shared memory + 0x0, found none"));
  EXPECT_TRUE(says(errorOfBlock("mbarrier.init.shared.b64 [full], 1; st.shared.b64 [full], 0; "
                                "mbarrier.arrive.shared.b64 _, [full];",
                                1, shared),
                   "was overwritten"));
  EXPECT_TRUE(says(
      errorOfBlock("mbarrier.init.shared.b64 [full], 1; mbarrier.arrive.shared.b64 _, [full], 2;",
                   1, shared),
      "2 arrivals, but the mbarrier's phase waits for 1 more of 1"));
}

TEST(EmulateMbarrier, StatesNamePhases) {
  std::vector<uint32_t> found = runBlock<uint32_t>(R"(
    mbarrier.init.shared.b64 [full], 2;
    mbarrier.arrive.shared.b64 %rd1, [full];
    mbarrier.test_wait.shared.b64 %p1, [full], %rd1; selp.b32 %r1, 1, 0, %p1; st.global.b32 [%rd0], %r1;
    mbarrier.arrive.shared.b64 %rd2, [full];
    mbarrier.test_wait.shared.b64 %p1, [full], %rd1; selp.b32 %r1, 1, 0, %p1; st.global.b32 [%rd0+4], %r1;
    mbarrier.pending_count.b64 %r2, %rd2; st.global.b32 [%rd0+8], %r2;
    mbarrier.inval.shared.b64 [full];)",
                                                   3, 1, shared);
  EXPECT_EQ(found, (std::vector<uint32_t>{0, 1, 1}));
}

/// Lane 0 copies 128 bytes of `out` to shared memory. Each lane then reads one of the copied words.
static std::string bulkLoad(const std::string &expect, const std::string &wait,
                            const std::string &size = "128") {
  return std::string(outElement) + R"(
    setp.ne.u32 %p1, %r0, 0; @%p1 bra ready;
    mbarrier.init.shared.b64 [full], 1; fence.mbarrier_init.release.cluster;
  ready: bar.sync 0;
    @%p1 bra wait;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], )" +
         expect + R"(;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], )" +
         size + R"(, [full];
  wait: )" +
         wait + R"(
    mov.u32 %r1, tile; mad.lo.u32 %r2, %r0, 4, %r1; ld.shared.b32 %r3, [%r2]; add.u32 %r3, %r3, 1; st.global.b32 [%rd10+512], %r3;)";
}
static const std::string waitFull = "mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;";

TEST(EmulateBulkCopy, CompletesAnMbarrier) {
  EXPECT_EQ(errorOfBlock(bulkLoad("128", waitFull), 32, shared), "");
  EXPECT_TRUE(says(errorOfBlock(bulkLoad("128", ""), 32, shared), "asynchronously writes"));
  EXPECT_TRUE(says(errorOfBlock(bulkLoad("256", waitFull), 32, shared), "deadlock"));
  EXPECT_TRUE(says(errorOfBlock(bulkLoad("128", waitFull, "120"), 32, shared),
                   "a copy of 120 bytes, expected a multiple of 16"));
  EXPECT_TRUE(says(errorOfBlock(bulkLoad("1040", waitFull, "1040"), 32, shared),
                   "writes 1040 bytes out of bounds"));
}

/// Lanes write to shared memory. Lane 0 copies this memory to `out` and then overwrites a word.
static std::string bulkStore(const std::string &fence, const std::string &groups) {
  return std::string(outElement) + R"(
    mov.u32 %r1, tile; mad.lo.u32 %r2, %r0, 4, %r1; st.shared.b32 [%r2], %r0; )" +
         fence + R"(
    setp.ne.u32 %p1, %r0, 0; @%p1 bra done;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 128; )" +
         groups + R"(
    st.shared.b32 [tile], 7;
  done:)";
}

TEST(EmulateBulkCopy, StoresNeedAProxyFenceAndAWait) {
  std::string groups = "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;";
  std::vector<uint32_t> found = runBlock<uint32_t>(
      bulkStore("fence.proxy.async.shared::cta; bar.sync 0;", groups), 32, 32, shared);
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(found[lane], lane);
  EXPECT_EQ(errorOfBlock(bulkStore("bar.sync 0; fence.proxy.async;", groups), 32, shared), "");
  EXPECT_TRUE(says(
      errorOfBlock(bulkStore("bar.sync 0;", groups), 32, shared),
      "the async proxy reads shared memory + 0x0, which ordinary stores have written at line"));
  EXPECT_TRUE(says(errorOfBlock(bulkStore("fence.proxy.async.shared::cta;", groups), 32, shared),
                   "data race"));
  EXPECT_TRUE(says(errorOfBlock(bulkStore("fence.proxy.async.shared::cta; bar.sync 0;",
                                          "cp.async.bulk.commit_group;"),
                                32, shared),
                   "asynchronously reads"));
  EXPECT_TRUE(
      says(errorOfBlock(bulkStore("fence.proxy.async.shared::cta; bar.sync 0;",
                                  "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 1;"),
                        32, shared),
           "asynchronously reads"));
}

TEST(EmulateAsyncCopy, ArrivesAtAnMbarrier) {
  auto body = [](const std::string &arrive, const std::string &waits) {
    return std::string(outElement) + R"(
      setp.ne.u32 %p1, %r0, 0; @%p1 bra ready;
      mbarrier.init.shared.b64 [full], 32;
    ready: bar.sync 0;
      mov.u32 %r1, tile; mad.lo.u32 %r2, %r0, 16, %r1; mad.wide.u32 %rd11, %r0, 16, %rd0;
      cp.async.cg.shared.global [%r2], [%rd11], 16; )" +
           arrive + " " + waits + R"(
      xor.b32 %r3, %r0, 5; mad.lo.u32 %r4, %r3, 16, %r1; ld.shared.b32 %r5, [%r4];)";
  };
  EXPECT_EQ(
      errorOfBlock(body("cp.async.mbarrier.arrive.noinc.shared.b64 [full];", waitFull), 32, shared),
      "");
  EXPECT_TRUE(
      says(errorOfBlock(body("cp.async.mbarrier.arrive.shared.b64 [full];", waitFull), 32, shared),
           "deadlock"));
  EXPECT_TRUE(
      says(errorOfBlock(body("mbarrier.arrive.shared.b64 _, [full];", waitFull), 32, shared),
           "asynchronously writes"));
}
