//===- EmulateWgmmaTest.cpp - Matrix products of warpgroups -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Multiplies matrices of small integers, so that the products are exact. The matrices have the
// layouts that PTX ISA defines.
//
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/Formats.h"
#include "test/emulator/EmulateFixture.h"

using namespace fsdprt::test;
using namespace fsdprt::emulate;

namespace {
enum class Kind { Half, Brain, TF32 };

struct ProductCase {
  Kind kind;
  unsigned columns;
  bool aIsShared, transposesA, transposesB;
  unsigned span; ///< bytes in which the swizzle permutes chunks; 16 for no swizzle
  bool sumsAreHalf = false, adds = true;
  int scaleA = 1, scaleB = 1;
};

struct Layout {
  unsigned span, elementBytes;
  bool isMajor;    ///< true if elements are contiguous along M or N
  unsigned kStart; ///< byte offset of the first element of K in its row

  unsigned stride() const {
    return span == 16 ? (isMajor ? 256 : 512) : isMajor ? 8 * span : 16 * span;
  }
  unsigned leading() const { return span == 16 ? 128 : 2 * stride(); }
  uint64_t descriptor(unsigned start) const {
    uint64_t mode = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
    return (start + kStart) >> 4 | uint64_t(leading() >> 4) << 16 | uint64_t(stride() >> 4) << 32 |
           mode << 62;
  }
  unsigned place(unsigned m, unsigned k) const {
    unsigned at;
    if (isMajor)
      at = span == 16 ? m / 8 * stride() + k / 8 * leading() + k % 8 * 16 + m % 8 * 2
                      : m * 2 / span * leading() + k / 8 * stride() + k % 8 * span + m * 2 % span;
    else
      at = m / 8 * stride() + m % 8 * span +
           (span == 16 ? k * elementBytes / 16 * leading() + k * elementBytes % 16
                       : kStart + k * elementBytes);
    unsigned chunk = at / 16 % 8, row = at / 128;
    return row * 128 + (chunk ^ row % (span / 16)) * 16 + at % 16;
  }
};

class WgmmaTest : public testing::TestWithParam<ProductCase> {};
} // namespace

static constexpr unsigned bStart = 32768, sharedBytes = 131072;

static int numberAt(unsigned m, unsigned k, unsigned salt) {
  return int((m * 7 + k * 13 + salt * 5 + m * k) % 15) - 7;
}

static uint32_t bitsOf(Kind kind, float value) {
  return kind == Kind::Half    ? Half::narrow(value)
         : kind == Kind::Brain ? Brain::narrow(value)
                               : bitsAs<uint32_t>(value);
}

static std::string names(const std::string &prefix, unsigned count) {
  std::string text = "{";
  for (unsigned k = 0; k < count; ++k)
    text += (k ? ", " : "") + prefix + std::to_string(k);
  return text + "}";
}

struct Parts {
  std::string fill = "all", proxy = "fence.proxy.async;", barrier = "bar.sync 0;",
              fence = "wgmma.fence.sync.aligned;", between,
              commit = "wgmma.commit_group.sync.aligned;",
              wait = "wgmma.wait_group.sync.aligned 0;", after;
};

static std::string productText(const ProductCase &c, uint64_t a, uint64_t b) {
  static const char *const types[] = {"f16.f16", "bf16.bf16", "tf32.tf32"};
  std::string text = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(c.columns) +
                     (c.kind == Kind::TF32 ? "k8." : "k16.") + (c.sumsAreHalf ? "f16." : "f32.") +
                     types[int(c.kind)] + " " + names("%d", c.columns / (c.sumsAreHalf ? 4 : 2)) +
                     ", " + (c.aIsShared ? std::to_string(a) : names("%a", 4)) + ", " +
                     std::to_string(b) + ", " + (c.adds ? "1" : "0") + ", " +
                     std::to_string(c.scaleA) + ", " + std::to_string(c.scaleB);
  if (c.kind != Kind::TF32)
    text += (c.aIsShared ? std::string(", ") + (c.transposesA ? "1" : "0") : "") + ", " +
            (c.transposesB ? "1" : "0");
  return text + ";\n";
}

