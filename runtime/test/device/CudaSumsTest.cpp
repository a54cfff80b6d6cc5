//===- CudaSumsTest.cpp - Sums over ranks on a GPU ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For each type, compares sums of CUDA kernels bit for bit with sums that the CPU computes. The
// tests vary the number of sources, the length, the alignment, the omitted source, the operation
// (sum or average), and the target (a separate buffer or one of the sources). The kernels run on
// the emulator, whose checks are on.
//
//===----------------------------------------------------------------------===//

#include "collectives/local/Reduce.h"
#include "test/device/EmulatedCuda.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
/// Owns device memory that the host can access, and a copy of this memory on which the CPU computes
/// the expected sums.
class CudaSumsTest : public testing::Test {
protected:
  static constexpr uint64_t room = 16 << 10;
  CudaSumsTest() : device(static_cast<std::byte *>(gpu.pin(room))), expected(room) {}
  ~CudaSumsTest() override {
    resetEmulatedCuda();
    gpu.cuda->memFreeHost(device);
  }

  /// Checks one sum. There are `gap` bytes between consecutive sources and before the target.
  /// `dropped` is the index of the omitted source.
  void check(DType type, uint32_t sources, uint64_t elements, uint64_t gap, bool isAverage,
             uint32_t dropped = UINT32_MAX, bool isInPlace = false) {
    SCOPED_TRACE(testing::Message() << nameOf(type) << ", " << sources << " sources of " << elements
                                    << ", gaps of " << gap << ", average " << isAverage
                                    << ", without " << dropped << ", in place " << isInPlace);
    uint64_t each = sizeOf(type), span = elements * each + gap;
    ASSERT_LE(span * (sources + 1), room);
    std::normal_distribution<double> normal(0, 3);
    std::memset(device, 0x55, room);
    for (uint64_t i = 0; i < sources * elements; ++i)
      storeElement(type,
                   i % 17 == 0   ? 0.0
                   : i % 19 == 0 ? 1e-42
                                 : std::ldexp(normal(random), static_cast<int>(random() % 20) - 10),
                   device + i / elements * span + i % elements * each);
    std::memcpy(expected.data(), device, room);
    uint64_t target = isInPlace ? 0 : sources * span;
    CudaSums::Sources from;
    std::vector<const std::byte *> held;
    for (uint32_t i = 0; i < sources; ++i) {
      from.add(i == dropped ? 0 : reinterpret_cast<CudaPointer>(device + i * span));
      held.push_back(i == dropped ? nullptr : expected.data() + i * span);
    }
    gpu.sums->launch(queue.stream(CudaQueue::reduce), type, isAverage, from, elements,
                     reinterpret_cast<CudaPointer>(device + target));
    queue.finish([] {});
    reduceInOrder(type, isAverage, held.data(), sources, 0, elements, expected.data() + target);
    for (uint64_t i = 0; i < room; ++i)
      ASSERT_EQ(device[i], expected[i])
          << "byte " << i << ", of element "
          << (static_cast<int64_t>(i) - static_cast<int64_t>(target)) / static_cast<int64_t>(each);
  }

  EmulatedGpuContext gpu;
  CudaQueue queue{*gpu.cuda, 0, gpu.context, gpu.sums.get()};
  std::byte *device;
  std::vector<std::byte> expected;
  std::minstd_rand random{1};
};

constexpr DType types[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

TEST_F(CudaSumsTest, HaveTheBitsOfACpu) {
  for (DType type : types)
    for (uint32_t sources : {1, 2, 3, 4, 5, 8, 9})
      for (bool isAverage : {false, true})
        check(type, sources, 67, 64 - 67 * sizeOf(type) % 64, isAverage);
}

TEST_F(CudaSumsTest, TakeAnyLengthAndPlace) {
  for (DType type : types)
    for (uint64_t elements : {1, 2, 3, 7, 8, 9, 64, 300})
      for (uint64_t gap : {uint64_t(0), sizeOf(type), uint64_t(16)})
        check(type, 3, elements, gap, true);
}

TEST_F(CudaSumsTest, CountSourcesThatAreLeftOut) {
  for (DType type : types)
    for (uint32_t dropped : {0, 1, 4})
      check(type, 5, 40, 0, true, dropped);
}

TEST_F(CudaSumsTest, MayBeInPlace) {
  for (DType type : types)
    check(type, 4, 100, 16, false, UINT32_MAX, true);
}

TEST_F(CudaSumsTest, TakeAsManySourcesAsTheySay) {
  for (DType type : types)
    check(type, CudaSums::mostSources, 16, 0, true);
  EXPECT_EQ(CudaSums::shapeOf(DType::bf16, 1 << 20, 64).vectors, uint64_t(1 << 17));
  EXPECT_EQ(CudaSums::shapeOf(DType::bf16, 1 << 20, 64).blocks, uint64_t(1 << 9));
  EXPECT_EQ(CudaSums::shapeOf(DType::bf16, 1 << 20, 8).vectors, 0u);
}
} // namespace
