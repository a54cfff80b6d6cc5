//===- NormaliseOps.cpp - One canonical op per operation --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Different exporters write the same operation in different ways. This pass rewrites each of the
// following operations to one form:
//
//   linalg.{matmul, reduce, map, ...}, tensor.generate      -> linalg.generic
//   tensor.splat                                            -> linalg.fill
//   tensor.reshape                                          -> collapse_shape, expand_shape
//   generic capturing %x : f32, or extracting %t[index 0]   -> generic with an operand
//   parallel generic reading an `outs` that is a fill       -> constant in its body
//   extract_slice of a generic without inputs               -> smaller generic
//   arith.truncf of a constant                              -> the rounded constant
//   math.powf x, 2|3 and fpowi                              -> products
//
// Fuses generics that compute constants or integers (masks, positions, rank-0 scales) into the
// bodies that use these values. Drops fast-math flags, because results must not depend on
// reassociation. Applies the patterns greedily until none matches.
//
// FoldCopies.cpp folds copies, and FormContractions.cpp forms contractions.
//
//===----------------------------------------------------------------------===//

#include "Structure/CaptureOperands.h"
#include "Structure/Structured.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_NORMALISEOPSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct NormaliseOpsPass : public fsdp::impl::NormaliseOpsPassBase<NormaliseOpsPass> {
  using NormaliseOpsPassBase::NormaliseOpsPassBase;
  void runOnOperation() override;
};

/// Named structured op other than fill -> linalg.generic.
struct Generalise : OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(linalg::LinalgOp op, PatternRewriter &rewriter) const override {
    if (isa<linalg::GenericOp, linalg::FillOp>(op.getOperation()) || !op.hasPureTensorSemantics())
      return failure();
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

/// tensor.generate -> linalg.generic over its indices.
struct GenericFromGenerate : OpRewritePattern<tensor::GenerateOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::GenerateOp op, PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || !type.hasStaticShape())
      return failure();
    Location loc = op.getLoc();
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(), type.getElementType());
    SmallVector<AffineMap> maps{rewriter.getMultiDimIdentityMap(type.getRank())};
    SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        rewriter, loc, TypeRange(type), ValueRange(), ValueRange(empty), maps, iterators,
        [&](OpBuilder &b, Location loc, ValueRange) {
          IRMapping mapping;
          for (BlockArgument arg : op.getBody().getArguments())
            mapping.map(arg, linalg::IndexOp::create(b, loc, arg.getArgNumber()).getResult());
          for (Operation &inner : op.getBody().front().without_terminator())
            b.clone(inner, mapping);
          Value yielded = op.getBody().front().getTerminator()->getOperand(0);
          linalg::YieldOp::create(b, loc, mapping.lookupOrDefault(yielded));
        });
    rewriter.replaceOp(op, generic);
    return success();
  }
};

struct FillFromSplat : OpRewritePattern<tensor::SplatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::SplatOp op, PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!type.hasStaticShape())
      return failure();
    Value empty =
        tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(), type.getElementType());
    rewriter.replaceOpWithNewOp<linalg::FillOp>(op, op.getInput(), empty);
    return success();
  }
};

/// tensor.reshape between static shapes -> collapse_shape to rank 1 and expand_shape.
struct ReshapeToViews : OpRewritePattern<tensor::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ReshapeOp op, PatternRewriter &rewriter) const override {
    auto from = dyn_cast<RankedTensorType>(op.getSource().getType());
    auto to = dyn_cast<RankedTensorType>(op.getType());
    if (!from || !to || !from.hasStaticShape() || !to.hasStaticShape())
      return failure();
    auto flatType = RankedTensorType::get({from.getNumElements()}, from.getElementType());
    auto all = [](int64_t rank) {
      SmallVector<ReassociationIndices> groups;
      if (rank)
        groups.push_back(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
      return groups;
    };
    Value flat = op.getSource();
    if (from.getRank() == 0)
      flat = tensor::ExpandShapeOp::create(rewriter, op.getLoc(), flatType, flat,
                                           ArrayRef<ReassociationIndices>());
    else if (from.getRank() != 1)
      flat = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), flatType, flat,
                                             all(from.getRank()));
    if (to.getRank() == 0)
      flat = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), to, flat,
                                             ArrayRef<ReassociationIndices>());
    else if (to.getRank() != 1)
      flat = tensor::ExpandShapeOp::create(rewriter, op.getLoc(), to, flat, all(to.getRank()));
    rewriter.replaceOp(op, flat);
    return success();
  }
};