/// Returns a program that computes a product. %rd0 is the address of the result (D of 128 threads).
/// %rd1 is the address of the initial bytes of shared memory. %rd2 is the address of the registers
/// of A.
static std::string program(const ProductCase &c, uint64_t a, uint64_t b, const Parts &parts) {
  unsigned count = c.columns / (c.sumsAreHalf ? 4 : 2);
  std::string text = ".reg .b32 %d<128>, %a<4>; .reg .b64 %at; mov.u32 %r0, %tid.x; shl.b32 %r1, "
                     "%r0, 2; mov.u32 %r2, dyn;\n"
                     "fill: cvt.u64.u32 %rd3, %r1; add.u64 %rd3, %rd1, %rd3; ld.global.b32 %r3, "
                     "[%rd3]; add.u32 %r4, %r2, %r1; st.shared.b32 [%r4], %r3;\n"
                     "add.u32 %r1, %r1, 512; setp.lt.u32 %p1, %r1, " +
                     std::to_string(sharedBytes) + "; @%p1 bra fill;\n" +
                     "mad.wide.u32 %rd4, %r0, 16, %rd2; ld.global.v4.b32 " + names("%a", 4) +
                     ", [%rd4];\n";
  for (unsigned k = 0; k < count; ++k)
    text += "mov.b32 %d" + std::to_string(k) +
            (c.sumsAreHalf ? ", 0x3c004000;\n"
                           : ", 0f3f800000;\n"); // the f16 numbers 2 and 1, or the f32 number 1
  text += parts.proxy + parts.barrier + "\n" + parts.fence + "\n" + productText(c, a, b) +
          parts.between + parts.commit + parts.wait + parts.after + "mad.wide.u32 %at, %r0, " +
          std::to_string(4 * count) + ", %rd0;\n";
  for (unsigned k = 0; k < count; ++k)
    text += "st.global.b32 [%at+" + std::to_string(4 * k) + "], %d" + std::to_string(k) + ";\n";
  return text;
}

namespace {
struct Product {
  ProductCase c;
  Layout a, b;
  std::vector<uint8_t> image = std::vector<uint8_t>(sharedBytes, 0x3c);
  std::vector<uint32_t> fragments = std::vector<uint32_t>(512), out;
  unsigned threads = 128;

