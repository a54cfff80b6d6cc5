//===- EmulateIntegerTest.cpp - Integer instructions against C++ *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulateFixture.h"
#include <climits>

using namespace fsdprt::test;

static const std::vector<uint32_t> words = {
    0,      1,      2,       3,          31,         32,         33,         0x7f,
    0x8000, 0xffff, 0x10000, 0x12345678, 0x7fffffff, 0x80000000, 0xdeadbeef, 0xffffffff};
static const std::vector<int32_t> numbers = {
    0, 1, -1, 2, -7, 100, 0x7fff, -0x8000, 0x123456, INT_MAX, INT_MIN, INT_MIN + 1};
static const std::vector<uint64_t> longs = {0,
                                            1,
                                            63,
                                            64,
                                            0xffffffff,
                                            0x100000000,
                                            0x123456789abcdef0,
                                            0x7fffffffffffffff,
                                            0x8000000000000000,
                                            ~0ull};
static const std::vector<uint16_t> shorts = {0, 1, 255, 0x7fff, 0x8000, 0xffff};
static const std::vector<uint32_t> none = {0};

TEST(EmulateInteger, SumsWrapAndSaturate) {
  expectOp<uint32_t>("add.u32 %d, %a, %b;", words, words, none,
                     [](uint32_t a, uint32_t b, uint32_t) { return a + b; });
  expectOp<uint32_t>("sub.s32 %d, %a, %b;", words, words, none,
                     [](uint32_t a, uint32_t b, uint32_t) { return a - b; });
  expectOp<uint64_t>("add.s64 %d, %a, %b;", longs, longs, none,
                     [](uint64_t a, uint64_t b, uint32_t) { return a + b; });
  expectOp<uint16_t>("sub.u16 %d, %a, %b;", shorts, shorts, none,
                     [](uint16_t a, uint16_t b, uint32_t) { return uint16_t(a - b); });
  auto clamp = [](int64_t v) {
    return int32_t(std::max<int64_t>(INT_MIN, std::min<int64_t>(INT_MAX, v)));
  };
  expectOp<int32_t>("add.sat.s32 %d, %a, %b;", numbers, numbers, none,
                    [&](int32_t a, int32_t b, uint32_t) { return clamp(int64_t(a) + b); });
  expectOp<int32_t>("sub.sat.s32 %d, %a, %b;", numbers, numbers, none,
                    [&](int32_t a, int32_t b, uint32_t) { return clamp(int64_t(a) - b); });
}

TEST(EmulateInteger, LibraryGemm) {
  expectOp<uint32_t>("mul.lo.u32 %d, %a, %b;", words, words, none,
                     [](uint32_t a, uint32_t b, uint32_t) { return a * b; });
  expectOp<uint32_t>(
      "mul.hi.u32 %d, %a, %b;", words, words, none,
      [](uint32_t a, uint32_t b, uint32_t) { return uint32_t(uint64_t(a) * b >> 32); });
  expectOp<int32_t>("mul.hi.s32 %d, %a, %b;", numbers, numbers, none,
                    [](int32_t a, int32_t b, uint32_t) { return int32_t(int64_t(a) * b >> 32); });
  expectOp<int64_t>("mul.wide.s32 %d, %a, %b;", numbers, numbers, none,
                    [](int32_t a, int32_t b, uint32_t) { return int64_t(a) * b; });
  expectOp<uint64_t>("mad.wide.u32 %d, %a, %b, %c;", words, words, longs,
                     [](uint32_t a, uint32_t b, uint64_t c) { return uint64_t(a) * b + c; });
  expectOp<uint32_t>("mad.lo.s32 %d, %a, %b, %c;", words, words, words,
                     [](uint32_t a, uint32_t b, uint32_t c) { return a * b + c; });
  expectOp<uint32_t>("mul.wide.u16 %d, %a, %b;", shorts, shorts, none,
                     [](uint16_t a, uint16_t b, uint32_t) { return uint32_t(a) * b; });
  expectOp<uint16_t>("mul.lo.u16 %d, %a, %b;", shorts, shorts, none,
                     [](uint16_t a, uint16_t b, uint32_t) { return uint16_t(uint32_t(a) * b); });
  expectOp<uint64_t>(
      "mul.hi.u64 %d, %a, %b;", longs, longs, none, [](uint64_t a, uint64_t b, uint32_t) {
        uint64_t low = (a & 0xffffffff) * (b & 0xffffffff), m1 = (a >> 32) * (b & 0xffffffff),
                 m2 = (a & 0xffffffff) * (b >> 32);
        uint64_t middle = (low >> 32) + (m1 & 0xffffffff) + (m2 & 0xffffffff);
        return (a >> 32) * (b >> 32) + (m1 >> 32) + (m2 >> 32) + (middle >> 32);
      });
  expectOp<uint32_t>(
      "mul24.lo.u32 %d, %a, %b;", words, words, none,
      [](uint32_t a, uint32_t b, uint32_t) { return (a & 0xffffff) * (b & 0xffffff); });
}

