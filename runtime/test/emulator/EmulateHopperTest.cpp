//===- EmulateHopperTest.cpp - Whole kernels of sm_90a, and planted faults *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares the results of two kernels (a matrix product and attention) with f64 results. The
// kernels use tensor copies, mbarriers and wgmma. Other tests remove one of the instructions that
// order accesses. The emulator must then report an error.
//
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulateInputs.h"
#include "test/emulator/EmulateTensors.h"
#include <cmath>
#include <limits>

using namespace fsdprt::test;
using namespace fsdprt::emulate;

namespace {
/// Returns the tensor map of a row-major matrix that is divided into panels of 64 columns. In
/// shared memory, each panel has a swizzle of 128 bytes.
TensorMap panels(uint64_t rows, uint64_t columns, uint32_t boxRows,
                 TensorSwizzle swizzle = TensorSwizzle::Bytes128) {
  TensorMap map = denseMap(TensorType::BF16, {64, rows, columns / 64},
                           {64, boxRows, uint32_t(columns / 64)}, swizzle);
  map.strides[0] = 2 * columns, map.strides[1] = 128;
  return map;
}

void attach(Emulator &emulator, Launch &launch, TensorMap map, const char *name,
            std::vector<uint16_t> &values) {
  map.address = emulator.memory().attach(name, values.data(), 2 * values.size()).base;
  launch.argument(encodeTensorMap(map));
}

struct Gemm {
  static constexpr unsigned m = 128, n = 128, k = 320;
  std::vector<uint16_t> a = randomBrains(m * k, 1), b = randomBrains(n * k, 2);
  std::vector<float> c = std::vector<float>(m * n, NAN);
  uint32_t boxRows = 64; ///< number of rows in a box of B's tensor map
  TensorSwizzle swizzle = TensorSwizzle::Bytes128;

  Counters run(const std::string &text) {
    Emulator emulator("gemm.ptx", text);
    Launch launch;
    launch.entry = "gemm_sm90";
    launch.grid[0] = n / 64, launch.grid[1] = m / 128, launch.block[0] = 384,
    launch.dynamicSharedBytes = 4 * (16384 + 8192) + 64;
    launch.stepLimit = 1 << 20;
    attach(emulator, launch, denseMap(TensorType::BF16, {k, m}, {64, 128}, TensorSwizzle::Bytes128),
           "A", a);
    attach(emulator, launch, denseMap(TensorType::BF16, {k, n}, {64, boxRows}, swizzle), "B", b);
    launch.argument(emulator.memory().attach("C", c.data(), c.size() * 4).base);
    launch.argument(n);
    launch.argument(k);
    return emulator.launch(launch);
  }
  double worst() const {
    double worst = 0;
    for (unsigned row = 0; row < m; ++row)
      for (unsigned column = 0; column < n; ++column) {
        double sum = 0;
        for (unsigned i = 0; i < k; ++i)
          sum += double(Brain::widen(a[row * k + i])) * Brain::widen(b[column * k + i]);
        double error = std::fabs(c[row * n + column] - sum);
        if (std::isnan(error)) // std::max() overlooks NaN.
          return std::numeric_limits<double>::infinity();
        worst = std::max(worst, error);
      }
    return worst;
  }
};
} // namespace

TEST(EmulateHopper, ProductOfMatrices) {
  Gemm gemm;
  Counters counters = gemm.run(readInput("gemm-sm90a.ptx"));
  EXPECT_EQ(counters.multiplyAdds, uint64_t(Gemm::m) * Gemm::n * Gemm::k);
  EXPECT_LT(gemm.worst(), 2e-5);
}

TEST(EmulateHopper, ASwappedSwizzleGivesAnotherProduct) {
  Gemm gemm;
  gemm.swizzle = TensorSwizzle::None;
  gemm.run(readInput("gemm-sm90a.ptx"));
  EXPECT_GT(gemm.worst(), 1);
}

TEST(EmulateHopper, ABoxOfAnotherSizeIsFound) {
  auto run = [](uint32_t rows) {
    Gemm gemm;
    gemm.boxRows = rows;
    return messageOf([&] { gemm.run(readInput("gemm-sm90a.ptx")); });
  };
  EXPECT_TRUE(says(run(63), "deadlock: no thread can continue: "));
  EXPECT_TRUE(says(run(63), "which waits for 0 of 1 arrivals and 128 bytes"));
  // If a box has one more row, its last row overwrites the first row of the next buffer.
  EXPECT_TRUE(says(run(65), "data race: writes 16 bytes at shared memory + 0x6400, which a copy "
                            "asynchronously writes at line"));
}

namespace {
struct Attention {
  static constexpr unsigned size = 64, length = 256, heads = 2, rows = heads * length;
  std::vector<uint16_t> q = randomBrains(rows * size, 3), k = randomBrains(length * size, 4),
                        v = randomBrains(length * size, 5),
                        o = std::vector<uint16_t>(rows * size, 0x7fff);
  std::vector<float> logarithms = std::vector<float>(rows, NAN);