  explicit Product(const ProductCase &c) : c(c) {
    unsigned bytes = c.kind == Kind::TF32 ? 4 : 2;
    a = {c.span, bytes, c.transposesA, c.span >= 64 && !c.transposesA ? 32u : 0};
    b = {c.span, bytes, c.transposesB, c.span >= 64 && !c.transposesB ? 32u : 0};
    out.resize(128 * c.columns / (c.sumsAreHalf ? 4 : 2));
    for (unsigned k = 0; k < inner(); ++k) {
      for (unsigned m = 0; m < 64; ++m)
        put(a.place(m, k), numberAt(m, k, 1)), putFragment(m, k);
      for (unsigned n = 0; n < c.columns; ++n)
        put(bStart + b.place(n, k), numberAt(n, k, 2));
    }
  }
  unsigned inner() const { return c.kind == Kind::TF32 ? 8 : 16; }
  void put(unsigned at, float value) {
    uint32_t bits = bitsOf(c.kind, value);
    std::memcpy(&image[at], &bits, inner() == 8 ? 4 : 2);
  }
  /// Stores element (m, k) of A at the place for the register that contains this element, according
  /// to the table in PTX ISA. For 16-bit types, a0 and a1 are in one row. Elements a2 and a3 are
  /// eight rows below, and a4 to a7 are eight columns to the right of a0 to a3.
  void putFragment(unsigned m, unsigned k) {
    unsigned perRegister = 16 / inner() == 2 ? 1 : 2, t = k / perRegister % 4,
             r = (m / 8 % 2) + 2 * (k / (4 * perRegister));
    unsigned thread = m / 16 * 32 + m % 8 * 4 + t;
    uint32_t bits = bitsOf(c.kind, numberAt(m, k, 1));
    std::memcpy(reinterpret_cast<uint8_t *>(&fragments[4 * thread + r]) + (k % perRegister) * 2,
                &bits, perRegister == 2 ? 2 : 4);
  }
  Counters run(const Parts &parts = {}) {
    // Dynamic shared memory begins at the address 1024, because this is the requested alignment.
    uint64_t start = 1024;
    Emulator emulator("wgmma.ptx",
                      kernel(program(c, a.descriptor(start), b.descriptor(start + bStart), parts),
                             3, ".extern .shared .align 1024 .b8 dyn[];"));
    Launch launch;
    launch.entry = "k";
    launch.block[0] = threads, launch.dynamicSharedBytes = sharedBytes, launch.stepLimit = 1 << 23;
    auto attach = [&](const char *name, auto &values) {
      launch.argument(
          emulator.memory().attach(name, values.data(), values.size() * sizeof values[0]).base);
    };
    attach("out", out);
    attach("image", image);
    attach("fragments", fragments);
    return emulator.launch(launch);
  }
  float found(unsigned m, unsigned n) const {
    unsigned thread = m / 16 * 32 + m % 8 * 4 + n % 8 / 2,
             count = c.columns / (c.sumsAreHalf ? 4 : 2);
    if (c.sumsAreHalf)
      return Half::widen(out[thread * count + n / 8 * 2 + m / 8 % 2] >> (16 * (n % 2)));
    return bitsAs<float>(out[thread * count + n / 8 * 4 + m / 8 % 2 * 2 + n % 2]);
  }
  float expected(unsigned m, unsigned n) const {
    float sum = c.adds ? (c.sumsAreHalf && n % 2 == 0 ? 2 : 1) : 0;
    for (unsigned k = 0; k < inner(); ++k)
      sum += c.scaleA * c.scaleB * numberAt(m, k, 1) * numberAt(n, k, 2);
    return sum;
  }
};
} // namespace

TEST_P(WgmmaTest, IsTheSumOfProducts) {
  Product product(GetParam());
  Counters counters = product.run();
  EXPECT_EQ(counters.multiplyAdds, 64u * product.c.columns * product.inner());
  for (unsigned m = 0; m < 64; ++m)
    for (unsigned n = 0; n < product.c.columns; ++n)
      ASSERT_EQ(product.found(m, n), product.expected(m, n)) << m << " " << n;
}

INSTANTIATE_TEST_SUITE_P(
    EmulateWgmma, WgmmaTest,
    testing::Values(ProductCase{Kind::Brain, 8, true, false, false, 128},
                    ProductCase{Kind::Brain, 256, true, false, false, 128},
                    ProductCase{Kind::Brain, 128, true, false, false, 64},
                    ProductCase{Kind::Brain, 24, true, false, false, 32},
                    ProductCase{Kind::Brain, 64, true, false, false, 16},
                    ProductCase{Kind::Brain, 128, true, true, true, 128},
                    ProductCase{Kind::Brain, 128, true, true, true, 64},
                    ProductCase{Kind::Brain, 40, true, true, true, 32},
                    ProductCase{Kind::Brain, 64, true, true, true, 16},
                    ProductCase{Kind::Half, 96, true, false, true, 128},
                    ProductCase{Kind::Half, 96, true, true, false, 128},
                    ProductCase{Kind::Half, 64, true, false, false, 128, true},
                    ProductCase{Kind::Half, 8, false, false, true, 64, true},
                    ProductCase{Kind::Brain, 64, false, false, true, 128},
                    ProductCase{Kind::TF32, 32, true, false, false, 128},
                    ProductCase{Kind::TF32, 16, true, false, false, 16},
                    ProductCase{Kind::TF32, 16, false, false, false, 32},
                    ProductCase{Kind::Brain, 16, true, false, false, 128, false, false},
                    ProductCase{Kind::Brain, 16, true, false, false, 128, false, true, -1, 1},
                    ProductCase{Kind::Brain, 16, false, false, false, 128, false, true, -1, -1},
                    ProductCase{Kind::Half, 16, true, false, false, 64, true, false, 1, -1}));

