//===- EmulateRaceTest.cpp - Races, one planted fault per test --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulateFixture.h"

using namespace fsdprt::test;

/// Thread t writes its word in shared memory, and then reads the word of thread t ^ `away`.
static std::string exchange(const std::string &barrier, const std::string &away) {
  return tileElement + "st.shared.b32 [%r2], %r0;\n" + barrier + "\nxor.b32 %r3, %r0, " + away +
         "; mad.lo.u32 %r4, %r3, 4, %r1; ld.shared.b32 %r5, [%r4]; st.global.b32 [%rd10], %r5;";
}

TEST(EmulateRace, AMissingBarrierBetweenWarps) {
  EXPECT_EQ(errorOfBlock(exchange("bar.sync 0;", "32"), 64, tile), "");
  EXPECT_TRUE(says(errorOfBlock(exchange("", "32"), 64, tile), "never written"));
  // The bytes have been written before, so that the error is a race and not a read of uninitialised
  // bytes.
  std::string cleared = tileElement + "st.shared.b32 [%r2], 0; bar.sync 0;\n{\n";
  std::string message = errorOfBlock(cleared + exchange("", "32") + "}", 64, tile);
  EXPECT_TRUE(says(message, "data race: "));
  EXPECT_TRUE(says(message, "lane 0 of warp 1 of block (0,0,0) has read"));
}

TEST(EmulateRace, AMissingBarrierOfAWarp) {
  EXPECT_EQ(errorOfBlock(exchange("bar.warp.sync -1;", "1"), 32, tile), "");
  EXPECT_TRUE(says(errorOfBlock(exchange("", "1"), 32, tile),
                   "ld.shared.b32: data race: reads 4 bytes at shared memory + 0x4, which lane 1 "
                   "of the same warp has written at line"));
  // A barrier that includes only 16 of the 32 lanes is not sufficient.
  EXPECT_TRUE(says(
      errorOfBlock(exchange("setp.lt.u32 %p1, %r0, 16; @%p1 bar.warp.sync 0xffff;", "1"), 32, tile),
      "data race"));
  // A shuffle does not order memory.
  EXPECT_TRUE(says(errorOfBlock(exchange("shfl.sync.idx.b32 %r9, %r0, 0, 31, -1;", "1"), 32, tile),
                   "data race"));
}

TEST(EmulateRace, ABarrierThatIsPassedTooEarly) {
  // In `bad`, threads overwrite words that other threads may not have read yet.
  std::string good = exchange("bar.sync 0;", "32") + "bar.sync 0; st.shared.b32 [%r2], 7;";
  std::string bad = exchange("bar.sync 0;", "32") + "st.shared.b32 [%r2], 7;";
  EXPECT_EQ(errorOfBlock(good, 64, tile), "");
  EXPECT_TRUE(says(errorOfBlock(bad, 64, tile), "data race: "));
}

TEST(EmulateRace, ANamedBarrierOfTheWrongWarps) {
  std::string good = exchange("bar.sync 3, 128;", "64"),
              bad = exchange("shr.u32 %r8, %r0, 6; bar.sync %r8, 64;", "64");
  std::string cleared = tileElement + "st.shared.b32 [%r2], 0; bar.sync 0;\n{\n";
  EXPECT_EQ(errorOfBlock(cleared + good + "}", 128, tile), "");
  EXPECT_TRUE(says(errorOfBlock(cleared + bad + "}", 128, tile), "data race"));
}

TEST(EmulateRace, BytesOfOneWordAreNotOne) {
  std::string body = std::string(outElement) +
                     "mov.u32 %r1, tile; add.u32 %r2, %r1, %r0; st.shared.b8 [%r2], %r0; ";
  EXPECT_EQ(errorOfBlock(body, 64, tile), "");
  EXPECT_TRUE(says(
      errorOfBlock(body + "and.b32 %r3, %r0, 60; add.u32 %r4, %r1, %r3; ld.shared.b32 %r5, [%r4];",
                   32, tile),
      "data race"));
}