  Counters run(const std::string &text) {
    Emulator emulator("attention.ptx", text);
    Launch launch;
    launch.entry = "fa3_fwd";
    launch.grid[0] = length / 128, launch.grid[1] = heads, launch.block[0] = 384,
    launch.dynamicSharedBytes = 49280;
    launch.stepLimit = 1 << 20;
    attach(emulator, launch, panels(rows, size, 128), "Q", q);
    attach(emulator, launch, panels(length, size, 64), "K", k);
    attach(emulator, launch, panels(length, size, 64), "V", v);
    launch.argument(emulator.memory().attach("O", o.data(), 2 * o.size()).base);
    launch.argument(emulator.memory().attach("LSE", logarithms.data(), 4 * rows).base);
    launch.argument(uint64_t(0));
    launch.argument(length);
    launch.argument(heads);
    launch.argument(heads); // number of query heads that share a head of K and V
    launch.argument(float(1.4426950408889634 / std::sqrt(double(size))));
    launch.argument(0.0f);
    launch.argument(0.0f);
    return emulator.launch(launch);
  }

  /// Returns the expected results of a row. The last element is the logarithm of the sum of the
  /// row's weights.
  std::vector<double> expected(unsigned row) const {
    std::vector<double> result(size + 1);
    double total = 0;
    for (unsigned key = 0; key <= row % length; ++key) {
      double score = 0;
      for (unsigned i = 0; i < size; ++i)
        score += double(Brain::widen(q[row * size + i])) * Brain::widen(k[key * size + i]);
      double weight = std::exp(score / std::sqrt(double(size)));
      total += weight;
      for (unsigned i = 0; i < size; ++i)
        result[i] += weight * Brain::widen(v[key * size + i]);
    }
    for (unsigned i = 0; i < size; ++i)
      result[i] /= total;
    result[size] = std::log(total);
    return result;
  }
};
} // namespace

TEST(EmulateHopper, CausalAttention) {
  Attention attention;
  attention.run(readInput("attention-sm90a.ptx"));
  double worst = 0, worstLogarithm = 0;
  for (unsigned row = 0; row < Attention::rows; ++row) {
    std::vector<double> expected = attention.expected(row);
    ASSERT_TRUE(std::isfinite(attention.logarithms[row]));
    for (unsigned i = 0; i < Attention::size; ++i) {
      double found = Brain::widen(attention.o[row * Attention::size + i]);
      ASSERT_TRUE(std::isfinite(found));
      worst = std::max(worst, std::fabs(found - expected[i]));
    }
    worstLogarithm =
        std::max(worstLogarithm, std::fabs(attention.logarithms[row] - expected[Attention::size]));
  }
  // Weights and results are at most 1, and rounding to bf16 changes each by up to 2^-9.
  EXPECT_LT(worst, 6e-3);
  EXPECT_LT(worstLogarithm, 1e-5);
}

namespace {
struct Fault {
  const char *part, *to;
  std::vector<const char *> messages; ///< the error must contain one of these texts
  unsigned least;                     ///< least number of occurrences that cause an error
  bool isAll = true;                  ///< true if an error must be reported for every occurrence
};
} // namespace

template <typename Kernel>
static void plant(const std::string &input, const Fault &fault) {
  std::string text = readInput(input);
  unsigned found = 0;
  for (unsigned n = 0;; ++n) {
    std::string changed = replaced(text, fault.part, n, fault.to);
    if (changed.empty())
      break;
    std::string message = messageOf([&] { Kernel().run(changed); });
    bool isFound = false;
    for (const char *part : fault.messages)
      isFound |= message.find(part) != std::string::npos;
    EXPECT_TRUE(isFound || (message.empty() && !fault.isAll))
        << fault.part << " " << n << ": " << message;
    found += isFound;
  }
  EXPECT_GE(found, fault.least) << fault.part;
}

/// The instruction that replaces "mbarrier.try_wait P1, ..." does not wait. The "//" in the
/// replacement turns the rest of the line into a comment.
static const std::vector<Fault> faults = {
    {"fence.mbarrier_init.release.cluster;", "", {"the async proxy does not see the mbarrier"}, 1},
    {"bar.sync \t0;", "", {"expected an mbarrier", "data race"}, 1},
    {"mbarrier.try_wait.parity.shared.b64 P1, ",
     "mov.pred P1, 1; //",
     {"data race", "never written"},
     2},
    // No thread waits for the last arrivals.
    {"mbarrier.arrive.shared.b64 ", "//", {"deadlock"}, 1, false},
    {"mbarrier.arrive.expect_tx.shared.b64 ", "//", {"deadlock"}, 1},
    // Some of these fences are not needed, because an earlier fence covers the same accesses.
    {"wgmma.fence.sync.aligned;", "", {"with no wgmma.fence"}, 1, false},
    {"wgmma.wait_group.sync.aligned 0;",
     "wgmma.wait_group.sync.aligned 1;",
     {"with no wgmma.wait_group", "data race"},
     0},
    {"wgmma.wait_group.sync.aligned \t0;",
     "wgmma.wait_group.sync.aligned 1;",
     {"with no wgmma.wait_group", "data race"},
     0},
    {"wgmma.wait_group.sync.aligned 1;",
     "wgmma.wait_group.sync.aligned 2;",
     {"with no wgmma.wait_group"},
     0},
    {"wgmma.commit_group.sync.aligned;", "", {"with no wgmma.wait_group", "data race"}, 1}};

TEST(EmulateHopper, WhatTheProductLacksIsFound) {
  for (const Fault &fault : faults)
    plant<Gemm>("gemm-sm90a.ptx", fault);
}

TEST(EmulateHopper, WhatAttentionLacksIsFound) {
  for (const Fault &fault : faults)
    plant<Attention>("attention-sm90a.ptx", fault);
}
