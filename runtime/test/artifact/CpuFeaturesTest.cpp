//===- CpuFeaturesTest.cpp - Which processors an artifact runs on -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests which features the runtime derives from made-up results of the instructions CPUID and
// XGETBV. Also runs fsdp-run while some features of the processor are hidden.
//
//===----------------------------------------------------------------------===//

#include "artifact/CpuFeatures.h"
#include "fsdprt/fsdprt.h"
#include "test/run/RunFixture.h"

using namespace fsdprt;
using namespace fsdprt::test;

#if defined(__x86_64__)

namespace {
struct Registers {
  uint32_t values[4]; // eax, ebx, ecx, edx
};

constexpr uint32_t bits(std::initializer_list<int> list) {
  uint32_t word = 0;
  for (int bit : list)
    word |= uint32_t(1) << bit;
  return word;
}

constexpr int osxsave = 27;
constexpr uint32_t level2 =
    bits({0, 9, 13, 19, 20, 23}); // sse3, ssse3, cx16, sse4.1, sse4.2, popcnt
constexpr uint32_t level3 = level2 | bits({12, 22, 28, 29}); // fma, movbe, avx, f16c
constexpr uint32_t avx512 = bits({5, 16, 17, 28, 30, 31});   // with avx2

/// Returns a made-up processor that has CPUID leaf 1 and, if `leaf7` is not 0, two subleaves of
/// CPUID leaf 7. The instruction XGETBV of this processor returns `saved`.
Processor processor(uint32_t leaf1, uint32_t leaf7, uint32_t leaf71, uint32_t saved) {
  return {[=](uint32_t leaf, uint32_t subleaf, uint32_t (&r)[4]) {
            Registers found = {{0, 0, 0, 0}};
            if (leaf == 1)
              found = {{0, 0, leaf1, bits({25, 26})}};
            else if (leaf == 7 && leaf7)
              found = subleaf ? Registers{{leaf71, 0, 0, 0}} : Registers{{1, leaf7, 0, 0}};
            else
              return false;
            std::copy_n(found.values, 4, r);
            return true;
          },
          [=] {
            EXPECT_TRUE(leaf1 >> osxsave & 1) << "XGETBV is an invalid instruction here";
            return saved;
          }};
}
} // namespace

// Tests x86-64-v2, which has neither AVX nor leaf 7.
TEST(CpuFeatures, GenericLevel2) {
  Processor generic = processor(level2, 0, 0, 0);
  for (const char *has : {"sse2", "pni", "ssse3", "sse4_1", "sse4_2", "popcnt", "cx16"})
    EXPECT_EQ(cpuFeature(has, generic), Feature::present) << has;
  for (const char *lacks :
       {"avx", "avx2", "fma", "f16c", "movbe", "bmi1", "avx512f", "avx512_bf16", "amx_bf16", "abm"})
    EXPECT_EQ(cpuFeature(lacks, generic), Feature::absent) << lacks;
  EXPECT_EQ(cpuFeature("avx3", generic), Feature::unknown);
}

TEST(CpuFeatures, Avx512WithAndWithoutBf16) {
  uint32_t leaf1 = level3 | bits({osxsave});
  EXPECT_EQ(cpuFeature("avx512f", processor(leaf1, avx512, 0, 0xe7)), Feature::present);
  EXPECT_EQ(cpuFeature("avx512_bf16", processor(leaf1, avx512, 0, 0xe7)), Feature::absent);
  EXPECT_EQ(cpuFeature("avx512_bf16", processor(leaf1, avx512, bits({5}), 0xe7)), Feature::present);
}

TEST(CpuFeatures, TheSystemHasToSaveTheRegisters) {
  uint32_t leaf1 = level3 | bits({osxsave});
  Processor onlyAvx = processor(leaf1, avx512, bits({5}), 0x7);
  EXPECT_EQ(cpuFeature("avx2", onlyAvx), Feature::present);
  EXPECT_EQ(cpuFeature("avx512f", onlyAvx), Feature::absent);
  EXPECT_EQ(cpuFeature("avx512_bf16", onlyAvx), Feature::absent);
  EXPECT_EQ(cpuFeature("avx2", processor(leaf1, avx512, 0, 0x3)), Feature::absent);
  EXPECT_EQ(cpuFeature("avx2", processor(level3, avx512, 0, 0x7)),
            Feature::absent); // XGETBV must not be called
  EXPECT_EQ(cpuFeature("sse4_2", processor(level3, avx512, 0, 0)), Feature::present);
}

TEST_F(Run, RefusesAnArtifactForANewerProcessor) {
  ToyOptions options;
  options.shards = 2;
  auto manifest = toyManifest(options);
  manifest.isa = {"sse2"};
  auto file = pack(manifest);
  writeFile(at("toyisa.fsdp"), file.data(), file.size());
  std::string lacks = "toyisa.fsdp: manifest: the kernels need processor features that this "
                      "machine lacks: sse2; compile the model for "
                      "this machine";
  for (std::string how : {"", " --processes"}) {
    Result shown = run("toyisa.fsdp --steps=2" + how),
           hidden = run("toyisa.fsdp --steps=2" + how, "FSDPRT_HIDE_FEATURES=avx2,sse2"),
           misspelt = run("toyisa.fsdp --steps=2" + how, "FSDPRT_HIDE_FEATURES=sse9000");
    EXPECT_EQ(shown.code, 0) << shown.output;
    EXPECT_EQ(hidden.code, FSDPRT_BAD_INPUT) << hidden.output;
    EXPECT_NE(hidden.output.find(lacks), std::string::npos) << hidden.output;
    EXPECT_EQ(misspelt.code, FSDPRT_BAD_INPUT) << misspelt.output;
    EXPECT_NE(misspelt.output.find("FSDPRT_HIDE_FEATURES: expected names of processor features"),
              std::string::npos)
        << misspelt.output;
  }
}

#endif
