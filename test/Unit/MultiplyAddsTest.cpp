//===- MultiplyAddsTest.cpp - Arithmetic of products ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/MultiplyAdds.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the multiply-adds of one attention with `mask`: batch 3, 2 heads, 64 queries and keys of
/// dimension 8.
static MultiplyAdds count(const std::string &type, const std::string &mask) {
  MLIRContext context;
  context.loadDialect<FSDPDialect, func::FuncDialect, arith::ArithDialect, tensor::TensorDialect>();
  std::string q = "tensor<3x2x64x8x" + type + ">", lse = "tensor<3x2x64xf32>";
  std::string text = "func.func @f(%q: " + q +
                     ") {\n%o, %l = fsdp.attention %q, %q, %q scale 1.0 : " + q + ", " + q + ", " +
                     q + " -> " + q + ", " + lse + mask + "\nreturn\n}\n";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  return module ? countMultiplyAdds(*module) : MultiplyAdds();
}

TEST(MultiplyAddsTest, AttentionHasTwoProductsPerScore) {
  EXPECT_EQ(count("f32", "").wide, 3u * 2 * 64 * 64 * 8 * 2);
  EXPECT_EQ(count("f32", "").bf16, 0u);
  EXPECT_EQ(count("bf16", "").bf16, 3u * 2 * 64 * 64 * 8 * 2);
  EXPECT_EQ(count("bf16", "").wide, 0u);
}

// Of the 32 x 32 tiles of 2 x 2, those on and below the diagonal count.
TEST(MultiplyAddsTest, MaskedTilesAreNotCounted) {
  std::string causal = " mask_mod(%b: index, %h: index, %i: index, %j: index) {\n"
                       "%keep = arith.cmpi sge, %i, %j : index\nfsdp.yield %keep : i1\n}";
  EXPECT_EQ(count("f32", causal).wide, 3u * 2 * 8 * 2 * (32 * 33 / 2) * 4);
}

// The last key of a row depends on a value that is known to be 0 or 1: the larger work counts.
TEST(MultiplyAddsTest, TilesThatDependOnBoundedValuesAreCounted) {
  std::string part =
      " mask_mod(%b: index, %h: index, %i: index, %j: index) {\n%two = arith.constant 2 : index\n"
      "%rows = arith.constant 32 : index\n%x = arith.muli %b, %h : index\n"
      "%rank = arith.remui %x, %two : index\n%before = arith.muli %rank, %rows : index\n"
      "%row = arith.addi %i, %before : index\n%keep = arith.cmpi sge, %row, %j : index\n"
      "fsdp.yield %keep : i1\n}";
  int64_t tiles = 0;
  for (int64_t row = 0; row < 32; ++row)
    tiles += std::min<int64_t>(row + 17, 32);
  EXPECT_EQ(count("f32", part).wide, 3u * 2 * 8 * 2 * tiles * 4);
}
