//===- FoldReshapes.cpp - Move views out of the way -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Importers flatten before each matrix product and unflatten after it. Two
// steps leave one shape per region of the model:
//
//   heads   copy[B,H,T,D] - collapse[BH,T,D] - product     product on [B,H,T,D], so that
//                                                     ->   the copy folds into its maps
//   rows    product[BT,C] - expand[B,T,C] - elementwise .. elementwise on [BT,C] ..
//                                          - collapse ->   no view between
//
//  1. Expand products that read a collapsed copy (a broadcast of grouped heads, a
//     transpose) whose merged dimensions are the heads, and copies that read one;
//     their other operands and results follow. Copies sink towards products
//     (SinkCopies.h).
//  2. Collapse the loops of products that run side by side in all operands.
//  3. Collapse elementwise ops and reductions after an expand_shape or before a
//     collapse_shape; slices and lookups pass views on.
//
// The views that are left stand at arguments, at slices and at heads.
//
//===----------------------------------------------------------------------===//

#include "Structure/FoldCopies.h"
#include "Structure/SinkCopies.h"
#include "Structure/Structured.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FOLDRESHAPESPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct FoldReshapesPass : public fsdp::impl::FoldReshapesPassBase<FoldReshapesPass> {
  using FoldReshapesPassBase::FoldReshapesPassBase;
  void runOnOperation() override;

private:
  LogicalResult expand();
  LogicalResult collapse();
};

/// extract_slice(expand_shape) that slices whole groups -> expand_shape(extract_slice).
struct SliceOfExpand : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ExtractSliceOp op,
                                PatternRewriter &rewriter) const override {
    auto expand = op.getSource().getDefiningOp<tensor::ExpandShapeOp>();
    if (!expand || !expand.getResultType().hasStaticShape() || !op.getOffsets().empty() ||
        !op.getSizes().empty() || !op.getStrides().empty())
      return failure();
    ArrayRef<int64_t> wide = expand.getResultType().getShape(),
                      narrow = expand.getSrcType().getShape();
    SmallVector<OpFoldResult> offsets, sizes, strides;
    SmallVector<int64_t> shape;
    for (auto [g, group] : llvm::enumerate(expand.getReassociationIndices())) {
      int64_t offset = 0, size = narrow[g], stride = 1;
      SmallVector<int64_t> moving; // sliced dimensions of the group
      for (int64_t d : group)
        if (op.getStaticSizes()[d] != wide[d])
          moving.push_back(d);
      if (!moving.empty()) { // one sliced dimension among units
        int64_t others = llvm::count_if(group, [&](int64_t d) { return wide[d] != 1; });
        if (moving.size() != 1 || others != 1)
          return failure();
        offset = op.getStaticOffsets()[moving[0]];
        size = op.getStaticSizes()[moving[0]];
        stride = op.getStaticStrides()[moving[0]];
      }
      offsets.push_back(rewriter.getIndexAttr(offset));
      sizes.push_back(rewriter.getIndexAttr(size));
      strides.push_back(rewriter.getIndexAttr(stride));
      shape.push_back(size);
    }
    Location loc = op.getLoc();
    Type element = op.getType().getElementType();
    Value slice =
        tensor::ExtractSliceOp::create(rewriter, loc, RankedTensorType::get(shape, element),
                                       expand.getSrc(), offsets, sizes, strides);
    auto full = RankedTensorType::get(op.getStaticSizes(), element);
    Value result =
        tensor::ExpandShapeOp::create(rewriter, loc, full, slice, expand.getReassociationIndices());
    if (full != op.getType()) {
      auto groups = getReassociationIndicesForCollapse(full.getShape(), op.getType().getShape());
      if (!groups)
        return failure();
      result = tensor::CollapseShapeOp::create(rewriter, loc, op.getType(), result, *groups);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// collapse_shape(gather_rows) that merges ids -> gather_rows of collapsed ids.
struct CollapseOfGather : OpRewritePattern<tensor::CollapseShapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::CollapseShapeOp op,
                                PatternRewriter &rewriter) const override {
    auto gather = op.getSrc().getDefiningOp<GatherRowsOp>();
    SmallVector<ReassociationIndices> groups = op.getReassociationIndices();
    if (!gather || !gather.getResult().hasOneUse() || groups.empty() || groups.back().size() != 1)
      return failure();
    groups.pop_back();
    auto idsType =
        RankedTensorType::get(op.getResultType().getShape().drop_back(),
                              cast<RankedTensorType>(gather.getIds().getType()).getElementType());
    Value ids =
        tensor::CollapseShapeOp::create(rewriter, op.getLoc(), idsType, gather.getIds(), groups);
    rewriter.replaceOpWithNewOp<GatherRowsOp>(op, op.getResultType(), gather.getTable(), ids);
    return success();
  }
};
} // namespace

