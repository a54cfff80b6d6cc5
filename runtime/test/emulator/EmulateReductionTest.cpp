//===- EmulateReductionTest.cpp - Reductions of the async proxy -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/Formats.h"
#include "test/emulator/EmulateTensors.h"

using namespace fsdprt::test;
using namespace fsdprt::emulate;

/// Returns a kernel. Each block sets the words in 1024 bytes of `tile` to `value`, and combines
/// these words with the memory at %rd0.
static std::string reduceAll(const std::string &reduction, const std::string &value,
                             const std::string &fence = "fence.proxy.async.shared::cta;") {
  return R"(
    mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mad.lo.u32 %r2, %r0, 4, %r1; mov.u32 %r3, 0;
  fill: st.shared.b32 [%r2], )" +
         value +
         "; add.u32 %r2, %r2, 128; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 8; @%p1 bra fill;" +
         fence + R"(
    bar.warp.sync -1; setp.ne.u32 %p1, %r0, 0; @%p1 bra done;
    )" + reduction +
         R"( cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
  done:)";
}

static std::vector<uint32_t> reduceBulk(const std::string &suffix, const std::string &value,
                                        uint32_t before) {
  TensorKernel kernel;
  kernel.body = reduceAll("cp.reduce.async.bulk.global.shared::cta.bulk_group." + suffix +
                              " [%rd0], [tile], 1024;",
                          value);
  kernel.blocks = 2;
  kernel.out.assign(300, before);
  kernel.run();
  EXPECT_EQ(kernel.out[255], kernel.out[0]);
  EXPECT_EQ(kernel.out[256], before);
  return {kernel.out[0]};
}

/// Two blocks of a cluster add to the same elements in any order. This is no race, because the
/// additions are atomic.
TEST(EmulateReduction, CombinesWithGlobalMemory) {
  auto one = [](uint32_t value) { return std::vector<uint32_t>{value}; };
  EXPECT_EQ(reduceBulk("add.u32", "5", 7), one(17));
  EXPECT_EQ(reduceBulk("add.f32", "0f3f800000", 0x40000000), one(0x40800000));
  EXPECT_EQ(reduceBulk("add.noftz.bf16", "0x3f803f80", 0x40003f80), one(0x40804040));
  EXPECT_EQ(reduceBulk("add.noftz.f16", "0x3c003c00", 0x40003c00), one(0x44004200));
  EXPECT_EQ(reduceBulk("add.f64", "0", 0), one(0));
  EXPECT_EQ(reduceBulk("min.s32", "-3", 2), one(uint32_t(-3)));
  EXPECT_EQ(reduceBulk("max.u32", "3", 2), one(3));
  EXPECT_EQ(reduceBulk("max.bf16", "0x3f80c000", 0x00004000), one(0x3f804000));
  EXPECT_EQ(reduceBulk("inc.u32", "8", 8), one(1));
  EXPECT_EQ(reduceBulk("dec.u32", "8", 0), one(7));
  EXPECT_EQ(reduceBulk("xor.b32", "5", 3), one(3));
  EXPECT_EQ(reduceBulk("or.b64", "4", 3), one(7));
}

TEST(EmulateReduction, FaultsAreFound) {
  auto run = [](const std::string &reduction, const std::string &fence = "fence.proxy.async;") {
    TensorKernel kernel;
    kernel.body = reduceAll(reduction, "1", fence);
    return kernel.error();
  };
  const std::string add =
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [tile], 1024;";
  EXPECT_EQ(run(add), "");
  EXPECT_TRUE(says(run(add, ""), "the async proxy reads shared memory"));
  EXPECT_TRUE(says(run(add + "st.global.b32 [%rd0], 1;"), "asynchronously writes"));
  EXPECT_TRUE(says(run(add + "st.shared.b32 [tile], 1;"), "asynchronously reads"));
  EXPECT_TRUE(
      says(run("cp.reduce.async.bulk.global.shared::cta.bulk_group.and.f32 [%rd0], [tile], 1024;"),
           "type f32 is not supported by this operation"));
  EXPECT_TRUE(says(run("cp.reduce.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.add."
                       "u32 [tile], [%rd0], 16, [full];"),
                   "cp.reduce is for what comes from shared memory"));
  EXPECT_TRUE(
      says(run("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [tile], 20;"),
           "expected a multiple of 16"));
}

TEST(EmulateReduction, CombinesBoxes) {
  auto run = [](TensorType type, const std::string &op, std::vector<uint32_t> &values) {
    TensorKernel kernel;
    kernel.body = reduceAll("cp.reduce.async.bulk.tensor.2d.global.shared::cta." + op +
                                ".tile.bulk_group [%m0, {4, -2}], [tile];",
                            "3");
    kernel.blocks = 2;
    kernel.add(denseMap(type, {16, 16}, {8, 8}, TensorSwizzle::Bytes32), values);
    return kernel.error();
  };
  std::vector<uint32_t> values(256, 10);
  EXPECT_EQ(run(TensorType::U32, "add", values), "");
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 16; ++column)
      ASSERT_EQ(values[row * 16 + column], row < 6 && column >= 4 && column < 12 ? 16u : 10u)
          << row << " " << column;
  EXPECT_EQ(run(TensorType::S32, "xor", values), "");
  EXPECT_EQ(values[4], 16u);
  EXPECT_TRUE(says(run(TensorType::F32, "xor", values),
                   "type f32 of the tensor map is not supported by this operation"));
  EXPECT_TRUE(says(run(TensorType::F32, "exch", values), "cp.reduce does not exchange"));
}