/// Parallel generic that reads an `outs` filled with a constant -> constant in its body.
struct InlineFilledInit : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (!isParallel(op))
      return failure();
    bool changed = false;
    for (OpOperand &init : op.getDpsInitsMutable()) {
      BlockArgument arg = op.getMatchingBlockArgument(&init);
      TypedAttr value = arg.use_empty() ? TypedAttr() : uniformConstant(init.get());
      if (!value)
        continue;
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(op.getBody());
      rewriter.replaceAllUsesWith(arg, arith::ConstantOp::create(rewriter, op.getLoc(), value));
      changed = true;
    }
    // If the body does not read an output, the output needs no initial value.
    for (OpOperand &init : op.getDpsInitsMutable()) {
      auto type = cast<RankedTensorType>(init.get().getType());
      if (!op.getMatchingBlockArgument(&init).use_empty() ||
          init.get().getDefiningOp<tensor::EmptyOp>())
        continue;
      rewriter.setInsertionPoint(op);
      Value empty =
          tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(), type.getElementType());
      rewriter.modifyOpInPlace(op, [&]() { init.set(empty); });
      changed = true;
    }
    return success(changed);
  }
};

/// extract_slice of a generic without inputs -> generic of the slice's size.
struct ShrinkIndexGeneric : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ExtractSliceOp op,
                                PatternRewriter &rewriter) const override {
    auto generic = op.getSource().getDefiningOp<linalg::GenericOp>();
    if (!generic || generic.getNumDpsInputs() != 0 || generic.getNumDpsInits() != 1 ||
        !isParallel(generic) || !generic.getBody()->getArgument(0).use_empty() ||
        !generic.getIndexingMapsArray()[0].isIdentity() ||
        llvm::any_of(op.getStaticOffsets(), ShapedType::isDynamic) ||
        llvm::any_of(op.getStaticSizes(), ShapedType::isDynamic))
      return failure();
    Location loc = generic.getLoc();
    auto element = op.getType().getElementType();
    Value empty = tensor::EmptyOp::create(rewriter, loc, op.getStaticSizes(), element);
    auto smaller = cast<linalg::GenericOp>(rewriter.clone(*generic));
    rewriter.modifyOpInPlace(smaller, [&]() {
      smaller.getDpsInitsMutable()[0].set(empty);
      smaller->getResult(0).setType(cast<RankedTensorType>(empty.getType()));
    });
    for (auto index : llvm::to_vector(smaller.getBody()->getOps<linalg::IndexOp>())) {
      rewriter.setInsertionPointAfter(index);
      Value stride =
          arith::ConstantIndexOp::create(rewriter, loc, op.getStaticStrides()[index.getDim()]);
      Value offset =
          arith::ConstantIndexOp::create(rewriter, loc, op.getStaticOffsets()[index.getDim()]);
      auto scaled = arith::MulIOp::create(rewriter, loc, index, stride);
      Value moved = arith::AddIOp::create(rewriter, loc, scaled, offset);
      rewriter.replaceAllUsesExcept(index.getResult(), moved, scaled);
    }
    rewriter.setInsertionPoint(op);
    Value result = smaller.getResult(0);
    if (result.getType() != op.getType()) { // rank-reducing
      auto groups =
          getReassociationIndicesForCollapse(op.getStaticSizes(), op.getType().getShape());
      if (!groups)
        return failure();
      result = tensor::CollapseShapeOp::create(rewriter, loc, op.getType(), result, *groups);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// arith.truncf of a constant -> rounded constant, even if the rounding is inexact.
struct RoundConstant : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    FloatAttr value;
    auto type = dyn_cast<FloatType>(op.getType());
    if (!type || !matchPattern(op.getIn(), m_Constant(&value)))
      return failure();
    APFloat rounded = value.getValue();
    bool losesInfo;
    rounded.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, FloatAttr::get(type, rounded));
    return success();
  }
};

