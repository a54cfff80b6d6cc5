//===- FormFma.cpp - Products and sums as fma -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Replaces a product and the sum that reads it by a fused multiply-add. All later stages keep this
// op, so the result is rounded in the same way on every target. (With the flag `contract`, a code
// generator could choose whether to fuse.)
//
//   %p = arith.mulf %x, %y         addf %p, %z   ->   %r = math.fma %x, %y, %z
//                                  subf %z, %p   ->   %r = math.fma -%x, %y, %z
//                                  subf %p, %z   ->   %r = math.fma %x, %y, -%z
//
// 1. In each body of a linalg.generic, visit the sums from first to last.
// 2. Fuse a product into the sum if the sum is the only reader of the product, and both are in the
//    same block. If both terms of the sum are products of this kind, fuse only the left product: a
//    b + c d becomes fma(a, b, c d). The right product is rounded before it is added.
// 3. If the product is subtracted, negate one of its factors. This is the right factor if it is a
//    constant, and else the left factor.
//
// Only f32 and f64 are rewritten. Ops on 16-bit floats round every result, so that a product is
// rounded before it is added. The stage Codegen forms the fma in the body of linalg.contract.
//
// O(ops). Does not distribute or reorder sums.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Update/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FORMFMAPASS
#include "fsdp/Update/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// If a product defines `term` and may be fused into `sum`, returns this product. Returns null
/// otherwise.
static arith::MulFOp getProduct(Operation *sum, Value term) {
  auto product = term.getDefiningOp<arith::MulFOp>();
  return product && product->hasOneUse() && product->getBlock() == sum->getBlock()
             ? product
             : arith::MulFOp();
}

static Value negate(IRRewriter &rewriter, Location loc, Value value) {
  FloatAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return arith::ConstantOp::create(rewriter, loc,
                                     FloatAttr::get(value.getType(), -constant.getValue()));
  return arith::NegFOp::create(rewriter, loc, value);
}

/// Rewrites lhs + rhs or lhs - rhs. Returns false if neither operand is a product with one reader.
static bool formFma(IRRewriter &rewriter, Operation *sum) {
  Type type = sum->getResult(0).getType();
  if (!type.isF32() && !type.isF64())
    return false;
  Value lhs = sum->getOperand(0), rhs = sum->getOperand(1);
  bool subtracts = isa<arith::SubFOp>(sum);
  arith::MulFOp left = getProduct(sum, lhs), right = getProduct(sum, rhs),
                product = left ? left : right;
  if (!product)
    return false;
  Location loc = sum->getLoc();
  rewriter.setInsertionPoint(sum);
  Value x = product.getLhs(), y = product.getRhs(), z = left ? rhs : lhs;
  if (subtracts && left)
    z = negate(rewriter, loc, z);
  else if (subtracts && matchPattern(y, m_Constant()))
    y = negate(rewriter, loc, y);
  else if (subtracts)
    x = negate(rewriter, loc, x);
  rewriter.replaceOpWithNewOp<math::FmaOp>(sum, x, y, z);
  rewriter.eraseOp(product);
  return true;
}

namespace {
struct FormFmaPass : fsdp::impl::FormFmaPassBase<FormFmaPass> {
  void runOnOperation() override {
    SmallVector<Operation *> sums;
    getOperation()->walk([&](linalg::GenericOp generic) {
      generic.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (isa<arith::AddFOp, arith::SubFOp>(op))
          sums.push_back(op);
      });
    });
    IRRewriter rewriter(&getContext());
    for (Operation *sum : sums)
      numFormed += formFma(rewriter, sum);
  }
};
} // namespace
