//===- FuseElementwise.cpp - Fuse elementwise chains ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %a = generic { mulf } ; %b = generic ins(%a) { addf }   ->   generic { mulf ; addf }
//
// Ops are fused before differentiation. The backward recomputes values inside a fused body, so that
// fewer activations are kept for the backward. The pass uses MLIR's fusion patterns. It allows the
// fusion of a producer into a consumer in two cases:
//
//  - The producer only widens floats. The pass then fuses the producer into all its readers,
//    because reading bf16 twice is cheaper than keeping an f32 tensor.
//  - All loops of the consumer are parallel, the result of the producer has no other use, and the
//    producer does not round a wider input. The pass does not fuse the two ops if the fused op
//    would repeat a math function, such as cos, in an outer loop.
//
// A producer that rounds is not fused, so that its bf16 result is kept for the backward. Fusion
// would keep the f32 input instead, which has twice the size.
//
// An op is never fused into a contraction that reads it, because the op would be computed again for
// each column of the product. A fused body has at most 512 ops. Each fusion copies both bodies, so
// without this limit the fusion of a long chain would take quadratic time.
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

/// Returns whether fusion would repeat math functions of the producer in each iteration of an outer
/// loop of the consumer. An example is a table over (t, d) that is read for every (b, h, t, d).
/// Math functions that depend on outer loops alone, such as the rsqrt of a row, do not count,
/// because their values are computed once per row.
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

/// Returns whether the producer rounds its result and has a wider input of at least as many
/// elements. The result, if kept for the backward, then takes fewer bytes than this input.
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

/// Returns true if the body that results from the fusion has at most 512 ops.
static bool fitsOneBody(linalg::GenericOp producer, linalg::LinalgOp consumer) {
  constexpr size_t most = 512;
  return producer.getBody()->getOperations().size() + consumer.getBlock()->getOperations().size() <=
         most;
}

/// Returns whether to fuse the producer of `operand` into the op that has the operand.
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