/// math.clampf -> maximumf and minimumf. (The expansion of MLIR 22 swaps the bounds.)
struct ClampToExtremes : OpRewritePattern<math::ClampFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ClampFOp op, PatternRewriter &rewriter) const override {
    Value raised = arith::MaximumFOp::create(rewriter, op.getLoc(), op.getValue(), op.getMin());
    rewriter.replaceOpWithNewOp<arith::MinimumFOp>(op, raised, op.getMax());
    return success();
  }
};

/// Replaces a power x^e, where e is a constant, by x (e = 1), products (e = 2 or 3), sqrt (e = 0.5)
/// or rsqrt (e = -0.5). Unlike math.powf, products are correct for negative x, and the derivative
/// of a product is cheap.
template <typename PowOp>
struct SmallPower : OpRewritePattern<PowOp> {
  using OpRewritePattern<PowOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(PowOp op, PatternRewriter &rewriter) const override {
    FloatAttr real;
    IntegerAttr integer;
    double exponent;
    if (matchPattern(op.getRhs(), m_Constant(&real)))
      exponent = real.getValueAsDouble();
    else if (matchPattern(op.getRhs(), m_Constant(&integer)))
      exponent = integer.getInt();
    else
      return failure();
    Value x = op.getLhs();
    if (exponent == 1) {
      rewriter.replaceOp(op, x);
      return success();
    }
    if (exponent == 0.5) {
      rewriter.replaceOpWithNewOp<math::SqrtOp>(op, x);
      return success();
    }
    if (exponent == -0.5) {
      rewriter.replaceOpWithNewOp<math::RsqrtOp>(op, x);
      return success();
    }
    if (exponent != 2 && exponent != 3)
      return failure();
    Value square = arith::MulFOp::create(rewriter, op.getLoc(), x, x);
    if (exponent == 3)
      square = arith::MulFOp::create(rewriter, op.getLoc(), square, x);
    rewriter.replaceOp(op, square);
    return success();
  }
};
} // namespace

/// Returns whether the reader of an operand can recompute the operand cheaply. This is the case if
/// the producer is a constant or an elementwise function of indices or integers.
static bool isCheapProducer(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  if (!producer || isContraction(cast<linalg::LinalgOp>(operand->getOwner())))
    return false;
  bool scalar = producer.getNumLoops() == 0;
  if (scalar && producer.getNumDpsInputs() == 0)
    return true;
  for (Operation &op : producer.getBody()->getOperations())
    if (isa_and_nonnull<math::MathDialect>(op.getDialect()) || isa<tensor::ExtractOp>(op))
      return false;
  if (producer.getNumDpsInputs() == 0)
    return true;
  return llvm::none_of(producer->getOperandTypes(),
                       [](Type t) { return isa<FloatType>(getElementTypeOrSelf(t)); });
}

void NormaliseOpsPass::runOnOperation() {
  getOperation()->walk([&](Operation *op) {
    if (auto flags = dyn_cast<arith::ArithFastMathInterface>(op)) {
      StringRef name = flags.getFastMathAttrName();
      auto attr = op->getAttrOfType<arith::FastMathFlagsAttr>(name);
      if (attr && attr.getValue() != arith::FastMathFlags::none) {
        op->setAttr(name, arith::FastMathFlagsAttr::get(&getContext(), arith::FastMathFlags::none));
        ++numFlags;
      }
    }
  });
  RewritePatternSet patterns(&getContext());
  patterns.add<Generalise, GenericFromGenerate, FillFromSplat, ReshapeToViews, InlineFilledInit,
               ShrinkIndexGeneric, RoundConstant, ClampToExtremes, SmallPower<math::PowFOp>,
               SmallPower<math::FPowIOp>>(&getContext());
  populateCaptureOperandPatterns(patterns);
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  linalg::populateElementwiseOpsFusionPatterns(patterns, isCheapProducer);
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
    signalPassFailure();
}
