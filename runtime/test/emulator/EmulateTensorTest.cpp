//===- EmulateTensorTest.cpp - Tensor maps and copies of boxes --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulateTensors.h"
#include <cmath>
#include <numeric>

using namespace fsdprt::test;
using namespace fsdprt::emulate;

TEST(EmulateTensorMap, KeepsItsArguments) {
  TensorMap map = denseMap(TensorType::BF16, {64, 300, 3}, {64, 128, 2}, TensorSwizzle::Bytes128);
  map.address = 0x7f0000001000, map.steps[1] = 3, map.fill = TensorFill::NaN;
  TensorMapBytes bytes = encodeTensorMap(map);
  std::optional<TensorMap> found = decodeTensorMap(bytes.data());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->address, map.address);
  EXPECT_EQ(found->rank, 3u);
  EXPECT_EQ(found->sizes[1], 300u);
  EXPECT_EQ(found->strides[1], 128u * 300);
  EXPECT_EQ(found->box[1], 128u);
  EXPECT_EQ(found->count(1), 43u);
  EXPECT_EQ(found->boxBytes(), 128u * 43 * 2);
  EXPECT_EQ(found->swizzle, TensorSwizzle::Bytes128);
  EXPECT_EQ(found->fill, TensorFill::NaN);
  ++bytes[40];
  EXPECT_FALSE(decodeTensorMap(bytes.data()));
}

TEST(EmulateTensorMap, ArgumentsAreChecked) {
  auto fails = [](const std::string &part, auto change) {
    TensorMap map = denseMap(TensorType::F32, {64, 8, 8}, {16, 4, 4});
    change(map);
    EXPECT_TRUE(says(messageOf([&] { encodeTensorMap(map); }), "tensor map: " + part));
  };
  fails("data type 13: expected 0 to 12",
        [](TensorMap &map) { map.type = static_cast<TensorType>(13); });
  fails("interleave 3: expected 0 to 2",
        [](TensorMap &map) { map.interleave = static_cast<TensorInterleave>(3); });
  fails("swizzle 4: expected 0 to 3",
        [](TensorMap &map) { map.swizzle = static_cast<TensorSwizzle>(4); });
  fails("L2 promotion 4: expected 0 to 3", [](TensorMap &map) { map.promotion = 4; });
  fails("out-of-bounds fill 2: expected 0 or 1",
        [](TensorMap &map) { map.fill = static_cast<TensorFill>(2); });
  fails("NaN as out-of-bounds fill of type S32",
        [](TensorMap &map) { map.type = TensorType::S32, map.fill = TensorFill::NaN; });
  fails("rank 0: expected 1 to 5", [](TensorMap &map) { map.rank = 0; });
  fails("rank 6: expected 1 to 5", [](TensorMap &map) { map.rank = 6; });
  fails("rank 2: expected 3 at least",
        [](TensorMap &map) { map.rank = 2, map.interleave = TensorInterleave::Bytes16; });
  fails("swizzle 0: expected 32 bytes",
        [](TensorMap &map) { map.interleave = TensorInterleave::Bytes32; });
  fails("interleaved layouts are not supported",
        [](TensorMap &map) { map.interleave = TensorInterleave::Bytes16; });
  fails("address 0x8: expected a multiple of 16", [](TensorMap &map) { map.address = 8; });
  fails("size 0 of dimension 1: expected 1 to 2^32", [](TensorMap &map) { map.sizes[1] = 0; });
  fails("size 4294967297 of dimension 2",
        [](TensorMap &map) { map.sizes[2] = (uint64_t(1) << 32) + 1; });
  fails("stride 24 of dimension 1: expected a multiple of 16 below 2^40",
        [](TensorMap &map) { map.strides[0] = 24; });
  fails("stride 1099511627776 of dimension 2",
        [](TensorMap &map) { map.strides[1] = uint64_t(1) << 40; });
  fails("box of 0 in dimension 2: expected 1 to 256", [](TensorMap &map) { map.box[2] = 0; });
  fails("box of 257 in dimension 1", [](TensorMap &map) { map.box[1] = 257; });
  fails("element stride 9 of dimension 1: expected 1 to 8",
        [](TensorMap &map) { map.steps[1] = 9; });
  fails("element stride 0 of dimension 0", [](TensorMap &map) { map.steps[0] = 0; });
  fails("20 bytes of a box in dimension 0: expected a multiple of 16",
        [](TensorMap &map) { map.box[0] = 5; });
  fails("64 bytes of a box in dimension 0: expected 32 at most",
        [](TensorMap &map) { map.swizzle = TensorSwizzle::Bytes32; });
}

