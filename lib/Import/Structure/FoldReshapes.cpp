//===- FoldReshapes.cpp - Remove views around products ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Exporters collapse dimensions before each matrix product and expand them after it. The two phases
// of this pass remove these views:
//
//   heads   copy[B,H,T,D] - collapse[BH,T,D] - product     product on [B,H,T,D]; the copy then
//                                                     ->   folds into its maps
//   rows    product[BT,C] - expand[B,T,C] - elementwise .. elementwise on [BT,C] ..
//                                          - collapse ->   no view between
//
//  1. Phase "heads": a product may read a collapse_shape of a copy (a transpose, or a broadcast of
//     grouped heads). If the collapse_shape merges batch dimensions, expand the loops of the
//     product. Also expand the loops of a copy that reads a collapse_shape of another copy. Move
//     copies towards the products that read them (SinkCopies.h).
//  2. Phase "rows": if loops of a product are adjacent in all operands, collapse them to one loop.
//  3. Phase "rows": collapse the loops of an elementwise op or a reduction if it reads an
//     expand_shape, or if a collapse_shape reads it. Also move views past slices and lookups.
//
// Views of arguments, views next to slices, and views that split or merge heads remain.
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
      SmallVector<int64_t> moving; // those dimensions of the group that the slice shortens
      for (int64_t d : group)
        if (op.getStaticSizes()[d] != wide[d])
          moving.push_back(d);
      // All other dimensions of the group must have size 1.
      if (!moving.empty()) {
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

/// Returns whether `value` is the result of a copy.
static bool comesFromCopy(Value value) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  return generic && isCopy(generic);
}

/// Returns whether `view`, which the product reads, merges dimensions, such as batch and heads,
/// into a dimension that a batch loop of the product indexes. Views that merge rows or columns are
/// kept.
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

/// Runs step 1. Expands products and copies that read a collapse_shape of a copy. Also expands a
/// copy if an expand_shape reads its result.
LogicalResult FoldReshapesPass::expand() {
  auto control = [](OpOperand *operand) {
    if (auto reader = dyn_cast<linalg::GenericOp>(operand->getOwner())) {
      auto view = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
      auto source = view ? view.getSrc().getDefiningOp<linalg::GenericOp>() : nullptr;
      // Expand a copy of a collapsed product, because the copy then folds into the product.
      if (!source || isContraction(source))
        return source && isCopy(reader);
      if (!isCopy(source))
        return false;
      // Expand a unary op, because the copy then moves past it.
      bool unary = isParallel(reader) && reader.getNumDpsInputs() == 1;
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

/// Returns groups of loops of a product. The loops of a group are adjacent in every operand.
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

/// Runs steps 2 and 3: collapses loops of products, elementwise ops and reductions.
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