TEST(EmulateInteger, QuotientsNeverTrap) {
  expectOp<int32_t>("div.s32 %d, %a, %b;", numbers, numbers, none,
                    [](int32_t a, int32_t b, uint32_t) {
                      return b == 0 ? -1 : b == -1 ? int32_t(0u - uint32_t(a)) : a / b;
                    });
  expectOp<uint32_t>("div.u32 %d, %a, %b;", words, words, none,
                     [](uint32_t a, uint32_t b, uint32_t) { return b ? a / b : ~0u; });
  expectOp<int32_t>("rem.s32 %d, %a, %b;", numbers, numbers, none,
                    [](int32_t a, int32_t b, uint32_t) {
                      return b == 0 ? a : b == -1 ? 0 : a % b;
                    });
  expectOp<uint64_t>("rem.u64 %d, %a, %b;", longs, longs, none,
                     [](uint64_t a, uint64_t b, uint32_t) { return b ? a % b : a; });
}

TEST(EmulateInteger, SignsAndExtremes) {
  expectOp<int32_t>("abs.s32 %d, %a;", numbers, none, none, [](int32_t a, uint32_t, uint32_t) {
    return a < 0 ? int32_t(0u - uint32_t(a)) : a;
  });
  expectOp<int32_t>("neg.s32 %d, %a;", numbers, none, none,
                    [](int32_t a, uint32_t, uint32_t) { return int32_t(0u - uint32_t(a)); });
  expectOp<int32_t>("min.s32 %d, %a, %b;", numbers, numbers, none,
                    [](int32_t a, int32_t b, uint32_t) { return std::min(a, b); });
  expectOp<uint32_t>("max.u32 %d, %a, %b;", words, words, none,
                     [](uint32_t a, uint32_t b, uint32_t) { return std::max(a, b); });
  expectOp<int32_t>("max.relu.s32 %d, %a, %b;", numbers, numbers, none,
                    [](int32_t a, int32_t b, uint32_t) { return std::max({a, b, 0}); });
  expectOp<uint32_t>(
      "sad.u32 %d, %a, %b, %c;", words, words, words,
      [](uint32_t a, uint32_t b, uint32_t c) { return c + (a < b ? b - a : a - b); });
  expectOp<uint32_t>("min.s16x2 %d, %a, %b;", words, words, none,
                     [](uint32_t a, uint32_t b, uint32_t) {
                       uint16_t low = std::min(int16_t(a), int16_t(b)),
                                high = std::min(int16_t(a >> 16), int16_t(b >> 16));
                       return uint32_t(high) << 16 | low;
                     });
}

