//===- FoldCopies.cpp - Fold transposes and broadcasts into maps ----------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Folds a copy into the indexing maps of the generics that read it: elementwise ops, reductions and
// contractions.
//
//   %t = copy %w {(d0, d1) -> (d1, d0)}
//   contract(%x, %t) {(m, n, k) -> (k, n)}   ->   contract(%x, %w) {(m, n, k) -> (n, k)}
//
// Let `in` and `out` be the input and output maps of the copy, and let `map` be the map with which
// the reader reads the copy. The new map of the reader is in ∘ out⁻¹ ∘ map. A copy is folded only
// if the new maps of the reader determine the extent of every loop. The copy is therefore kept if
// the reader sums over a broadcast dimension. If the only reader of a contraction is a transpose,
// folds the transpose into the output map of the contraction.
//
//===----------------------------------------------------------------------===//

#include "Structure/FoldCopies.h"
#include "Structure/Structured.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FOLDCOPIESPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct FoldCopiesPass : public fsdp::impl::FoldCopiesPassBase<FoldCopiesPass> {
  using FoldCopiesPassBase::FoldCopiesPassBase;
  void runOnOperation() override;
};

struct FoldIntoReader : OpRewritePattern<linalg::GenericOp> {
  FoldIntoReader(MLIRContext *context, llvm::Statistic &numFolded)
      : OpRewritePattern(context), numFolded(numFolded) {}

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto copy = operand->get().getDefiningOp<linalg::GenericOp>();
      if (!copy || !isCopy(copy))
        continue;
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      AffineMap in = copy.getIndexingMapsArray()[0], out = copy.getIndexingMapsArray()[1];
      AffineMap &map = maps[operand->getOperandNumber()];
      map = in.compose(inversePermutation(out)).compose(map);
      if (!boundsAllLoops(maps, getContext()))
        continue;
      rewriter.modifyOpInPlace(op, [&]() {
        operand->set(copy.getInputs()[0]);
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      ++numFolded;
      return success();
    }
    return failure();
  }
  llvm::Statistic &numFolded;
};

/// transpose(contract) -> contract with a transposed output map.
struct FoldIntoProducer : OpRewritePattern<linalg::GenericOp> {
  FoldIntoProducer(MLIRContext *context, llvm::Statistic &numFolded)
      : OpRewritePattern(context), numFolded(numFolded) {}

  LogicalResult matchAndRewrite(linalg::GenericOp copy, PatternRewriter &rewriter) const override {
    if (!isCopy(copy) || !copy.getIndexingMapsArray()[0].isPermutation())
      return failure();
    Value source = copy.getInputs()[0];
    auto producer = source.getDefiningOp<linalg::GenericOp>();
    if (!producer || !source.hasOneUse() || !isContraction(producer))
      return failure();
    auto fill = producer.getOutputs()[0].getDefiningOp<linalg::FillOp>();
    if (!fill)
      return failure();
    SmallVector<AffineMap> maps = producer.getIndexingMapsArray();
    AffineMap in = copy.getIndexingMapsArray()[0], out = copy.getIndexingMapsArray()[1];
    maps[2] = out.compose(inversePermutation(in)).compose(maps[2]);
    auto type = cast<RankedTensorType>(copy->getResult(0).getType());
    rewriter.setInsertionPoint(producer);
    Location loc = producer.getLoc();
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(), type.getElementType());
    Value init = linalg::FillOp::create(rewriter, loc, fill.getInputs()[0], empty).getResult(0);
    auto moved =
        linalg::GenericOp::create(rewriter, loc, TypeRange(type), producer.getInputs(),
                                  ValueRange(init), maps, producer.getIteratorTypesArray());
    rewriter.cloneRegionBefore(producer.getRegion(), moved.getRegion(), moved.getRegion().begin());
    rewriter.replaceOp(copy, moved);
    rewriter.eraseOp(producer);
    ++numFolded;
    return success();
  }
  llvm::Statistic &numFolded;
};
} // namespace

void fsdp::populateFoldCopyPatterns(RewritePatternSet &patterns, llvm::Statistic &numFolded) {
  patterns.add<FoldIntoReader, FoldIntoProducer>(patterns.getContext(), numFolded);
}

void FoldCopiesPass::runOnOperation() {
  RewritePatternSet patterns(&getContext());
  populateFoldCopyPatterns(patterns, numFolded);
  linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
    signalPassFailure();
}