TEST(EmulateRace, TheSameWordByManyLanes) {
  EXPECT_EQ(errorOfBlock("st.shared.b32 [tile], 5;", 32, tile), "");
  EXPECT_TRUE(says(errorOfBlock("mov.u32 %r0, %tid.x; st.shared.b32 [tile], %r0;", 32, tile),
                   "two lanes write different values to shared memory + 0x0"));
  EXPECT_TRUE(says(errorOfBlock("st.shared.b32 [tile], 5;", 64, tile), "data race"));
}

TEST(EmulateRace, GlobalMemoryBetweenBlocks) {
  auto run = [](const std::string &body) {
    std::vector<uint32_t> out(64);
    return messageOf([&] {
      Emulator emulator("test.ptx", kernel(body));
      Launch launch;
      launch.entry = "k";
      launch.grid[0] = 2;
      launch.argument(emulator.memory().attach("out", out.data(), 256).base);
      emulator.launch(launch);
      emulator.launch(launch); // Launches are ordered.
    });
  };
  EXPECT_EQ(run("mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %rd0, %rd1; "
                "st.global.b32 [%rd2], 1;"),
            "");
  EXPECT_TRUE(says(run("st.global.b32 [%rd0], 1;"),
                   "data race: writes 4 bytes at out + 0x0, which another block has written"));
  EXPECT_EQ(run("red.global.add.u32 [%rd0], 1;"), "");
  EXPECT_TRUE(says(run("red.global.add.u32 [%rd0], 1; ld.global.b32 %r1, [%rd0];"), "data race"));
}

/// Each block executes a fence and increments an atomic counter. The last block that increments the
/// counter adds up the results of all blocks.
TEST(EmulateRace, AFenceAndACounterOrderBlocks) {
  auto run = [](const std::string &before, const std::string &after) {
    std::vector<uint32_t> out(8);
    std::string message = messageOf([&] {
      Emulator emulator("test.ptx", kernel(R"(
        mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %rd0, %rd1; add.u32 %r2, %r1, 10; st.global.b32 [%rd2], %r2;)" +
                                           before + R"(
        atom.global.add.u32 %r3, [%rd0+16], 1; setp.ne.u32 %p1, %r3, 3; @%p1 bra out;)" +
                                           after + R"(
        ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd0]; add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6; add.u32 %r4, %r4, %r7; st.global.b32 [%rd0+20], %r4;
        out:)"));
      Launch launch;
      launch.entry = "k";
      launch.grid[0] = 4;
      launch.argument(emulator.memory().attach("out", out.data(), 32).base);
      emulator.launch(launch);
    });
    EXPECT_TRUE(!message.empty() || out[5] == 46);
    return message;
  };
  EXPECT_EQ(run("membar.gl;", "membar.gl;"), "");
  EXPECT_EQ(run("fence.acq_rel.gpu;", "fence.acq_rel.gpu;"), "");
  EXPECT_TRUE(says(run("", "membar.gl;"), "data race"));
  EXPECT_TRUE(says(run("membar.gl;", ""), "data race"));
}

TEST(EmulateRace, FlagsWithReleaseAndAcquire) {
  auto body = [](const std::string &store, const std::string &load) {
    return tileElement +
           "setp.lt.u32 %p1, %r0, 32; st.shared.b32 [%r2], 0; bar.sync 0; @%p1 bra writer;\n"
           "wait: " +
           load +
           " %r5, [tile+2048]; setp.eq.u32 %p2, %r5, 0; @%p2 bra wait; ld.shared.b32 %r6, [tile]; "
           "bra done;\n"
           "writer: setp.ne.u32 %p3, %r0, 0; @%p3 bra done; st.shared.b32 [tile], 9; " +
           store + " [tile+2048], 1;\ndone:";
  };
  std::string clear = "st.volatile.shared.b32 [tile+2048], 0; bar.sync 0;";
  auto run = [&](const std::string &store, const std::string &load) {
    return errorOfBlock(clear + body(store, load), 64, tile);
  };
  EXPECT_EQ(run("st.release.cta.shared.b32", "ld.acquire.cta.shared.b32"), "");
  EXPECT_TRUE(says(run("st.relaxed.cta.shared.b32", "ld.acquire.cta.shared.b32"), "data race"));
  EXPECT_TRUE(says(run("st.release.cta.shared.b32", "ld.relaxed.cta.shared.b32"), "data race"));
  EXPECT_TRUE(says(run("st.shared.b32", "ld.acquire.cta.shared.b32"), "data race"));
}