/// Lane 0 loads a box. Then all lanes copy `bytes` bytes of `tile` to `out`.
static std::string loadBox(const std::string &coordinates, uint64_t bytes,
                           const std::string &expected = "") {
  std::string rank = std::to_string(std::count(coordinates.begin(), coordinates.end(), ',') + 1),
              size = std::to_string(bytes);
  return R"(
    mov.u32 %r0, %tid.x; setp.ne.u32 %p1, %r0, 0; @%p1 bra wait;
    mbarrier.init.shared.b64 [full], 1; fence.mbarrier_init.release.cluster; prefetch.tensormap [%m0];
    mbarrier.arrive.expect_tx.shared.b64 _, [full], )" +
         (expected.empty() ? size : expected) + R"(;
    cp.async.bulk.prefetch.tensor.)" +
         rank + "d.L2.global.tile [%m0, {" + coordinates + R"(}];
    cp.async.bulk.tensor.)" +
         rank + "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%m0, {" +
         coordinates + R"(}], [full];
  wait: bar.warp.sync -1; mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
    mov.u32 %r1, tile; mul.lo.u32 %r2, %r0, 4;
  copy: setp.ge.u32 %p3, %r2, )" +
         size + R"(; @%p3 bra done;
    add.u32 %r3, %r1, %r2; ld.shared.b32 %r4, [%r3]; cvt.u64.u32 %rd1, %r2; add.u64 %rd2, %rd0, %rd1; st.global.b32 [%rd2], %r4;
    add.u32 %r2, %r2, 128; bra copy;
  done:)";
}

namespace {
struct LoadCase {
  TensorType type;
  std::vector<uint64_t> sizes;
  std::vector<uint32_t> box, steps;
  TensorSwizzle swizzle;
  std::vector<int> at;
};

class LoadTest : public testing::TestWithParam<LoadCase> {};
} // namespace

