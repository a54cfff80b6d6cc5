//===- EmulateMemoryTest.cpp - Loads, stores, atomics and their checks *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulateFixture.h"

using namespace fsdprt;
using namespace fsdprt::test;

TEST(EmulateMemory, VectorsAndExtensions) {
  std::vector<uint32_t> found = runBlock<uint32_t>(R"(
    st.global.v4.b32 [%rd0], {1, 2, 3, 4};
    ld.global.v2.b64 {%rd5, %rd6}, [%rd0];
    st.global.b64 [%rd0+16], %rd6;
    st.global.b8 [%rd0+24], 0x80;
    ld.global.s8 %r1, [%rd0+24]; st.global.b32 [%rd0+28], %r1;
    ld.global.u8 %r1, [%rd0+24]; st.global.b32 [%rd0+32], %r1;
    ld.global.s8 %h1, [%rd0+24]; st.global.b16 [%rd0+36], %h1;
    ld.global.v4.b32 {%r1, _, _, %r2}, [%rd0]; st.global.v2.b32 [%rd0+40], {%r2, %r1};
    ld.global.v2.b32 {_, %r3}, [%rd0]; st.global.b32 [%rd0+48], %r3;)",
                                                   13, 1);
  EXPECT_EQ(found,
            (std::vector<uint32_t>{1, 2, 3, 4, 3, 4, 0x80, 0xffffff80, 0x80, 0xff80, 4, 1, 2}));
}

TEST(EmulateMemory, GenericAddressesOfEverySpace) {
  std::string body = std::string(outElement) + R"(
    .local .align 4 .b8 own[8];
    mov.u64 %rd11, own; cvta.local.u64 %rd12, %rd11; st.b32 [%rd12+4], %r0;
    ld.local.b32 %r1, [own+4];
    mov.u64 %rd13, tile; cvta.shared.u64 %rd14, %rd13; mul.wide.u32 %rd15, %r0, 4; add.s64 %rd16, %rd14, %rd15; st.b32 [%rd16], %r1;
    cvta.to.shared.u64 %rd17, %rd16; ld.shared.b32 %r2, [%rd17];
    isspacep.shared %p1, %rd16; isspacep.shared %p2, %rd10;
    selp.b32 %r3, 100, 0, %p1; selp.b32 %r4, 1000, 0, %p2; add.s32 %r2, %r2, %r3; add.s32 %r2, %r2, %r4;
    st.b32 [%rd10], %r2;)";
  std::vector<uint32_t> found = runBlock<uint32_t>(body, 32, 32, ".shared .align 4 .b8 tile[128];");
  for (uint32_t tid = 0; tid < 32; ++tid)
    EXPECT_EQ(found[tid], tid + 100);
}

TEST(EmulateMemory, BoundsAndAlignment) {
  EXPECT_TRUE(says(errorOfBlock("ld.global.b32 %r1, [%rd0+16384];"),
                   "reads 4 bytes out of bounds at global address"));
  EXPECT_TRUE(says(errorOfBlock("ld.global.b32 %r1, [%rd0+16384];"),
                   "0 bytes after out, which has 16384 bytes (warp 0 of block (0,0,0), lane 0)"));
  EXPECT_TRUE(says(errorOfBlock("ld.global.b32 %r1, [%rd0+-4];"), "4 bytes before out"));
  EXPECT_TRUE(says(errorOfBlock("ld.global.v2.b32 {%r1, %r2}, [%rd0+16380];"),
                   "address 0x7f0000003ffc is not aligned to 8 bytes"));
  EXPECT_TRUE(says(errorOfBlock("ld.global.b64 %rd1, [%rd0+16384];"), "out of bounds"));
  EXPECT_TRUE(
      says(errorOfBlock("st.shared.b32 [tile+64], 1;", 32, ".shared .align 4 .b8 tile[64];"),
           "writes 4 bytes out of bounds at shared address 0x40: 0 bytes after shared memory, "
           "which has 64 bytes"));
  EXPECT_TRUE(says(errorOfBlock("ld.global.b32 %r1, [8];"), "reads 4 bytes out of bounds"));
  EXPECT_TRUE(says(errorOfBlock("st.global.b32 [table], 1;", 32, ".const .b32 table = 1;"),
                   "'table' is in const memory, but the instruction is for global memory"));
}

