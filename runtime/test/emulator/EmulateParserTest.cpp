//===- EmulateParserTest.cpp - Valid and invalid PTX ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests that error messages contain lines and columns, and that no text crashes the parser.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Program.h"
#include "test/emulator/EmulateFixture.h"
#include <random>

using namespace fsdprt;
using namespace fsdprt::emulate;
using namespace fsdprt::test;

static std::string errorOf(const std::string &text) {
  return messageOf([&] { Emulator("test.ptx", text).program("k"); });
}

static std::string errorOfBody(const std::string &body) { return errorOf(kernel(body)); }

TEST(EmulateParser, HeaderIsNeeded) {
  EXPECT_EQ(errorOf(""), "test.ptx:1:1: error: expected .version at the start of a PTX file, found "
                         "the end of the file");
  EXPECT_EQ(errorOf(".version x"),
            "test.ptx:1:10: error: expected a version such as 8.6, found 'x'");
  EXPECT_EQ(errorOf(".version 8.6\n.target sm_90a\n.address_size 32\n"),
            "test.ptx:4:1: error: expected an address size of 64");
  EXPECT_EQ(
      errorOf(".version 8.6\n.target sm_90a\n.entre k"),
      "test.ptx:3:1: error: expected .entry, .func, .global, .shared or .const, found '.entre'");
}

TEST(EmulateParser, ErrorsSayWhere) {
  // The body of the function begins at line 12.
  EXPECT_EQ(errorOfBody("ad.s32 %r1, %r2, %r3;"),
            "test.ptx:12:1: error: unknown instruction 'ad.s32'");
  EXPECT_EQ(errorOfBody("add.s32 %r1, %r2;"),
            "test.ptx:12:1: error: expected 3 operands of 'add.s32', found 2");
  EXPECT_EQ(errorOfBody("add.s32.x %r1, %r2, %r3;"),
            "test.ptx:12:1: error: unknown modifier '.x' in 'add.s32.x'");
  EXPECT_EQ(
      errorOfBody("add.s32 %r1, %rd2, %r3;"),
      "test.ptx:12:14: error: expected an operand of 32 bits for type s32, found a register of 64");
  EXPECT_EQ(
      errorOfBody("add.s32 %r1, %foo, %r3;"),
      "test.ptx:12:14: error: '%foo' is neither a declared register nor a known special register");
  EXPECT_EQ(errorOfBody("bra nowhere;"),
            "test.ptx:12:5: error: expected a label of this function, found 'nowhere'");
  EXPECT_EQ(errorOfBody("ld.global.b32 %r1, [foo];"),
            "test.ptx:12:21: error: 'foo' is neither a register nor a variable");
  EXPECT_EQ(errorOfBody("@%r1 bra x;"),
            "test.ptx:12:2: error: expected a predicate after '@', found '%r1'");
  EXPECT_EQ(errorOfBody("call f;"),
            "test.ptx:12:6: error: function 'f' has no body in this module");
  EXPECT_EQ(errorOfBody("mov.u32 %r1, 99999999999999999999999;"),
            "test.ptx:12:14: error: '99999999999999999999999' does not fit into 64 bits");
  EXPECT_EQ(errorOfBody("mul.s32 %r1, %r2, %r3;"),
            "test.ptx:12:1: error: expected .lo, .hi or .wide in 'mul.s32'");
  EXPECT_EQ(errorOfBody("add.s32 %r1, %r2, %r3"),
            "test.ptx:13:1: error: expected ';', found 'ret'");
  EXPECT_EQ(errorOfBody("/* "), "test.ptx:12:1: error: this comment has no end: expected */");
  EXPECT_EQ(errorOfBody("x: x: "), "test.ptx:12:4: error: a second label 'x' in one scope");
}

TEST(EmulateParser, LabelsAndRegistersOfScopesAreTheirOwn) {
  const char *body = R"(
    mov.u32 %r1, 3;
    { .reg .b32 t; mov.u32 t, 5; bra skip; mov.u32 t, 6; skip: st.global.b32 [%rd0], t; }
    { .reg .b32 t; mov.u32 t, 7; bra skip; mov.u32 t, 8; skip: st.global.b32 [%rd0+4], t; }
    { .reg .b32 %r1; mov.u32 %r1, 9; }
    st.global.b32 [%rd0+8], %r1;)";
  EXPECT_EQ(runBlock<uint32_t>(body, 3, 1), (std::vector<uint32_t>{5, 7, 3}));
}

TEST(EmulateParser, VariablesHaveInitialValues) {
  const char *globals = R"(
    .global .align 4 .b8 bytes[8] = {1, 2, 0x3, 4, 5};
    .const .f32 half = 0.5;
    .global .u64 pointer = bytes+2;
    .global .u64 generic_pointer[2] = {0, generic(bytes)+4};
    .global .align 4 .u16 table[2][2] = {{1, 2}, {3, 4}};)";
  const char *body = R"(
    ld.global.u32 %r1, [bytes];           st.global.b32 [%rd0], %r1;
    ld.const.f32 %r1, [half];             st.global.b32 [%rd0+4], %r1;
    ld.global.u64 %rd5, [pointer];        ld.global.u8 %r1, [%rd5]; st.global.b32 [%rd0+8], %r1;
    ld.global.u64 %rd5, [generic_pointer+8]; ld.u8 %r1, [%rd5];     st.global.b32 [%rd0+12], %r1;
    ld.global.u32 %r1, [table+4];         st.global.b32 [%rd0+16], %r1;
    ld.global.u32 %r1, [bytes+4];         st.global.b32 [%rd0+20], %r1;)";
  EXPECT_EQ(runBlock<uint32_t>(body, 6, 1, globals),
            (std::vector<uint32_t>{0x04030201, 0x3f000000, 3, 5, 0x00040003, 5}));
}

