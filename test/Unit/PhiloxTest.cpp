//===- PhiloxTest.cpp - The random numbers of compiled code -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds the generator's ops on constants and folds them. Compares the results with the known
// answers of Random123, and elements with the counter that fsdp.random documents.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/Philox.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

namespace {
using Words = std::array<uint32_t, 4>;

/// Returns a block of Philox 4x32-10, computed from its definition.
Words philox(Words c, uint64_t key) {
  uint32_t k0 = key, k1 = key >> 32;
  for (int round = 0; round < 10; ++round, k0 += 0x9e3779b9, k1 += 0xbb67ae85) {
    uint64_t p = uint64_t(0xd2511f53) * c[0], q = uint64_t(0xcd9e8d57) * c[2];
    c = {uint32_t(q >> 32) ^ c[1] ^ k0, uint32_t(q), uint32_t(p >> 32) ^ c[3] ^ k1, uint32_t(p)};
  }
  return c;
}

class Philox : public testing::Test {
protected:
  Philox() {
    context.loadDialect<FSDPDialect, func::FuncDialect>();
    module = ModuleOp::create(UnknownLoc::get(&context));
  }
  ~Philox() override { module->erase(); }

  /// Returns the folded results of the ops that `build` builds.
  SmallVector<Attribute> fold(function_ref<SmallVector<Value>(OpBuilder &, Location)> build) {
    OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
    auto func = func::FuncOp::create(b, module.getLoc(), "f", b.getFunctionType({}, {}));
    b.setInsertionPointToStart(func.addEntryBlock());
    SmallVector<Value> values = build(b, func.getLoc());
    func::ReturnOp::create(b, func.getLoc(), values);
    func.setFunctionType(b.getFunctionType({}, ValueRange(values).getTypes()));
    PassManager pm(&context);
    pm.addPass(createCanonicalizerPass());
    EXPECT_TRUE(succeeded(pm.run(module)));
    SmallVector<Attribute> results;
    for (Value v : func.getBody().front().getTerminator()->getOperands()) {
      auto constant = v.getDefiningOp<arith::ConstantOp>();
      EXPECT_TRUE(constant);
      results.push_back(constant ? constant.getValue() : Attribute());
    }
    func.erase();
    return results;
  }
  static Value word(OpBuilder &b, Location l, uint64_t v) {
    return arith::ConstantOp::create(b, l, b.getI64IntegerAttr(static_cast<int64_t>(v)));
  }
  Words run(Words counter, uint64_t key) {
    auto words = fold([&](OpBuilder &b, Location l) {
      std::array<Value, 4> c;
      for (int i = 0; i < 4; ++i)
        c[i] = word(b, l, counter[i]);
      return llvm::to_vector_of<Value>(buildPhilox(b, l, c, word(b, l, key)));
    });
    Words block;
    for (int i = 0; i < 4; ++i)
      block[i] = cast<IntegerAttr>(words[i]).getValue().getZExtValue();
    return block;
  }
  /// Returns the elements at linear indices `at` of a random tensor: uniform, or a mask of dropout
  /// if `keep`.
  SmallVector<Attribute> elements(RankedTensorType type, std::optional<double> keep,
                                  int64_t perSample, std::array<uint64_t, 3> key, uint64_t site,
                                  ArrayRef<int64_t> at) {
    return fold([&](OpBuilder &b, Location l) {
      auto scalar = RankedTensorType::get({}, b.getI64Type());
      Value k = arith::ConstantOp::create(
          b, l, DenseElementsAttr::get(scalar, b.getI64IntegerAttr(0).getValue()));
      auto kind =
          RandomKindAttr::get(b.getContext(), keep ? RandomKind::bernoulli : RandomKind::uniform);
      auto op = RandomOp::create(b, l, type, kind, keep ? b.getF64FloatAttr(*keep) : FloatAttr(), k,
                                 k, k, b.getI64IntegerAttr(site), b.getI64IntegerAttr(perSample));
      SmallVector<Value> keys{word(b, l, key[0]), word(b, l, key[1]), word(b, l, key[2])}, values;
      for (int64_t i : at)
        values.push_back(buildRandomElement(b, l, op, keys, word(b, l, i)));
      return values;
    });
  }
  MLIRContext context;
  ModuleOp module;
};
} // namespace