/// Tests that the results are wrong if the descriptor of B has another swizzle mode than the data.
TEST(EmulateWgmma, ASwappedSwizzleGivesOtherNumbers) {
  Product product({Kind::Brain, 64, true, false, false, 128});
  product.b.span = 64;
  product.run();
  unsigned wrong = 0;
  for (unsigned m = 0; m < 64; ++m)
    for (unsigned n = 0; n < 64; ++n)
      wrong += product.found(m, n) != product.expected(m, n);
  EXPECT_GT(wrong, 2000u);
}

static const ProductCase fromShared{Kind::Brain, 8, true, false, false, 128},
    fromRegisters{Kind::Brain, 8, false, false, false, 128};

static std::string errorOf(const ProductCase &c, const Parts &parts, unsigned threads = 128) {
  return messageOf([&] {
    Product product(c);
    product.threads = threads;
    product.run(parts);
  });
}

template <typename Change>
static std::string errorWith(const ProductCase &c, Change change) {
  Parts parts;
  change(parts);
  return errorOf(c, parts);
}

TEST(EmulateWgmma, RegistersInFlightAreNobodysElse) {
  EXPECT_EQ(errorOf(fromShared, {}), "");
  EXPECT_TRUE(says(errorWith(fromShared, [](Parts &p) { p.wait = ""; }),
                   "st.global.b32: reads %d0, which the product at line"));
  EXPECT_TRUE(
      says(errorWith(fromShared, [](Parts &p) { p.wait = "wgmma.wait_group.sync.aligned 1;"; }),
           "uses as accumulator, with no wgmma.wait_group"));
  // wait_group does not wait for products that were not committed.
  EXPECT_TRUE(says(errorWith(fromShared, [](Parts &p) { p.commit = ""; }),
                   "reads %d0, which the product at line"));
  EXPECT_TRUE(says(errorWith(fromShared, [](Parts &p) { p.between = "mov.b32 %d1, 0;"; }),
                   "mov.b32: writes %d1, which the product at line"));
  EXPECT_TRUE(says(errorWith(fromRegisters, [](Parts &p) { p.between = "add.u32 %a2, %r0, 1;"; }),
                   "writes %a2, which the product at line"));
  EXPECT_TRUE(says(errorWith(fromRegisters, [](Parts &p) { p.between = "add.u32 %r9, %a3, 1;"; }),
                   "reads %a3, which the product at line"));
  EXPECT_EQ(errorWith(fromRegisters, [](Parts &p) { p.after = "add.u32 %a2, %r0, 1;"; }), "");
}

TEST(EmulateWgmma, AccessesNeedFences) {
  EXPECT_TRUE(
      says(errorWith(fromShared, [](Parts &p) { p.fence = ""; }), "with no wgmma.fence between"));
  EXPECT_TRUE(says(errorWith(fromShared, [](Parts &p) { p.fence += "add.u32 %d0, %r0, 1;"; }),
                   "uses %d0, which line"));
  EXPECT_TRUE(says(errorWith(fromRegisters, [](Parts &p) { p.fence += "add.u32 %a1, %r0, 1;"; }),
                   "uses %a1, which line"));
  // Without a wgmma.fence in between, a product may add to the accumulators of the previous product
  // only if both products have the same shape.
  std::string again = productText(fromShared, 0x4000004000400040, 0x4000004000400840);
  EXPECT_EQ(errorWith(fromShared, [&](Parts &p) { p.between = again; }), "");
  ProductCase other = fromShared;
  other.kind = Kind::Half;
  std::string another = productText(other, 0x4000004000400040, 0x4000004000400840);
  EXPECT_TRUE(
      says(errorWith(fromShared, [&](Parts &p) { p.between = another; }), "uses %d0, which line"));
  EXPECT_EQ(errorWith(fromShared, [&](Parts &p) { p.between = p.fence + another; }), "");
  // The accumulators of a product may be the operand A of the next product only after a wait for
  // the first product.
  Parts parts;
  std::string text = productText(fromRegisters, 0, 0x4000004000400840);
  text.replace(text.find("{%a0, %a1"), 9, "{%d0, %d1").replace(text.find("{%d0"), 4, "{%d9");
  parts.between = "mov.b32 %d9, 0; wgmma.fence.sync.aligned;" + text;
  EXPECT_TRUE(says(errorOf(fromShared, parts), "uses %d0, which the product at line"));
}