TEST(EmulateParser, FunctionsReturnValues) {
  const char *globals = R"(
    .func (.param .b32 result) twice(.param .b32 x, .param .align 8 .b8 pair[16])
    ;
    .func (.param .b32 result) add_one(.param .b32 x)
    { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; add.s32 %r2, %r1, 1; st.param.b32 [result], %r2; ret; }
    .func (.param .b32 result) twice(.param .b32 x, .param .align 8 .b8 pair[16])
    {
      .reg .b32 %r<5>; .reg .pred %p;
      ld.param.b32 %r1, [x];
      ld.param.b32 %r3, [pair+8];
      { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), add_one, (a); ld.param.b32 %r2, [b]; }
      setp.lt.s32 %p, %r1, 3;
      @%p bra small;
      add.s32 %r2, %r2, 100;
      st.param.b32 [result], %r2;
      ret;
    small:
      add.s32 %r2, %r2, %r3;
      st.param.b32 [result], %r2;
      ret;
    })";
  std::string body = std::string(outElement) + R"(
    { .param .b32 a; .param .align 8 .b8 pair[16]; .param .b32 b;
      st.param.b32 [a], %r0; st.param.b32 [pair+8], 50;
      call.uni (b), twice, (a, pair); ld.param.b32 %r1, [b]; }
    st.global.b32 [%rd10], %r1;)";
  std::vector<uint32_t> found = runBlock<uint32_t>(body, 32, 32, globals);
  for (uint32_t tid = 0; tid < 32; ++tid)
    EXPECT_EQ(found[tid], tid + 1 + (tid < 3 ? 50 : 100));
}

TEST(EmulateParser, RecursionIsRefused) {
  std::string text = kernel("call f;", 1, ".func f { call f; ret; }");
  EXPECT_NE(errorOf(text).find("function 'f' calls itself, which is not supported"),
            std::string::npos)
      << errorOf(text);
}

TEST(EmulateParser, DebuggingIsSkipped) {
  std::string text = kernel(".loc 1 2 3\nmov.u32 %r1, 1; .pragma \"nounroll\";\n.loc 1 5 1, "
                            "function_name $L__info, inlined_at 1 2 3\n") +
                     ".file 1 \"a.cu\"\n.section .debug_str\n{\n$L__info: .b8 102\n.b8 111\n}\n";
  EXPECT_EQ(errorOf(text), "");
}

/// Parses and runs a text. This may succeed or throw an Error, but must not crash.
static void survives(const std::string &text) {
  try {
    Emulator emulator("fuzz.ptx", text);
    std::vector<uint8_t> memory(4096);
    Launch launch;
    launch.entry = "k";
    launch.block[0] = 64;
    launch.stepLimit = 2000;
    launch.argument(emulator.memory().attach("memory", memory.data(), memory.size()).base);
    emulator.launch(launch);
  } catch (const Error &) {
  }
}

static const char *const fuzzed = R"(
  { .reg .pred q; .reg .b32 t; mov.u32 t, %tid.x; setp.lt.u32 q, t, 16; @!q bra other; bar.warp.sync 0xffff; other: }
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd0, %rd2; ld.global.v2.u16 {%h1, %h2}, [%rd0];
  shfl.sync.bfly.b32 %r2|%p1, %r1, 1, 31, 0xffffffff; mov.b64 %rd4, {%r1, %r2}; cvt.rn.f32.s32 %r3, %r2; ex2.approx.ftz.f32 %r4, %r3;
  atom.global.add.u32 %r5, [%rd3+256], 1; mov.u32 %r6, tile; st.shared.b32 [%r6+-0], %r1; bar.sync 0; ld.shared.b32 %r7, [tile];
  selp.b32 %r8, %r7, 0x10, %p1; fma.rn.f32 %r9, %r8, 0f3F800000, %r3; vote.sync.ballot.b32 %r10, %p1, -1; st.global.b32 [%rd3], %r9;)";

TEST(EmulateParser, TruncatedFilesAreErrors) {
  std::string text = kernel(fuzzed, 1, ".shared .align 4 .b8 tile[1024];");
  EXPECT_EQ(errorOf(text), "");
  for (size_t length = 0; length < text.size(); ++length)
    survives(text.substr(0, length));
}

TEST(EmulateParser, FlippedBitsAreSurvived) {
  std::string text = kernel(fuzzed, 1, ".shared .align 4 .b8 tile[1024];");
  std::mt19937 random(7);
  for (int round = 0; round < 4000; ++round) {
    std::string changed = text;
    for (int flips = 1 + random() % 3; flips; --flips)
      changed[random() % changed.size()] ^= 1 << random() % 8;
    survives(changed);
  }
}

TEST(EmulateParser, ShuffledWordsAreSurvived) {
  std::string text = kernel(fuzzed, 1, ".shared .align 4 .b8 tile[1024];");
  std::mt19937 random(8);
  for (int round = 0; round < 4000; ++round) {
    size_t from = random() % text.size(), to = random() % text.size(), length = random() % 30;
    std::string changed = text;
    changed.insert(to, text.substr(from, length));
    if (round % 2)
      changed.erase(random() % changed.size(), random() % 20);
    survives(changed);
  }
}