TEST(EmulateMemory, WhatNobodyWroteIsNotRead) {
  EXPECT_TRUE(says(errorOfBlock("add.s32 %r1, %r2, 1;"),
                   "add.s32: reads %r2 before it is written (warp 0 of block (0,0,0), all lanes)"));
  EXPECT_TRUE(says(errorOfBlock("@%p1 mov.u32 %r1, 1;"), "reads %p1 before it is written"));
  EXPECT_TRUE(
      says(errorOfBlock("ld.shared.b32 %r1, [tile];", 1, ".shared .align 4 .b8 tile[64];"),
           "reads 4 bytes at shared memory + 0x0, but the byte at + 0x0 was never written"));
  EXPECT_TRUE(says(errorOfBlock("st.shared.b16 [tile], 1; ld.shared.b32 %r1, [tile];", 1,
                                ".shared .align 4 .b8 tile[64];"),
                   "the byte at + 0x2 was never written"));
  // Copying an uninitialised register is no error. Any other use is an error.
  EXPECT_EQ(errorOfBlock("mov.u32 %r1, %r2;"), "");
  EXPECT_TRUE(says(errorOfBlock("mov.u32 %r1, %r2; st.global.b32 [%rd0], %r1;"),
                   "reads %r1 before it is written"));
  EXPECT_TRUE(says(errorOfBlock("mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 5; @%p1 mov.u32 %r1, "
                                "1; add.u32 %r2, %r1, 1;"),
                   "lanes 5-31"));
}

TEST(EmulateMemory, Atomics) {
  std::vector<uint32_t> found = runBlock<uint32_t>(R"(
    mov.u32 %r0, %tid.x;
    atom.global.add.u32 %r1, [%rd0], 2;
    red.global.max.s32 [%rd0+4], %r0;
    red.global.or.b32 [%rd0+8], %r0;
    atom.global.inc.u32 %r2, [%rd0+12], 9;
    cvt.rn.f32.u32 %r3, %r0;
    red.global.add.f32 [%rd0+16], %r3;
    atom.global.exch.b32 %r4, [%rd0+20], %r0;
    red.global.add.v2.f32 [%rd0+24], {%r3, %r3};
    atom.global.cas.b32 %r5, [%rd0+32], 0, %r0;)",
                                                   9, 96);
  float sum = 95 * 96 / 2;
  uint32_t bits;
  std::memcpy(&bits, &sum, 4);
  EXPECT_EQ(found, (std::vector<uint32_t>{192, 95, 127, 96 % 10, bits, 95, bits, bits, 1}));
}

TEST(EmulateMemory, ArgumentsAreChecked) {
  Emulator emulator("test.ptx", kernel("", 2));
  Launch launch;
  launch.entry = "k";
  launch.argument(uint64_t(0));
  EXPECT_EQ(messageOf([&] { emulator.launch(launch); }),
            "launch of k: expected 2 arguments, found 1");
  launch.argument(uint32_t(0));
  EXPECT_EQ(messageOf([&] { emulator.launch(launch); }),
            "launch of k: expected 8 bytes for argument 1 (p1), found 4");
  launch.block[0] = 1025;
  EXPECT_EQ(messageOf([&] { emulator.launch(launch); }),
            "launch of k: a block of 1025,1,1 has more than 1024 threads");
  EXPECT_EQ(messageOf([&] { launch.entry = "f", emulator.launch(launch); }),
            "test.ptx: no entry function 'f'; there are: k");
}

TEST(EmulateMemory, CountsTrafficAndConflicts) {
  std::string body = std::string(outElement) + R"(
    mul.lo.u32 %r1, %r0, 8; mov.u32 %r2, tile; add.u32 %r3, %r1, %r2;
    st.shared.b32 [%r3], %r0; ld.shared.b32 %r4, [%r3]; st.global.b32 [%rd10], %r4;)";
  std::vector<uint32_t> out(32);
  Emulator emulator("test.ptx", kernel(body, 1, ".shared .align 4 .b8 tile[256];"));
  Launch launch;
  launch.entry = "k";
  launch.block[0] = 32;
  launch.argument(emulator.memory().attach("out", out.data(), 128).base);
  emulate::Counters counters = emulator.launch(launch);
  EXPECT_EQ(counters.globalStoreBytes, 128u);
  EXPECT_EQ(counters.globalSectors, 4u);
  EXPECT_EQ(counters.sharedLoadBytes, 128u);
  EXPECT_EQ(counters.sharedPasses, 2u);
  EXPECT_EQ(counters.bankConflicts, 2u); // the lanes access two words of every second bank
  EXPECT_EQ(counters.opcodes.at("st.shared.b32"), 1u);
  EXPECT_EQ(counters.laneInstructions, counters.instructions * 32);
}