TEST(EmulateWgmma, MovesAreRenamings) {
  EXPECT_EQ(
      errorWith(fromShared, [](Parts &p) { p.between = "mov.b32 %r50, %d0; mov.b32 %r51, %r50;"; }),
      "");
  EXPECT_EQ(errorWith(fromShared,
                      [](Parts &p) {
                        p.between = "mov.b32 %r50, %d0;", p.after = "add.u32 %r51, %r50, 1;";
                      }),
            "");
  EXPECT_TRUE(
      says(errorWith(fromShared,
                     [](Parts &p) { p.between = "mov.b32 %r50, %d0; add.u32 %r51, %r50, 1;"; }),
           "reads %r50, which the product"));
  EXPECT_EQ(
      errorWith(fromShared,
                [](Parts &p) { p.fence = "mov.b32 %r50, 0;" + p.fence + "mov.b32 %d0, %r50;"; }),
      "");
}

TEST(EmulateWgmma, SharedMemoryIsOfTheAsyncProxy) {
  EXPECT_TRUE(
      says(errorWith(fromShared, [](Parts &p) { p.proxy = ""; }),
           "the async proxy reads shared memory + 0x8420, which ordinary stores have written"));
  EXPECT_TRUE(
      says(errorWith(fromShared, [](Parts &p) { p.barrier = ""; }), "data race: reads 16 bytes"));
  const std::string overwrite = "st.shared.b32 [dyn+32800], 5; ";
  EXPECT_TRUE(says(errorWith(fromShared, [&](Parts &p) { p.between = overwrite; }),
                   "data race: writes 4 bytes"));
  EXPECT_TRUE(says(errorWith(fromShared,
                             [&](Parts &p) {
                               p.commit += "bar.sync 0; setp.eq.u32 %p3, %r0, 0; @%p3 " + overwrite;
                             }),
                   "which the warpgroup of warp 0 of block (0,0,0) asynchronously reads at line"));
  EXPECT_EQ(errorWith(fromShared,
                      [&](Parts &p) {
                        p.after = "bar.sync 0; setp.eq.u32 %p3, %r0, 0; @%p3 " + overwrite;
                      }),
            "");
}

/// Only one warp reads a given row of A. If this warp has written the row, a barrier of the warp is
/// necessary and sufficient. All warps read B, so that a barrier of the block is needed after
/// writes to B.
TEST(EmulateWgmma, RowsOfAAreTheWarps) {
  auto rewrite = [](const std::string &what, const std::string &barrier) {
    return errorWith(fromShared, [&](Parts &p) {
      p.barrier += "shr.u32 %r20, %r0, 5; and.b32 %r21, %r0, 31; mad.lo.u32 %r22, %r20, 4096, %r2; "
                   "mad.lo.u32 %r22, %r21, 4, %r22;" +
                   what + "fence.proxy.async;" + barrier;
    });
  };
  const std::string ownRows = "st.shared.b32 [%r22], 0;", b = "st.shared.b32 [dyn+32800], 0;";
  EXPECT_EQ(rewrite(ownRows, "bar.warp.sync -1;"), "");
  EXPECT_TRUE(says(rewrite(ownRows, ""), "data race: reads 16 bytes"));
  // One thread writes rows 0 and 16, which belong to warps 0 and 1.
  const std::string zero = "setp.eq.u32 %p3, %r0, 0; @%p3 st.shared.b32 [dyn+32], 0;",
                    both = zero + "@%p3 st.shared.b32 [dyn+4128], 0;";
  EXPECT_EQ(rewrite(zero, "bar.warp.sync -1;"), "");
  EXPECT_TRUE(says(rewrite(both, "bar.warp.sync -1;"),
                   "data race: reads 16 bytes at shared memory + 0x1420"));
  EXPECT_TRUE(says(rewrite("setp.eq.u32 %p3, %r0, 0; @%p3 " + b, "bar.warp.sync -1;"),
                   "data race: reads 16 bytes"));
  EXPECT_EQ(rewrite("setp.eq.u32 %p3, %r0, 0; @%p3 " + b, "bar.sync 0;"), "");
}