static std::string joined(const std::vector<int> &numbers) {
  std::string text;
  for (int each : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(each);
  return text;
}

/// Returns the expected element at an index in the box, according to PTX ISA.
static uint64_t expectedElement(const LoadCase &load, const TensorMap &map,
                                const std::vector<uint8_t> &values, std::vector<uint32_t> index) {
  uint64_t element = 0, stride = 1, result = 0;
  for (unsigned d = 0; d < map.rank; ++d) {
    int64_t position = load.at[d] + int64_t(index[d]) * (d ? map.steps[d] : 1);
    if (position < 0 || position >= int64_t(map.sizes[d]))
      return 0;
    element += position * stride;
    stride *= map.sizes[d];
  }
  std::memcpy(&result, values.data() + element * map.elementBytes(), map.elementBytes());
  return result;
}

TEST_P(LoadTest, PutsTheBoxWhereTheSwizzleSays) {
  LoadCase load = GetParam();
  TensorMap map = denseMap(load.type, load.sizes, load.box, load.swizzle);
  std::copy(load.steps.begin(), load.steps.end(), map.steps);
  size_t count =
      std::accumulate(load.sizes.begin(), load.sizes.end(), uint64_t(1), std::multiplies<>());
  std::vector<uint8_t> values(count * map.elementBytes());
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = k * 37 % 251 + 1;
  TensorKernel kernel;
  kernel.body = loadBox(joined(load.at), map.boxBytes());
  kernel.add(map, values);
  kernel.run();
  auto found = reinterpret_cast<const uint8_t *>(kernel.out.data());
  std::vector<uint32_t> index(map.rank);
  for (uint64_t offset = 0; offset < map.boxBytes(); offset += map.elementBytes()) {
    uint64_t rest = offset / map.elementBytes(), element = 0;
    for (unsigned d = 0; d < map.rank; ++d)
      index[d] = rest % map.count(d), rest /= map.count(d);
    // With a 128-byte swizzle, 16-byte chunk c of 128-byte row r is stored as chunk c ^ (r % 8).
    // For a 64-byte swizzle, the modulus is 4 instead of 8, and for a 32-byte swizzle it is 2.
    uint64_t chunk = offset / 16 % 8, row = offset / 128,
             pattern = 1 << static_cast<int>(load.swizzle);
    std::memcpy(&element, found + row * 128 + (chunk ^ row % pattern) * 16 + offset % 16,
                map.elementBytes());
    ASSERT_EQ(element, expectedElement(load, map, values, index)) << offset;
  }
}

INSTANTIATE_TEST_SUITE_P(
    EmulateTensor, LoadTest,
    testing::Values(
        LoadCase{TensorType::U8, {256}, {64}, {1}, TensorSwizzle::None, {-16}},
        LoadCase{TensorType::F32, {64, 20}, {8, 16}, {1, 1}, TensorSwizzle::None, {60, -3}},
        LoadCase{TensorType::BF16, {64, 40}, {16, 32}, {1, 1}, TensorSwizzle::Bytes32, {8, 20}},
        LoadCase{TensorType::BF16, {64, 40}, {32, 32}, {1, 1}, TensorSwizzle::Bytes64, {8, 4}},
        LoadCase{TensorType::BF16, {64, 40}, {64, 32}, {1, 1}, TensorSwizzle::Bytes128, {-8, 30}},
        LoadCase{
            TensorType::F64, {16, 6, 5}, {16, 2, 3}, {1, 1, 1}, TensorSwizzle::Bytes128, {0, 5, 1}},
        LoadCase{TensorType::F16, {16, 9, 9}, {8, 5, 6}, {1, 2, 3}, TensorSwizzle::None, {8, 1, 2}},
        LoadCase{TensorType::U16,
                 {16, 3, 3, 3},
                 {8, 2, 2, 2},
                 {1, 1, 1, 1},
                 TensorSwizzle::None,
                 {1, 2, 0, 1}},
        LoadCase{TensorType::U32,
                 {8, 2, 3, 2, 3},
                 {8, 2, 2, 2, 2},
                 {1, 1, 1, 1, 1},
                 TensorSwizzle::Bytes32,
                 {0, 0, 1, 1, 2}}));

/// The map divides each row of 128 columns into two panels of 64 columns. The stride of dimension 2
/// (the panels) is therefore smaller than the stride of dimension 1 (the rows).
TEST(EmulateTensor, ARowAsPanels) {
  std::vector<uint16_t> values(32 * 128);
  std::iota(values.begin(), values.end(), 0);
  TensorMap map = denseMap(TensorType::BF16, {64, 32, 2}, {64, 16, 2}, TensorSwizzle::Bytes128);
  map.strides[0] = 256, map.strides[1] = 128;
  TensorKernel kernel;
  kernel.body = loadBox("0, 8, 0", map.boxBytes());
  kernel.add(map, values);
  kernel.run();
  auto found = reinterpret_cast<const uint16_t *>(kernel.out.data());
  for (unsigned panel = 0; panel < 2; ++panel)
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned column = 0; column < 64; ++column)
        ASSERT_EQ(found[panel * 1024 + row * 64 + (column / 8 ^ row % 8) * 8 + column % 8],
                  (8 + row) * 128 + panel * 64 + column);
}

TEST(EmulateTensor, WhatIsOutsideIsZeroOrNaN) {
  std::vector<float> values(32, 1);
  for (TensorFill fill : {TensorFill::Zeros, TensorFill::NaN}) {
    TensorMap map = denseMap(TensorType::F32, {32}, {32});
    map.fill = fill;
    TensorKernel kernel;
    kernel.body = loadBox("16", 128);
    kernel.add(map, values);
    kernel.run();
    float found[32];
    std::memcpy(found, kernel.out.data(), 128);
    EXPECT_EQ(found[15], 1);
    EXPECT_EQ(std::isnan(found[16]), fill == TensorFill::NaN);
    EXPECT_TRUE(fill == TensorFill::NaN || found[31] == 0);
  }
}

