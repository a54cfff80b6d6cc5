//===- CaptureOperands.cpp - Make captured values operands ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   generic ins(%x) { %i = linalg.index 0            generic ins(%x, %slice) maps (.., d0+0)
//     %t = tensor.extract %table[%i, ..]       ->      { ^bb0(%x, %t, %out): ... }
//
// For an index d + c, where d is a loop index and c is a constant, the table is sliced from offset
// c. The indexing map of the new operand reads the slice at d. For an index that is a constant, the
// slice has size 1.
//
//===----------------------------------------------------------------------===//

#include "Structure/CaptureOperands.h"
#include "Structure/Structured.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fsdp;

AffineExpr fsdp::affineIndex(Value index) {
  MLIRContext *context = index.getContext();
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant)))
    return getAffineConstantExpr(constant.getSExtValue(), context);
  Operation *op = index.getDefiningOp();
  if (auto loop = dyn_cast_or_null<linalg::IndexOp>(op))
    return getAffineDimExpr(loop.getDim(), context);
  if (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp, arith::IndexCastUIOp>(op))
    return affineIndex(op->getOperand(0));
  // Ignore a truncation to i32 or wider, because the index of a tensor is assumed to fit in an i32.
  if (auto trunc = dyn_cast_or_null<arith::TruncIOp>(op);
      trunc && trunc.getType().getIntOrFloatBitWidth() >= 32)
    return affineIndex(trunc.getIn());
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return nullptr;
  AffineExpr lhs = affineIndex(op->getOperand(0)), rhs = affineIndex(op->getOperand(1));
  if (!lhs || !rhs)
    return nullptr;
  if (isa<arith::AddIOp>(op))
    return lhs + rhs;
  if (isa<arith::SubIOp>(op))
    return lhs - rhs;
  if (isa<AffineConstantExpr>(lhs) || isa<AffineConstantExpr>(rhs))
    return lhs * rhs;
  return nullptr;
}

void fsdp::addInput(linalg::GenericOp op, Value input, AffineMap map, Value captured,
                    RewriterBase &rewriter) {
  SmallVector<Value> inputs(op.getInputs());
  unsigned position = inputs.size();
  inputs.push_back(input);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.insert(maps.begin() + position, map);
  rewriter.setInsertionPoint(op);
  auto wider = linalg::GenericOp::create(rewriter, op.getLoc(), op->getResultTypes(), inputs,
                                         op.getOutputs(), maps, op.getIteratorTypesArray());
  rewriter.inlineRegionBefore(op.getRegion(), wider.getRegion(), wider.getRegion().begin());
  Type element = getElementTypeOrSelf(input.getType());
  BlockArgument arg = wider.getBody()->insertArgument(position, element, op.getLoc());
  rewriter.replaceUsesWithIf(captured, arg, [&](OpOperand &use) {
    return wider.getRegion().isAncestor(use.getOwner()->getParentRegion());
  });
  rewriter.replaceOp(op, wider);
}

namespace {
/// A captured scalar that is not a constant -> a rank-0 operand.
struct ScalarToOperand : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    SetVector<Value> captures;
    getUsedValuesDefinedAbove(op.getRegion(), captures);
    for (Value captured : captures) {
      if (!captured.getType().isIntOrFloat() || matchPattern(captured, m_Constant()))
        continue;
      Value tensor;
      auto extract = captured.getDefiningOp<tensor::ExtractOp>();
      if (extract && extract.getIndices().empty())
        tensor = extract.getTensor();
      rewriter.setInsertionPoint(op);
      if (!tensor)
        tensor = tensor::FromElementsOp::create(
            rewriter, op.getLoc(), RankedTensorType::get({}, captured.getType()), captured);
      addInput(op, tensor, AffineMap::get(op.getNumLoops(), 0, rewriter.getContext()), captured,
               rewriter);
      return success();
    }
    return failure();
  }
};

/// tensor.extract of a captured tensor at loop indices -> a slice as an operand.
struct ExtractToOperand : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    for (auto extract : op.getBody()->getOps<tensor::ExtractOp>()) {
      if (op.getRegion().isAncestor(extract.getTensor().getParentRegion()))
        continue;
      if (succeeded(rewrite(op, extract, rewriter)))
        return success();
    }
    return failure();
  }

  /// Fails unless each index is a constant c, a loop d_k, or a sum d_k + c.
  static LogicalResult rewrite(linalg::GenericOp op, tensor::ExtractOp extract,
                               PatternRewriter &rewriter) {
    auto type = dyn_cast<RankedTensorType>(extract.getTensor().getType());
    if (!type || !type.hasStaticShape())
      return failure();
    SmallVector<int64_t> loops = op.getStaticLoopRanges();
    SmallVector<OpFoldResult> offsets, sizes, strides(type.getRank(), rewriter.getIndexAttr(1));
    SmallVector<AffineExpr> exprs;
    for (auto [extent, index] : llvm::zip_equal(type.getShape(), extract.getIndices())) {
      AffineExpr expr = affineIndex(index);
      if (!expr)
        return failure();
      int64_t size = 1, offset = 0;
      AffineExpr dim = nullptr;
      if (auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
          sum && sum.getKind() == AffineExprKind::Add) {
        dim = sum.getLHS();
        expr = sum.getRHS();
      }
      if (auto loop = dyn_cast<AffineDimExpr>(expr); loop && !dim) {
        dim = loop;
      } else if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
        offset = constant.getValue();
      } else {
        return failure();
      }
      if (dim) {
        auto loop = dyn_cast<AffineDimExpr>(dim);
        if (!loop)
          return failure();
        size = loops[loop.getPosition()];
        exprs.push_back(dim);
      } else {
        exprs.push_back(rewriter.getAffineConstantExpr(0));
      }
      if (offset < 0 || offset + size > extent)
        return failure();
      offsets.push_back(rewriter.getIndexAttr(offset));
      sizes.push_back(rewriter.getIndexAttr(size));
    }
    rewriter.setInsertionPoint(op);
    Value slice = tensor::ExtractSliceOp::create(rewriter, op.getLoc(), extract.getTensor(),
                                                 offsets, sizes, strides);
    AffineMap map = AffineMap::get(op.getNumLoops(), 0, exprs, rewriter.getContext());
    addInput(op, slice, map, extract.getResult(), rewriter);
    rewriter.eraseOp(extract);
    return success();
  }
};
} // namespace

void fsdp::populateCaptureOperandPatterns(RewritePatternSet &patterns) {
  patterns.add<ScalarToOperand, ExtractToOperand>(patterns.getContext());
}