TEST(EmulateInteger, CarriesGoOn) {
  // These instructions compute 64-bit sums and products with 32-bit additions and multiplications.
  expectOp<uint64_t>("{ .reg .b32 al, ah, bl, bh, l, h; mov.b64 {al, ah}, %a; mov.b64 {bl, bh}, "
                     "%b; add.cc.u32 l, al, bl; addc.u32 h, ah, bh; mov.b64 %d, {l, h}; }",
                     longs, longs, none, [](uint64_t a, uint64_t b, uint32_t) { return a + b; });
  expectOp<uint64_t>("{ .reg .b32 al, ah, bl, bh, l, h; mov.b64 {al, ah}, %a; mov.b64 {bl, bh}, "
                     "%b; sub.cc.u32 l, al, bl; subc.u32 h, ah, bh; mov.b64 %d, {l, h}; }",
                     longs, longs, none, [](uint64_t a, uint64_t b, uint32_t) { return a - b; });
  expectOp<uint64_t>("{ .reg .b32 l, h; mad.lo.cc.u32 l, %a, %b, %c; madc.hi.u32 h, %a, %b, 0; "
                     "mov.b64 %d, {l, h}; }",
                     words, words, words,
                     [](uint32_t a, uint32_t b, uint32_t c) { return uint64_t(a) * b + c; });
}

TEST(EmulateInteger, Bits) {
  expectOp<uint32_t>("popc.b32 %d, %a;", words, none, none, [](uint32_t a, uint32_t, uint32_t) {
    return uint32_t(__builtin_popcount(a));
  });
  expectOp<uint32_t>("clz.b64 %d, %a;", longs, none, none, [](uint64_t a, uint32_t, uint32_t) {
    return a ? uint32_t(__builtin_clzll(a)) : 64;
  });
  expectOp<uint32_t>("bfind.u32 %d, %a;", words, none, none, [](uint32_t a, uint32_t, uint32_t) {
    return a ? 31 - __builtin_clz(a) : ~0u;
  });
  expectOp<uint32_t>("bfind.shiftamt.s32 %d, %a;", numbers, none, none,
                     [](int32_t a, uint32_t, uint32_t) {
                       uint32_t bits = a < 0 ? ~a : a;
                       return bits ? uint32_t(__builtin_clz(bits)) : ~0u;
                     });
  expectOp<uint32_t>("brev.b32 %d, %a;", words, none, none, [](uint32_t a, uint32_t, uint32_t) {
    uint32_t r = 0;
    for (int k = 0; k < 32; ++k)
      r = r << 1 | (a >> k & 1);
    return r;
  });
  auto field = [](bool isSigned) {
    // The field is computed bit by bit, as in the pseudo-code of PTX ISA.
    return [isSigned](uint32_t a, uint32_t b, uint32_t c) {
      uint32_t position = b & 255, length = c & 255, sign = 0, r = 0;
      if (isSigned && length)
        sign = a >> std::min(position + length - 1, 31u) & 1;
      for (uint32_t k = 0; k < 32; ++k)
        r |= (k < length && position + k <= 31 ? a >> (position + k) & 1 : sign) << k;
      return r;
    };
  };
  expectOp<uint32_t>("bfe.u32 %d, %a, %b, %c;", words, words, words, field(false));
  expectOp<uint32_t>("bfe.s32 %d, %a, %b, %c;", words, words, words, field(true));
  expectOp<uint32_t>("bfi.b32 %d, %a, 0xaaaaaaaa, %b, %c;", words, words, words,
                     [](uint32_t a, uint32_t b, uint32_t c) {
                       uint32_t position = b & 255, length = c & 255, r = 0xaaaaaaaa;
                       for (uint32_t k = 0; k < length && position + k < 32; ++k)
                         r = (r & ~(1u << (position + k))) | (a >> k & 1) << (position + k);
                       return r;
                     });
  expectOp<uint32_t>("bmsk.clamp.b32 %d, %a, %b;", words, words, none,
                     [](uint32_t a, uint32_t b, uint32_t) {
                       return uint32_t(a > 31 ? 0 : (b > 31 ? ~0u : (1u << b) - 1) << a);
                     });
  expectOp<uint32_t>("dp4a.s32.u32 %d, %a, %b, %c;", words, words, words,
                     [](uint32_t a, uint32_t b, uint32_t c) {
                       for (int k = 0; k < 32; k += 8)
                         c += int8_t(a >> k) * int(uint8_t(b >> k));
                       return c;
                     });
}