TEST(EmulateTensor, TypesThatRound) {
  std::vector<uint32_t> values{0x3f800fff, 0x3f801000, 0x3f803000, 0x00000001};
  values.resize(32);
  auto run = [&](TensorType type) {
    TensorKernel kernel;
    kernel.body = loadBox("0", 128);
    kernel.add(denseMap(type, {32}, {32}), values);
    kernel.run();
    return std::vector<uint32_t>(kernel.out.begin(), kernel.out.begin() + 4);
  };
  EXPECT_EQ(run(TensorType::F32), (std::vector<uint32_t>{0x3f800fff, 0x3f801000, 0x3f803000, 1}));
  EXPECT_EQ(run(TensorType::F32Flushed),
            (std::vector<uint32_t>{0x3f800fff, 0x3f801000, 0x3f803000, 0}));
  EXPECT_EQ(run(TensorType::TF32Flushed),
            (std::vector<uint32_t>{0x3f800000, 0x3f800000, 0x3f804000, 0}));
}

TEST(EmulateTensor, FaultsOfLoadsAreFound) {
  std::vector<float> values(1024, 1);
  auto run = [&](const std::string &body, const std::vector<uint32_t> &box = {16, 8}) {
    TensorKernel kernel;
    kernel.body = body;
    kernel.add(denseMap(TensorType::F32, {32, 32}, box), values);
    return kernel.error();
  };
  auto changed = [](const std::string &from, const std::string &to) {
    std::string body = loadBox("0, 0", 512);
    return body.replace(body.find(from), from.size(), to);
  };
  EXPECT_EQ(run(loadBox("0, 0", 512)), "");
  // A box of 7 rows has fewer bytes than were announced, and a box of 9 rows has more bytes.
  EXPECT_TRUE(says(run(loadBox("0, 0", 512), {16, 7}), "deadlock"));
  EXPECT_TRUE(says(run(loadBox("0, 0", 512), {16, 7}),
                   "shared address 0x0, which waits for 0 of 1 arrivals and 64 bytes"));
  EXPECT_TRUE(says(run(loadBox("0, 0", 512), {16, 9}), "and 64 bytes not yet announced"));
  EXPECT_TRUE(
      says(run(loadBox("0, 0, 0", 512)), "the tensor map has 2 dimensions, but the instruction 3"));
  EXPECT_TRUE(says(run(changed("[tile]", "[tile+64]")), "is not aligned to 128 bytes"));
  EXPECT_TRUE(says(run(changed("[tile]", "[tile+16000]")), "out of bounds"));
  EXPECT_TRUE(says(run(changed("[tile], [%m0", "[tile], [%rd0")),
                   "expected a tensor map of the emulator's cuTensorMapEncodeTiled at "));
  EXPECT_TRUE(says(
      run(changed("fence.mbarrier_init.release.cluster;", "")),
      "the async proxy does not see the mbarrier at shared memory + 0x0, initialised at line"));
  EXPECT_TRUE(says(run(changed("mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;", "")),
                   "asynchronously writes"));
  EXPECT_TRUE(says(run("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"
                       "bytes [tile], [%m0, {0}], [full];"),
                   "expected [map, {coordinates}] with 2 of them, found 1"));
  values.resize(1000);
  EXPECT_TRUE(says(run(loadBox("16, 24", 512)), "after tensor, which has 4000 bytes"));
}

/// Each lane writes lane + 100 * i to word lane + 32 * i of `tile`. Lane 0 stores a 16 x 32 box.
static std::string storeBox(const std::string &fence, const std::string &coordinates,
                            const std::string &wait) {
  return R"(
    mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mad.lo.u32 %r2, %r0, 4, %r1; mov.u32 %r3, 0;
  fill: mad.lo.u32 %r4, %r3, 100, %r0; st.shared.b32 [%r2], %r4; add.u32 %r2, %r2, 128; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 16; @%p1 bra fill;
    )" + fence +
         R"( bar.warp.sync -1; setp.ne.u32 %p1, %r0, 0; @%p1 bra done;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%m0, {)" +
         coordinates + R"(}], [tile]; cp.async.bulk.commit_group; )" + wait + R"(
  done:)";
}