TEST(EmulateWgmma, AllFourWarpsTakePart) {
  EXPECT_TRUE(says(errorOf(fromShared, {}, 96), "the block has 3 warps, but warp"));
  EXPECT_TRUE(says(errorWith(fromShared,
                             [](Parts &p) {
                               p.barrier += "setp.ge.u32 %p3, %r0, 96; @%p3 bra late;",
                                   p.wait += "late:";
                             }),
                   "deadlock: no thread can continue"));
  EXPECT_TRUE(says(errorWith(fromShared,
                             [](Parts &p) {
                               p.barrier += "setp.ge.u32 %p3, %r0, 96; @%p3 bra late;",
                                   p.wait += "late:";
                             }),
                   "the product at line"));
  EXPECT_TRUE(says(
      errorWith(fromShared, [](Parts &p) { p.barrier += "setp.lt.u32 %p3, %r0, 96; @%p3 exit;"; }),
      "exit: leaves without the product at line"));
  EXPECT_TRUE(says(errorWith(fromShared,
                             [](Parts &p) {
                               p.barrier += "setp.eq.u32 %p3, %r0, 5; @%p3 bra late;",
                                   p.wait += "late:";
                             }),
                   "all 32 lanes have to take part"));
}

TEST(EmulateWgmma, OperandsAreChecked) {
  auto fails = [](std::string from, std::string to, const std::string &part) {
    Product product(fromShared);
    std::string text = kernel(
        program(fromShared, product.a.descriptor(1024), product.b.descriptor(1024 + bStart), {}), 3,
        ".extern .shared .align 1024 .b8 dyn[];");
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    EXPECT_TRUE(says(
        messageOf([&] {
          Emulator emulator("wgmma.ptx", text);
          Launch launch;
          launch.entry = "k";
          launch.block[0] = 128, launch.dynamicSharedBytes = sharedBytes,
          launch.stepLimit = 1 << 23;
          launch.argument(
              emulator.memory().attach("out", product.out.data(), product.out.size() * 4).base);
          launch.argument(
              emulator.memory().attach("image", product.image.data(), sharedBytes).base);
          launch.argument(
              emulator.memory().attach("fragments", product.fragments.data(), 2048).base);
          emulator.launch(launch);
        }),
        part));
  };
  Product product(fromShared);
  std::string a = std::to_string(product.a.descriptor(1024)),
              b = std::to_string(product.b.descriptor(1024 + bStart));
  fails("m64n8k16", "m64n12k16", "expected a shape such as .m64n128k16");
  fails("m64n8k16", "m64n8k8", "unsupported product");
  fails("f32.bf16.bf16", "f16.bf16.bf16", "unsupported product");
  fails(", 1, 1, 1, 0, 0;", ", 1, 2, 1, 0, 0;", "expected a scale of 1 or -1");
  fails(", 1, 1, 1, 0, 0;", ", 1, 1, 1, 0;", "expected 8 operands");
  fails("%d3}", "%d2, %d3}", "expected 4 registers, found 5");
  fails(", " + a, ", " + std::to_string(product.a.descriptor(1024) | 1 << 14),
        "has reserved bits set");
  fails(", " + a, ", " + std::to_string(product.a.descriptor(sharedBytes + 1024)), "out of bounds");
  fails(", " + a, ", %rd4", "lanes have different matrix descriptors");
}