/// A thread executes a weak write and then a strong write. A race of another access with the weak
/// write must still be reported.
TEST(EmulateRace, AWeakWriteBeforeAStrongOne) {
  auto body = [](const std::string &barrier) {
    return std::string(outElement) + R"(
      setp.ge.u32 %p1, %r0, 32; @%p1 bra other;
      setp.ne.u32 %p2, %r0, 0; @%p2 bra meet;
      st.shared.b32 [tile], 0; atom.shared.add.u32 %r1, [tile], 1;
    meet: )" +
           barrier + R"( bra done;
    other: )" +
           barrier + R"( atom.shared.add.u32 %r2, [tile], 1;
    done:)";
  };
  EXPECT_EQ(errorOfBlock(body("bar.sync 0;"), 64, tile), "");
  EXPECT_TRUE(says(errorOfBlock(body(""), 64, tile),
                   "data race: writes 4 bytes at shared memory + 0x0, which lane 0 of warp 0"));
}

TEST(EmulateRace, AnMbarrierThatIsUsedBeforeOthersKnowOfIt) {
  auto body = [](const std::string &barrier) {
    return R"(
      mov.u32 %r0, %tid.x; setp.ne.u32 %p1, %r0, 0; @%p1 bra ready; mbarrier.init.shared.b64 [tile], 2; mbarrier.arrive.shared.b64 _, [tile];
    ready: )" +
           barrier + " setp.eq.u32 %p2, %r0, 32; @%p2 mbarrier.arrive.shared.b64 _, [tile];";
  };
  EXPECT_EQ(errorOfBlock(body("bar.sync 0;"), 64, ".shared .align 8 .b8 tile[8];"), "");
  EXPECT_TRUE(says(errorOfBlock(body("bar.warp.sync -1;"), 64, ".shared .align 8 .b8 tile[8];"),
                   "data race: writes 8 bytes"));
}

/// Threads store 16 bytes at once, then the four words of these bytes, and then the 16 bytes at
/// once again. A barrier is needed after each of these three steps.
TEST(EmulateRace, SixteenBytesAndTheirWords) {
  auto body = [](const std::string &first, const std::string &second, const std::string &third) {
    return std::string(outElement) + R"(
      setp.ne.u32 %p1, %r0, 0; mov.u32 %r1, tile; mad.lo.u32 %r2, %r0, 4, %r1; setp.ge.u32 %p2, %r0, 4; setp.ne.u32 %p3, %r0, 33;
      @!%p1 st.shared.v4.b32 [tile], {1, 2, 3, 4}; )" +
           first + R"(
      @!%p2 st.shared.b32 [%r2], %r0; )" +
           second + R"(
      @!%p1 ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [tile]; @!%p1 st.shared.v4.b32 [tile], {5, 6, 7, 8}; )" +
           third + R"(
      @!%p3 ld.shared.b32 %r9, [tile+8];)";
  };
  const std::string bar = "bar.sync 0;";
  const std::string words = ".shared .align 16 .b8 tile[16];";
  EXPECT_EQ(errorOfBlock(body(bar, bar, bar), 64, words), "");
  EXPECT_TRUE(says(errorOfBlock(body("", bar, bar), 64, words),
                   "data race: writes 4 bytes at shared memory + 0x4"));
  EXPECT_TRUE(
      says(errorOfBlock(body(bar, "", bar), 64, words),
           "data race: reads 16 bytes at shared memory + 0x0, which lane 1 of the same warp"));
  EXPECT_TRUE(says(errorOfBlock(body(bar, bar, ""), 64, words),
                   "data race: reads 4 bytes at shared memory + 0x8"));
}