/// A generic that only moves data, possibly after views.
static bool comesFromCopy(Value value) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  return generic && isCopy(generic);
}

/// Whether a view merges dimensions that a product runs side by side in all its
/// operands: the heads and the batch. (Merged rows or columns stay merged.)
static bool mergesBatchLoops(linalg::GenericOp product, OpOperand *operand,
                             tensor::CollapseShapeOp view) {
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  AffineMap map = product.getMatchingIndexingMap(operand);
  for (auto [group, expr] : llvm::zip_equal(view.getReassociationIndices(), map.getResults())) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (group.size() > 1 && loop &&
        llvm::all_of(maps, [&](AffineMap m) { return m.isFunctionOfDim(loop.getPosition()); }))
      return true;
  }
  return false;
}

/// Step 1: products and copies that read collapse_shape(copy); and copies before
/// an expand_shape.
LogicalResult FoldReshapesPass::expand() {
  auto control = [](OpOperand *operand) {
    if (auto reader = dyn_cast<linalg::GenericOp>(operand->getOwner())) {
      auto view = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
      auto source = view ? view.getSrc().getDefiningOp<linalg::GenericOp>() : nullptr;
      if (!source || isContraction(source)) // a transpose of a product moves into it
        return source && isCopy(reader);
      if (!isCopy(source))
        return false;
      bool unary = isParallel(reader) && reader.getNumDpsInputs() == 1; // then sinks the copy
      return unary || (isContraction(reader) && mergesBatchLoops(reader, operand, view));
    }
    return isa<tensor::ExpandShapeOp>(operand->getOwner()) && comesFromCopy(operand->get());
  };
  RewritePatternSet patterns(&getContext());
  linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, control);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, &getContext());
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
  tensor::EmptyOp::getCanonicalizationPatterns(patterns, &getContext());
  linalg::FillOp::getCanonicalizationPatterns(patterns, &getContext());
  tensor::populateFoldTensorEmptyPatterns(patterns);
  patterns.add<SliceOfExpand>(&getContext());
  populateSinkCopyPatterns(patterns);
  populateFoldCopyPatterns(patterns, numFolded);
  linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
  return applyPatternsGreedily(getOperation(), std::move(patterns));
}

/// Neighbouring loops of a product that are neighbours in every operand.
static SmallVector<ReassociationIndices> mergeableLoops(linalg::LinalgOp op) {
  SmallVector<ReassociationIndices> groups;
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic || !isContraction(op))
    return groups;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (int64_t d = 0, e = op.getNumLoops(); d < e; ++d) {
    ReassociationIndices group{d};
    while (d + 1 < e && iterators[d + 1] == iterators[group.front()]) {
      ReassociationIndices wider = group;
      wider.push_back(d + 1);
      if (!linalg::areDimSequencesPreserved(op.getIndexingMapsArray(),
                                            ArrayRef<ReassociationIndices>(wider)))
        break;
      group = wider;
      ++d;
    }
    if (group.size() > 1)
      groups.push_back(group);
  }
  return groups;
}

/// Steps 2 and 3.
LogicalResult FoldReshapesPass::collapse() {
  auto control = [](OpOperand *operand) {
    Operation *other = operand->get().getDefiningOp();
    auto generic = dyn_cast<linalg::GenericOp>(operand->getOwner());
    if (!generic)
      generic = dyn_cast_or_null<linalg::GenericOp>(other);
    return generic && !isContraction(generic);
  };
  RewritePatternSet patterns(&getContext());
  linalg::populateFoldReshapeOpsByCollapsingPatterns(patterns, control);
  linalg::populateCollapseDimensions(patterns, mergeableLoops);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, &getContext());
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
  tensor::EmptyOp::getCanonicalizationPatterns(patterns, &getContext());
  linalg::FillOp::getCanonicalizationPatterns(patterns, &getContext());
  tensor::populateFoldTensorEmptyPatterns(patterns);
  patterns.add<SliceOfExpand, CollapseOfGather>(&getContext());
  return applyPatternsGreedily(getOperation(), std::move(patterns));
}

void FoldReshapesPass::runOnOperation() {
  auto countViews = [&]() {
    unsigned views = 0;
    getOperation()->walk(
        [&](Operation *op) { views += isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op); });
    return views;
  };
  unsigned before = countViews();
  if (failed(phase == "heads" ? expand() : collapse()))
    return signalPassFailure();
  unsigned after = countViews();
  numRemoved += before > after ? before - after : 0;
}
