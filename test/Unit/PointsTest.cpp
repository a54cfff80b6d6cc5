//===- PointsTest.cpp - Tests of matched reductions -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The symbols of all reductions must differ, however many were matched before: two reductions of
// one formula with one symbol would look as if they read the same element.
//
//===----------------------------------------------------------------------===//

#include "Structure/Points.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/DenseSet.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr char model[] = R"(
func.func @f(%x: tensor<4x5xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x5xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %sum = arith.addf %a, %o : f32
    linalg.yield %sum : f32
  } -> tensor<4xf32>
  return %s : tensor<4xf32>
})";

TEST(Points, ReductionsHaveDifferentSymbols) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                      tensor::TensorDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(model, &context);
  ASSERT_TRUE(module);
  auto function = *module->getOps<func::FuncOp>().begin();
  Value sum = function.getBody().front().getTerminator()->getOperand(0);
  constexpr unsigned matches = 10000;
  llvm::DenseSet<AffineExpr> symbols;
  for (unsigned i = 0; i < matches; ++i) {
    auto reduction = matchReduction({sum, {getAffineDimExpr(0, &context)}}, Reduction::Sum);
    ASSERT_TRUE(reduction);
    ASSERT_EQ(reduction->symbols.size(), 1u);
    symbols.insert(reduction->symbols.front());
  }
  EXPECT_EQ(symbols.size(), matches);
}