/// Two blocks read the same bytes, and one of the two blocks then writes the bytes. The emulator
/// must record both reads to report the race.
TEST(EmulateRace, ReadsOfSeveralBlocksBeforeAWrite) {
  auto run = [](const std::string &body) {
    std::vector<uint32_t> out(64);
    return messageOf([&] {
      Emulator emulator("test.ptx",
                        kernel("mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 1;\n" + body));
      Launch launch;
      launch.entry = "k";
      launch.grid[0] = 2;
      launch.argument(emulator.memory().attach("out", out.data(), 256).base);
      emulator.launch(launch);
    });
  };
  const char *race = "data race: writes 4 bytes at out + 0x0, which another block has read";
  EXPECT_EQ(run("ld.global.b32 %r2, [%rd0];"), "");
  EXPECT_TRUE(says(run("@%p1 ld.global.b32 %r2, [%rd0]; @!%p1 st.global.b32 [%rd0], 1;"), race));
  EXPECT_TRUE(says(run("ld.global.b32 %r2, [%rd0]; @!%p1 st.global.b32 [%rd0], 1;"), race));
  // The writing block reads the bytes twice before it writes them.
  EXPECT_TRUE(says(
      run("ld.global.b32 %r2, [%rd0]; ld.global.b32 %r3, [%rd0]; @!%p1 st.global.b32 [%rd0], 1;"),
      race));
  EXPECT_EQ(run("@!%p1 ld.global.b32 %r2, [%rd0]; @!%p1 st.global.b32 [%rd0], 1;"), "");
}

/// Threads 0 and 1 of one warp and thread 32 of another warp read one after another. Then thread 1
/// writes. The read of thread 32 is ordered before the write, and the read of thread 0 is not. The
/// read of thread 0 must still be recorded at the write, although thread 1 of the same warp has
/// read later.
TEST(EmulateRace, AReadOfALaneIsNotForgottenForThatOfAnother) {
  auto body = [](const std::string &store, const std::string &load) {
    auto awaitTurn = [](const std::string &label, const std::string &load, int turn) {
      return label + ": " + load + ".shared.b32 %r5, [tile+2048]; setp.lt.u32 %p5, %r5, " +
             std::to_string(turn) + "; @%p5 bra " + label + ";\n";
    };
    std::string relaxed = "ld.relaxed.cta";
    return std::string(outElement) + R"(
      setp.ne.u32 %p1, %r0, 0; @%p1 bra start; st.shared.b32 [tile], 5; st.shared.b32 [tile+2048], 0; st.shared.b32 [tile+2052], 0;
    start: bar.sync 0; setp.eq.u32 %p2, %r0, 1; @%p2 bra second; setp.eq.u32 %p3, %r0, 32; @%p3 bra third; @%p1 bra done;
      ld.shared.b32 %r6, [tile]; )" +
           store + R"(.cta.shared.b32 [tile+2048], 1; bra done;
    third: )" +
           awaitTurn("one", load, 1) +
           R"(ld.shared.b32 %r6, [tile]; st.relaxed.cta.shared.b32 [tile+2048], 2;
      )" + awaitTurn("three", relaxed, 3) +
           R"(ld.shared.b32 %r6, [tile]; st.release.cta.shared.b32 [tile+2052], 1; bra done;
    second: )" +
           awaitTurn("two", relaxed, 2) +
           R"(ld.shared.b32 %r6, [tile]; st.relaxed.cta.shared.b32 [tile+2048], 3;
    four: ld.acquire.cta.shared.b32 %r7, [tile+2052]; setp.eq.u32 %p4, %r7, 0; @%p4 bra four; st.shared.b32 [tile], 7;
    done:)";
  };
  EXPECT_EQ(errorOfBlock(body("st.release", "ld.acquire.cta"), 64, tile), "");
  EXPECT_TRUE(says(
      errorOfBlock(body("st.relaxed", "ld.relaxed.cta"), 64, tile),
      "data race: writes 4 bytes at shared memory + 0x0, which lane 0 of the same warp has read"));
}