TEST(EmulateTensor, StoresWhatIsInside) {
  std::vector<uint32_t> values(40 * 20, 7);
  TensorKernel kernel;
  kernel.body = storeBox("fence.proxy.async.shared::cta;", "16, -4", "cp.async.bulk.wait_group 0;");
  kernel.add(denseMap(TensorType::U32, {40, 20}, {32, 16}, TensorSwizzle::Bytes128), values);
  kernel.run();
  for (int row = 0; row < 20; ++row)
    for (int column = 0; column < 40; ++column) {
      unsigned r = row + 4, c = column - 16;
      uint32_t expected = r < 16 && column >= 16 ? r * 100 + (c / 4 ^ r % 8) * 4 + c % 4 : 7;
      ASSERT_EQ(values[row * 40 + column], expected) << row << " " << column;
    }
}

TEST(EmulateTensor, FaultsOfStoresAreFound) {
  std::vector<uint32_t> values(40 * 20, 7);
  auto run = [&](const std::string &fence, const std::string &wait) {
    TensorKernel kernel;
    kernel.body = storeBox(fence, "0, 0", wait);
    kernel.add(denseMap(TensorType::U32, {40, 20}, {32, 16}), values);
    return kernel.error();
  };
  const std::string proxy = "fence.proxy.async.shared::cta;",
                    overwrite = "st.shared.b32 [tile], 1;";
  EXPECT_EQ(run(proxy, "cp.async.bulk.wait_group.read 0;" + overwrite), "");
  EXPECT_TRUE(says(
      run("", ""),
      "the async proxy reads shared memory + 0x0, which ordinary stores have written at line"));
  EXPECT_TRUE(says(run(proxy, overwrite), "asynchronously reads"));
  EXPECT_TRUE(
      says(run(proxy, "cp.async.bulk.wait_group.read 1;" + overwrite), "asynchronously reads"));
}

/// wait_group.read waits for the reads of shared memory, not for the writes to global memory.
TEST(EmulateTensor, WaitingForReadsIsNotWaitingForWrites) {
  auto run = [](const std::string &wait) {
    return errorOfBlock("st.shared.b64 [tile], 0; st.shared.b64 [tile+8], 0; fence.proxy.async;\n"
                        "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 16; "
                        "cp.async.bulk.commit_group;" +
                            wait + "ld.global.b32 %r1, [%rd0];",
                        1, ".shared .align 16 .b8 tile[16];");
  };
  EXPECT_EQ(run("cp.async.bulk.wait_group 0;"), "");
  EXPECT_EQ(run("cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;"), "");
  EXPECT_TRUE(says(run("cp.async.bulk.wait_group.read 0;"), "asynchronously writes"));
}

/// Block 0 loads a box to the shared memory of all blocks of the mask. Each block copies the first
/// words of the box to `out`, beginning at out[8 * rank].
static std::string multicast(const std::string &mask) {
  return R"(
    mov.u32 %r0, %tid.x; mov.u32 %r9, %cluster_ctarank; mbarrier.init.shared.b64 [full], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.ne.u32 %p1, %r9, 0; @%p1 bra wait; mov.b16 %h1, )" +
         mask + R"(;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%m0, {4, 1}], [full], %h1;
  wait: mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
    ld.shared.b32 %r1, [tile]; mul.wide.u32 %rd1, %r9, 32; add.u64 %rd1, %rd0, %rd1; st.global.b32 [%rd1], %r1;)";
}

TEST(EmulateTensor, MulticastGoesToTheSamePlaceOfEachBlock) {
  std::vector<float> values(1024);
  std::iota(values.begin(), values.end(), 0.0f);
  auto run = [&](const std::string &mask) {
    TensorKernel kernel;
    kernel.body = multicast(mask);
    kernel.threads = 1, kernel.blocks = 2;
    kernel.add(denseMap(TensorType::F32, {32, 32}, {16, 8}), values);
    std::string message = kernel.error();
    float first = 0, second = 0;
    std::memcpy(&first, &kernel.out[0], 4);
    std::memcpy(&second, &kernel.out[8], 4);
    EXPECT_TRUE(!message.empty() || (first == 36 && second == 36));
    return message;
  };
  EXPECT_EQ(run("3"), "");
  EXPECT_TRUE(says(run("1"), "mbarrier at shared address 0x0 of block (1,0,0), which waits for 0 "
                             "of 1 arrivals and 512 bytes"));
  EXPECT_TRUE(says(run("7"), "the mask 0x7 names blocks outside of the cluster of 2"));
  EXPECT_TRUE(says(run("0"), "the mask 0x0 names no block"));
}