TEST_F(Philox, KnownAnswers) { // from Random123
  EXPECT_EQ(run({0, 0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(run({~0u, ~0u, ~0u, ~0u}, ~uint64_t(0)),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(run({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST_F(Philox, ElementsAreThoseOfTheDocumentedCounter) {
  constexpr uint64_t seed = 0x123456789abcdef0, step = 7, first = 40, site = 3;
  constexpr int64_t perSample = 6;
  SmallVector<int64_t> at{0, 1, 3, 5, 6, 11, 17};
  Builder b(&context);
  auto blockOf = [&](int64_t l, int64_t perBlock) {
    uint32_t sample = first + l / perSample, block = l % perSample / perBlock;
    return philox({block, sample, uint32_t(step), uint32_t(site)}, seed);
  };
  auto f32 = elements(RankedTensorType::get({18}, b.getF32Type()), {}, perSample,
                      {seed, step, first}, site, at);
  auto bf16 = elements(RankedTensorType::get({18}, b.getBF16Type()), {}, perSample,
                       {seed, step, first}, site, at);
  auto f64 = elements(RankedTensorType::get({18}, b.getF64Type()), {}, perSample,
                      {seed, step, first}, site, at);
  auto kept = elements(RankedTensorType::get({18}, b.getF32Type()), 0.75, perSample,
                       {seed, step, first}, site, at);
  auto flags = elements(RankedTensorType::get({18}, b.getI1Type()), 0.75, perSample,
                        {seed, step, first}, site, at);
  for (auto [i, l] : llvm::enumerate(at)) {
    uint32_t x = blockOf(l, 4)[l % perSample % 4];
    EXPECT_EQ(cast<FloatAttr>(f32[i]).getValueAsDouble(), std::ldexp(x >> 8, -24));
    EXPECT_EQ(cast<FloatAttr>(bf16[i]).getValueAsDouble(), std::ldexp(x >> 24, -8));
    bool keeps = x < 0xc0000000u;
    EXPECT_EQ(cast<FloatAttr>(kept[i]).getValueAsDouble(), keeps ? double(float(1 / 0.75)) : 0);
    EXPECT_EQ(cast<IntegerAttr>(flags[i]).getValue().getBoolValue(), keeps);
    Words pair = blockOf(l, 2);
    uint64_t wide = uint64_t(pair[l % perSample % 2 * 2 + 1]) << 32 | pair[l % perSample % 2 * 2];
    EXPECT_EQ(cast<FloatAttr>(f64[i]).getValueAsDouble(), double(wide >> 11) * 0x1p-53);
  }
}

TEST_F(Philox, StochasticRoundingIsRightOnAverage) {
  auto bitsOf = [](float x) { return llvm::bit_cast<uint32_t>(x); };
  auto round = [&](float x, ArrayRef<int64_t> noises) {
    SmallVector<Attribute> values = fold([&](OpBuilder &b, Location loc) {
      SmallVector<Value> rounded;
      Value number = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(x));
      for (int64_t noise : noises) {
        Value bits = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(noise));
        rounded.push_back(buildStochasticRounding(b, loc, number, bits));
      }
      return rounded;
    });
    return llvm::map_to_vector(
        values, [](Attribute v) { return float(cast<FloatAttr>(v).getValueAsDouble()); });
  };
  SmallVector<int64_t> noises; // evenly spread, so the fraction rounded away from zero is exact
  for (int64_t i = 0; i < 64; ++i)
    noises.push_back(i * 1024);
  for (uint32_t bits : {0x3f800000u, 0x3f80a400u, 0xbf80a400u, 0x3fffc000u, 0x00007400u,
                        0x80017c00u, 0x00ff8400u, 0xc7123400u}) {
    uint32_t below = bits & 0xffff0000, above = below + 0x10000;
    int64_t up = 0;
    for (float value : round(llvm::bit_cast<float>(bits), noises)) {
      EXPECT_TRUE(bitsOf(value) == below || bitsOf(value) == above)
          << std::hex << bits << " became " << bitsOf(value);
      up += bitsOf(value) == above;
    }
    EXPECT_EQ(up, int64_t(bits & 0xffff) / 1024) << std::hex << bits;
  }
  float infinity = std::numeric_limits<float>::infinity();
  for (float value : {infinity, -infinity, 0.0f, -0.0f, 1.5f})
    for (float rounded : round(value, {0, 0xffff}))
      EXPECT_EQ(bitsOf(rounded), bitsOf(value));
  for (float rounded : round(llvm::bit_cast<float>(0x7fc10000u), {0, 0xffff}))
    EXPECT_TRUE(std::isnan(rounded));
}