TEST(EmulateInteger, LogicAndShifts) {
  expectOp<uint32_t>("and.b32 %d, %a, %b;", words, words, none,
                     [](uint32_t a, uint32_t b, uint32_t) { return a & b; });
  expectOp<uint64_t>("xor.b64 %d, %a, %b;", longs, longs, none,
                     [](uint64_t a, uint64_t b, uint32_t) { return a ^ b; });
  expectOp<uint16_t>("not.b16 %d, %a;", shorts, none, none,
                     [](uint16_t a, uint32_t, uint32_t) { return uint16_t(~a); });
  expectOp<uint32_t>("cnot.b32 %d, %a;", words, none, none,
                     [](uint32_t a, uint32_t, uint32_t) { return uint32_t(!a); });
  expectOp<uint32_t>("lop3.b32 %d, %a, %b, %c, 0x96;", words, words, words,
                     [](uint32_t a, uint32_t b, uint32_t c) { return a ^ b ^ c; });
  expectOp<uint32_t>("lop3.b32 %d, %a, %b, %c, 0xea;", words, words, words,
                     [](uint32_t a, uint32_t b, uint32_t c) { return (a & b) | c; });
  expectOp<uint32_t>("shl.b32 %d, %a, %b;", words, words, none,
                     [](uint32_t a, uint32_t b, uint32_t) { return b > 31 ? 0 : a << b; });
  expectOp<int32_t>("shr.s32 %d, %a, %b;", numbers, words, none,
                    [](int32_t a, uint32_t b, uint32_t) { return a >> std::min(b, 31u); });
  expectOp<uint64_t>("shr.u64 %d, %a, %b;", longs, words, none,
                     [](uint64_t a, uint32_t b, uint32_t) { return b > 63 ? 0 : a >> b; });
  expectOp<uint32_t>("shf.l.wrap.b32 %d, %a, %b, %c;", words, words, words,
                     [](uint32_t a, uint32_t b, uint32_t c) {
                       return c & 31 ? b << (c & 31) | a >> (32 - (c & 31)) : b;
                     });
  expectOp<uint32_t>("shf.r.clamp.b32 %d, %a, %b, %c;", words, words, words,
                     [](uint32_t a, uint32_t b, uint32_t c) {
                       return c >= 32 ? b : c ? b << (32 - c) | a >> c : a;
                     });
  expectOp<uint32_t>(
      "prmt.b32 %d, %a, %b, 0x7531;", words, words, none, [](uint32_t a, uint32_t b, uint32_t) {
        return (a >> 8 & 0xff) | (a >> 24) << 8 | (b >> 8 & 0xff) << 16 | (b >> 24) << 24;
      });
  expectOp<uint32_t>("prmt.b32 %d, %a, %b, 0x0008;", words, words, none,
                     [](uint32_t a, uint32_t b, uint32_t) {
                       return (a & 0xff) * 0x01010100u | (a & 0x80 ? 0xff : 0);
                     });
}

TEST(EmulateInteger, ComparisonsAndSelections) {
  expectOp<int32_t>("setp.lt.s32 %q, %a, %b; selp.b32 %d, %a, %b, %q;", numbers, numbers, none,
                    [](int32_t a, int32_t b, uint32_t) { return std::min(a, b); });
  expectOp<uint32_t>("setp.hs.u32 %q, %a, %b; selp.b32 %d, 1, 0, %q;", words, words, none,
                     [](uint32_t a, uint32_t b, uint32_t) { return uint32_t(a >= b); });
  expectOp<uint32_t>("setp.ne.u32 %p1, %a, 0; setp.eq.and.u32 %q|%p2, %a, %b, %p1; selp.b32 %r1, "
                     "1, 0, %q; selp.b32 %r2, 2, 0, %p2; or.b32 %d, %r1, %r2;",
                     words, words, none, [](uint32_t a, uint32_t b, uint32_t) {
                       return uint32_t(a && a == b) | uint32_t(a && a != b) << 1;
                     });
  expectOp<uint32_t>("set.gt.u32.s32 %d, %a, %b;", numbers, numbers, none,
                     [](int32_t a, int32_t b, uint32_t) { return a > b ? ~0u : 0; });
  expectOp<uint32_t>("slct.b32.s32 %d, %a, %b, %c;", words, words, numbers,
                     [](uint32_t a, uint32_t b, int32_t c) { return c >= 0 ? a : b; });
}
