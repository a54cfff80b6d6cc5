//===- EmulateKernelTest.cpp - Whole kernels of sm_80, and planted faults *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares the results of generated kernels with f64 results. Another test removes one barrier or
// one wait of a kernel. The emulator must then report an error.
//
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulateInputs.h"
#include <cmath>

using namespace fsdprt::test;
using namespace fsdprt::emulate;

TEST(EmulateKernel, ProductOfMatrices) {
  const unsigned m = 128, n = 256, k = 96;
  std::vector<uint16_t> a = randomBrains(m * k, 1), b = randomBrains(n * k, 2);
  std::vector<float> c(m * n, NAN);
  Emulator emulator("gemm.ptx", readInput("gemm-sm80.ptx"));
  Launch launch;
  launch.entry = "gemm_sm80";
  launch.grid[0] = n / 128, launch.grid[1] = m / 128, launch.block[0] = 256,
  launch.dynamicSharedBytes = 65536;
  launch.argument(emulator.memory().attach("A", a.data(), a.size() * 2).base);
  launch.argument(emulator.memory().attach("B", b.data(), b.size() * 2).base);
  launch.argument(emulator.memory().attach("C", c.data(), c.size() * 4).base);
  launch.argument(n);
  launch.argument(k);
  Counters counters = emulator.launch(launch);
  EXPECT_EQ(counters.multiplyAdds, uint64_t(m) * n * k);
  EXPECT_EQ(counters.bankConflicts, 0u);
  for (unsigned row = 0; row < m; ++row)
    for (unsigned column = 0; column < n; ++column) {
      double sum = 0;
      for (unsigned i = 0; i < k; ++i)
        sum += double(Brain::widen(a[row * k + i])) * Brain::widen(b[column * k + i]);
      ASSERT_NEAR(c[row * n + column], sum, 1e-5) << row << " " << column;
    }
}

namespace {
class Attention {
public:
  static constexpr unsigned size = 64, length = 128, heads = 2;
  std::vector<uint16_t> q = randomBrains(heads * length * size, 3),
                        k = randomBrains(heads * length * size, 4),
                        v = randomBrains(heads * length * size, 5),
                        o = std::vector<uint16_t>(heads * length * size, 0x7fff);

  Counters run(const std::string &text) {
    Emulator emulator("attention.ptx", text);
    Launch launch;
    launch.entry = "fa2_fwd";
    launch.grid[0] = length / 64, launch.grid[1] = heads, launch.block[0] = 128;
    launch.dynamicSharedBytes = 64 * 128 + 4 * 32 * 128;
    launch.stepLimit = 1 << 24;
    for (auto *values : {&q, &k, &v, &o})
      launch.argument(emulator.memory()
                          .attach(values == &q   ? "Q"
                                  : values == &k ? "K"
                                  : values == &v ? "V"
                                                 : "O",
                                  values->data(), values->size() * 2)
                          .base);
    launch.argument(length);
    launch.argument(float(1.4426950408889634 / std::sqrt(double(size))));
    return emulator.launch(launch);
  }

  double expected(unsigned head, unsigned row, unsigned column) const {
    auto at = [&](const std::vector<uint16_t> &values, unsigned r, unsigned c) {
      return double(Brain::widen(values[(head * length + r) * size + c]));
    };
    double total = 0, sum = 0;
    for (unsigned key = 0; key <= row; ++key) {
      double score = 0;
      for (unsigned i = 0; i < size; ++i)
        score += at(q, row, i) * at(k, key, i);
      double weight = std::exp(score / std::sqrt(double(size)));
      total += weight;
      sum += weight * at(v, key, column);
    }
    return sum / total;
  }
};
} // namespace

TEST(EmulateKernel, CausalAttention) {
  Attention attention;
  Counters counters = attention.run(readInput("attention-sm80.ptx"));
  EXPECT_EQ(counters.bankConflicts, 0u);
  EXPECT_EQ(counters.divergentBranches, 0u);
  double worst = 0;
  for (unsigned head = 0; head < Attention::heads; ++head)
    for (unsigned row = 0; row < Attention::length; ++row)
      for (unsigned column = 0; column < Attention::size; ++column) {
        double found =
            Brain::widen(attention.o[(head * Attention::length + row) * Attention::size + column]);
        ASSERT_TRUE(std::isfinite(found));
        worst = std::max(worst, std::fabs(found - attention.expected(head, row, column)));
      }
  // Weights and results are at most 1, and rounding to bf16 changes each by up to 2^-9.
  EXPECT_LT(worst, 6e-3);
}

/// Checks that the emulator reports every missing barrier and wait of the kernel.
TEST(EmulateKernel, AnyMissingBarrierOrWaitIsFound) {
  std::string text = readInput("attention-sm80.ptx");
  unsigned planted = 0;
  for (const char *part : {"bar.sync \t0;", "cp.async.wait_group \t1;"})
    for (unsigned n = 0;; ++n) {
      std::string changed = replaced(text, part, n, "//");
      if (changed.empty())
        break;
      std::string message = messageOf([&] { Attention().run(changed); });
      EXPECT_NE(message.find("data race"), std::string::npos)
          << part << " " << n << ": " << message;
      ++planted;
    }
  EXPECT_GE(planted, 4u);
}

/// The allocation of K is too small: it does not contain the last row of K.
TEST(EmulateKernel, ASequenceThatIsTooLongIsOutOfBounds) {
  Attention attention;
  attention.k.resize(attention.k.size() - Attention::size);
  std::string message = messageOf([&] { attention.run(readInput("attention-sm80.ptx")); });
  EXPECT_NE(message.find("out of bounds"), std::string::npos) << message;
  EXPECT_NE(message.find("after K"), std::string::npos) << message;
}
