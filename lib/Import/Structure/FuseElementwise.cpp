//===- FuseElementwise.cpp - Join elementwise chains ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %a = generic { mulf } ; %b = generic ins(%a) { addf }   ->   generic { mulf ; addf }
//
// Before differentiation, because a body recomputes what is inside it: fewer
// activations cross from forward to backward. Upstream's patterns, steered:
//
//  - into consumers whose loops are all parallel, when the value has no other use;
//  - casts to a wider float into every elementwise op and reduction, used once or
//    often: reading bf16 twice is cheaper than keeping it as f32;
//  - what a wider value was rounded to stays apart from what reads it, so that backward
//    keeps the bf16 of a sum, and not the sum in f32, which is twice as large;
//  - a function like cos only where no outer loop would repeat it;
//  - never into a contraction, which would recompute the value for each n;
//  - bodies of at most 512 ops: each fusion copies both bodies, which would take quadratic time for
//    a long chain.
//
//===----------------------------------------------------------------------===//

#include "Structure/Structured.h"
#include "fsdp/IR/Widening.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FUSEELEMENTWISEPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct FuseElementwisePass : public fsdp::impl::FuseElementwisePassBase<FuseElementwisePass> {
  using FuseElementwisePassBase::FuseElementwisePassBase;
  void runOnOperation() override;
};
} // namespace

/// Whether a producer with functions like cos would run anew for each step of an
/// outer loop: a table over (t, d) read for every (b, h, t, d). What only inner
/// loops repeat (rsqrt of a row) is computed once per row.
static bool repeatsMath(linalg::GenericOp producer, OpOperand *operand) {
  if (llvm::none_of(producer.getBody()->without_terminator(), [](Operation &op) {
        return isa_and_nonnull<math::MathDialect>(op.getDialect());
      }))
    return false;
  auto consumer = cast<linalg::LinalgOp>(operand->getOwner());
  AffineMap map = consumer.getMatchingIndexingMap(operand);
  bool outer = true;
  for (unsigned d = 0; d < consumer.getNumLoops(); ++d) {
    bool used = map.isFunctionOfDim(d);
    if (used && !outer)
      return true;
    outer &= used;
  }
  return false;
}

/// Whether a value is what a wider one of its size was rounded to: of the two the one to keep for
/// backward.
static bool isRounded(linalg::GenericOp producer) {
  auto result = cast<RankedTensorType>(producer->getResultTypes().front());
  auto rounding =
      producer.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::TruncFOp>();
  return rounding && producer->getNumResults() == 1 &&
         llvm::any_of(producer.getInputs(), [&](Value input) {
           auto type = dyn_cast<RankedTensorType>(input.getType());
           return type && type.getElementType().isFloat() &&
                  type.getElementTypeBitWidth() > result.getElementTypeBitWidth() &&
                  type.getNumElements() >= result.getNumElements();
         });
}

/// Returns true if a fusion of the two bodies has at most 512 ops.
static bool fitsOneBody(linalg::GenericOp producer, linalg::LinalgOp consumer) {
  constexpr size_t most = 512;
  return producer.getBody()->getOperations().size() + consumer.getBlock()->getOperations().size() <=
         most;
}

static bool shouldFuse(OpOperand *operand) {
  auto consumer = cast<linalg::LinalgOp>(operand->getOwner());
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  if (!producer || isContraction(consumer) || !fitsOneBody(producer, consumer))
    return false;
  if (isWidening(producer))
    return true;
  return isParallel(consumer) && operand->get().hasOneUse() && !repeatsMath(producer, operand) &&
         !isRounded(producer);
}

void FuseElementwisePass::runOnOperation() {
  unsigned before = 0, after = 0;
  getOperation()->walk([&](linalg::GenericOp) { ++before; });
  RewritePatternSet patterns(&getContext());
  linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
    return signalPassFailure();
  getOperation()->walk([&](linalg::GenericOp) { ++after; });
  numFused += before > after ? before - after : 0;
}
