//===- AttentionSink.cpp - A score beside those of the keys -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %c = concat(%scores, %sink) : [.., Sk], [.., 1]
//   %p = softmax(%c)
//   %w = slice(%p)              : [.., Sk]         the weight of the sink is dropped
//
//  1. Matches this chain of ops. Between these ops, there may be copies and conversions between
//     float types. The sink may come before the scores, and may depend on batch, head and row. If
//     the chain matches, AttentionMatch.cpp ignores the slice and the concat.
//  2. The sink becomes an additional last key, for which K and V have a row of zeros. The sink is
//     the score that score_mod yields for this key, and the zeros in V leave O unchanged
//     (ScoreFunctions.cpp, RaiseAttention.cpp). Attention captures the tensor of the sink, so that
//     the gradient of attention includes the gradient of the sink.
//
//===----------------------------------------------------------------------===//

#include "Raise/ScoreFunctions.h"
#include "Structure/Structured.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the input of `op` if `op` only copies each element of the input to the same position, or
/// converts the element between float types. Returns null otherwise.
static Value convertedBy(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || !isParallel(generic) || generic.getNumDpsInputs() != 1 ||
      generic->getNumResults() != 1 ||
      !llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap m) { return m.isIdentity(); }))
    return nullptr;
  Value yielded = generic.getBody()->getTerminator()->getOperand(0);
  while (auto *conversion = yielded.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(conversion))
      return nullptr;
    yielded = conversion->getOperand(0);
  }
  return yielded == generic.getBody()->getArgument(0) ? generic.getDpsInputs()[0] : Value();
}

std::optional<Sink> fsdp::matchSink(linalg::SoftmaxOp softmax, Obstacle &obstacle) {
  Value input = softmax.getInput();
  while (Value before = convertedBy(input.getDefiningOp()))
    input = before;
  auto concat = input.getDefiningOp<tensor::ConcatOp>();
  int64_t dim = softmax.getDimension();
  if (!concat || static_cast<int64_t>(concat.getDim()) != dim)
    return std::nullopt;
  Value weights = softmax.getResult()[0];
  while (weights.hasOneUse() && convertedBy(*weights.user_begin()) == weights)
    weights = weights.user_begin()->getResult(0);
  auto slice = weights.hasOneUse() ? dyn_cast<tensor::ExtractSliceOp>(*weights.user_begin())
                                   : tensor::ExtractSliceOp();
  // If no slice drops the column, the column is not a sink.
  if (!slice || slice.getType().getRank() != slice.getSourceType().getRank() ||
      !slice.getOffsets().empty() || !slice.getSizes().empty() || !slice.getStrides().empty() ||
      llvm::any_of(slice.getStaticStrides(), [](int64_t stride) { return stride != 1; }))
    return std::nullopt;
  for (int64_t d = 0, e = slice.getType().getRank(); d < e; ++d)
    if (d != dim && slice.getType().getDimSize(d) != slice.getSourceType().getDimSize(d))
      return std::nullopt;
  auto extentOf = [&](unsigned i) {
    return cast<RankedTensorType>(concat.getInputs()[i].getType()).getDimSize(dim);
  };
  int64_t offset = slice.getStaticOffsets()[dim], size = slice.getType().getDimSize(dim);
  if (concat.getInputs().size() == 2)
    for (unsigned scores : {0, 1})
      if (size == extentOf(scores) && extentOf(1 - scores) == 1 &&
          offset == (scores ? extentOf(0) : 0))
        return Sink{concat, slice, scores};
  obstacle = {"its input joins the scores with other columns, which is supported for one column "
              "that the product with V does not read (a sink)",
              concat};
  return std::nullopt;
}

/// Returns whether the sink can become the score of an additional key. If the sink cannot, sets
/// `obstacle`. The region score_mod evaluates its formula for this key, too. For this key, the
/// product Q·Kᵀ is 0. The derivative of the formula at 0 must be finite, because it is multiplied
/// by a gradient of 0, and 0 times infinity would be NaN.
bool ScoreFunctions::isSinkAllowed(AttentionOp op, Obstacle &obstacle) {
  Operation *at = m.sink->value.getDefiningOp();
  if (holdsScore(*m.sink)) {
    obstacle = {"the score of the sink depends on those of the keys", at};
    return false;
  }
  if (std::optional<double> constant = constantOf(*m.sink); constant && !(*constant > masked)) {
    obstacle = {"the score of the sink is a constant that masks it", at};
    return false;
  }
  DenseSet<Value> scored{op.getScoreMod().getArgument(0)}; // values that depend on the score
  for (Operation &o : op.getScoreMod().front()) {
    auto isScored = [&](Value v) { return scored.contains(v); };
    if (!llvm::any_of(o.getOperands(), isScored))
      continue;
    scored.insert(o.result_begin(), o.result_end());
    bool isSmooth = isa<math::TanhOp, math::ExpOp, math::Exp2Op, math::SinOp, math::CosOp,
                        math::ErfOp, math::AbsFOp, math::FmaOp>(o) ||
                    !isa_and_nonnull<math::MathDialect>(o.getDialect());
    if (auto quotient = dyn_cast<arith::DivFOp>(o))
      isSmooth = !isScored(quotient.getRhs());
    if (!isSmooth) {
      obstacle = {"beside a sink, this function of the scores may have no derivative at 0",
                  m.formula.value.getDefiningOp()};
      return false;
    }
  }
  return true;
}
