//===- RaiseCrossEntropy.cpp - Raise losses to cross_entropy ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %logp = x - log(sum exp(x - m)) - m
//   %nll  = { negf(tensor.extract %logp[row, %t]) }     %loss, %lse = fsdp.cross_entropy %x, %t
//   %sum  = sum over rows of %nll                  ->
//   %loss = %sum / rows
//
//  1. For every sum whose result has rank 0, match the formula of one term (LossTerms.cpp).
//  2. Follow the divisions and products that use the sum. Each of these ops must multiply or divide
//     by a constant, such as the number of rows, or divide by the number of rows that are not
//     ignored.
//  3. Replace the result of the last of these ops by fsdp.cross_entropy times the remaining factor.
//
// With ignore_index, the divisor must be the number of rows that are not ignored. A loss with
// another divisor is not raised (ExpandLookup.cpp makes it differentiable).
//
//===----------------------------------------------------------------------===//

#include "Lookups/IdRanges.h"
#include "Raise/LossTerms.h"
#include "Structure/Points.h"
#include "Structure/Structured.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_RAISECROSSENTROPYPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct RaiseCrossEntropyPass : public fsdp::impl::RaiseCrossEntropyPassBase<RaiseCrossEntropyPass> {
  using RaiseCrossEntropyPassBase::RaiseCrossEntropyPassBase;
  void runOnOperation() override;
};
} // namespace

/// Returns whether the loss reads logits of shape [rows.., V] and targets of shape [rows..], where
/// the two tensors have their rows in the same order.
static bool readsWholeRows(const Loss &loss) {
  if (!loss.logits.isTensor() || !loss.target.isTensor() || loss.logits.at.empty())
    return false;
  ArrayRef<AffineExpr> rows = ArrayRef(loss.logits.at).drop_back();
  if (!isa<AffineDimExpr>(loss.logits.at.back()) || rows != ArrayRef(loss.target.at) ||
      rows.size() != loss.rows.size())
    return false;
  return llvm::all_of(rows, [&](AffineExpr e) { return llvm::is_contained(loss.rows, e); });
}

/// Ensures that every target is a class or the ignored value. A one-hot loss accepts any number as
/// a target, unlike fsdp.cross_entropy. The argument that holds the targets therefore gets a limit,
/// which the runtime checks. Returns false if no limit can ensure this.
static bool limitTargets(func::FuncOp func, const Loss &loss, int64_t classes) {
  llvm::SmallPtrSet<void *, 16> seen;
  SmallVector<BlockArgument> arguments;
  IdRanges::collectIdArguments(loss.target.value, seen, arguments);
  auto fits = [&](IntegerRange range) {
    return range.within(0, classes - 1) ||
           (loss.ignore && range.within(*loss.ignore, *loss.ignore));
  };
  IdRanges limits;
  if (fits(limits.get(loss.target.value))) {
    for (BlockArgument arg : arguments) {
      auto extra =
          func.getArgAttrOfType<DenseI64ArrayAttr>(arg.getArgNumber(), FSDPDialect::extraIdsAttr);
      for (int64_t id : extra ? extra.asArrayRef() : ArrayRef<int64_t>()) {
        IdRanges trial;
        trial.assume(arg, IntegerRange::of(id));
        if (arguments.size() != 1 || !fits(trial.get(loss.target.value)))
          return false;
      }
    }
    return true;
  }
  if (arguments.size() != 1 || func.getArgAttr(arguments[0].getArgNumber(), FSDPDialect::limitAttr))
    return false;
  Builder b(func.getContext());
  unsigned number = arguments[0].getArgNumber();
  limits.assume(arguments[0], classes);
  if (!limits.get(loss.target.value).within(0, classes - 1))
    return false;
  func.setArgAttr(number, FSDPDialect::limitAttr, b.getI64IntegerAttr(classes));
  if (!loss.ignore || (*loss.ignore >= 0 && *loss.ignore < classes))
    return true;
  limits.assume(arguments[0], IntegerRange::of(*loss.ignore));
  if (fits(limits.get(loss.target.value)))
    func.setArgAttr(number, FSDPDialect::extraIdsAttr, b.getDenseI64ArrayAttr(*loss.ignore));
  return true;
}

/// Returns whether `count` is Σ_rows float(t != ignore).
static bool countsOthers(const Point &count, const Loss &loss) {
  Point p = settle(count);
  while (p.op<arith::SIToFPOp>() || p.op<arith::UIToFPOp>() || p.op<arith::MaximumFOp>())
    p = settle(operandOf(p, 0));
  auto sum = matchReduction(p, Reduction::Sum);
  if (!sum)
    return false;
  Point term = settle(sum->term);
  bool positive = true;
  if (term.op<arith::SelectOp>()) { // select(t != ignore, 1, 0)
    positive = constantAt(operandOf(term, 1)) == 1.0 && constantAt(operandOf(term, 2)) == 0.0;
    if (!positive &&
        !(constantAt(operandOf(term, 1)) == 0.0 && constantAt(operandOf(term, 2)) == 1.0))
      return false;
    term = settle(operandOf(term, 0));
  }
  while (!term.isTensor() &&
         isa_and_nonnull<arith::ExtUIOp, arith::UIToFPOp, arith::ExtSIOp, arith::SIToFPOp>(
             term.value.getDefiningOp()))
    term = settle(operandOf(term, 0));
  int64_t value;
  bool equals;
  Point target;
  if (!matchIgnore(term, value, equals, target) || equals == positive || value != loss.ignore)
    return false;
  return target.value == loss.target.value && target.at.size() == sum->symbols.size();
}

/// Follows the uses of the sum. Continues as long as a value has only one use, which multiplies or
/// divides the value by a constant, or divides it by the count of rows that are not ignored.
/// Updates `loss.factor` and `counted`. Returns the result of the last op.
static Value followScaling(Value sum, Loss &loss, bool &counted) {
  while (sum.hasOneUse()) {
    auto op = dyn_cast<linalg::GenericOp>(*sum.getUsers().begin());
    if (!op || op->getNumResults() != 1 || op.getNumLoops() != 0)
      break;
    Point root{op.getBody()->getTerminator()->getOperand(0), {}};
    if (root.op<arith::NegFOp>()) {
      loss.factor = -loss.factor;
    } else if (root.op<arith::DivFOp>() || root.op<arith::MulFOp>()) {
      bool divides = static_cast<bool>(root.op<arith::DivFOp>());
      if (readElement(operandOf(root, 0)).value != sum)
        break;
      Point other = operandOf(root, 1);
      if (std::optional<double> c = constantAt(other); c && *c != 0)
        loss.factor = divides ? loss.factor / *c : loss.factor * *c;
      else if (divides && loss.ignore && !counted && countsOthers(other, loss))
        counted = true;
      else
        break;
    } else {
      break;
    }
    sum = op->getResult(0);
  }
  return sum;
}

/// If `keepLast`, views a tensor [rows.., V] as [N, V]. Otherwise views a tensor [rows..] as [N].
static Value flattenRows(OpBuilder &b, Location loc, Value tensor, bool keepLast) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t rows = type.getRank() - keepLast;
  SmallVector<ReassociationIndices> groups{llvm::to_vector(llvm::seq<int64_t>(0, rows))};
  SmallVector<int64_t> shape{type.getNumElements()};
  if (keepLast) {
    groups.push_back({rows});
    shape = {type.getNumElements() / std::max<int64_t>(type.getShape().back(), 1),
             type.getShape().back()};
  }
  auto flat = RankedTensorType::get(shape, type.getElementType());
  if (rows == 1)
    return tensor;
  if (rows > 1)
    return tensor::CollapseShapeOp::create(b, loc, flat, tensor, groups);
  if (!keepLast)
    return tensor::ExpandShapeOp::create(b, loc, flat, tensor, ArrayRef<ReassociationIndices>());
  return tensor::ExpandShapeOp::create(b, loc, flat, tensor,
                                       ArrayRef<ReassociationIndices>{{0, 1}});
}

/// Multiplies a rank-0 tensor by a constant.
static Value scale(OpBuilder &b, Location loc, Value value, double factor) {
  auto type = cast<RankedTensorType>(value.getType());
  Value empty = tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>(), type.getElementType());
  AffineMap scalar = AffineMap::get(0, 0, b.getContext());
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    Value c = arith::ConstantOp::create(b, loc, b.getFloatAttr(type.getElementType(), factor));
    Value scaled = arith::MulFOp::create(b, loc, args[0], c);
    linalg::YieldOp::create(b, loc, scaled);
  };
  return linalg::GenericOp::create(b, loc, TypeRange(type), ValueRange(value), ValueRange(empty),
                                   ArrayRef<AffineMap>{scalar, scalar},
                                   ArrayRef<utils::IteratorType>(), body)
      .getResult(0);
}

static bool raise(linalg::GenericOp op) {
  auto type =
      op->getNumResults() == 1 ? dyn_cast<RankedTensorType>(op->getResult(0).getType()) : nullptr;
  if (!type || type.getRank() != 0)
    return false;
  auto sum = matchReduction({op->getResult(0), {}}, Reduction::Sum);
  if (!sum)
    return false;
  std::optional<Loss> loss = readLoss(sum->term, sum->symbols);
  if (!loss || !readsWholeRows(*loss))
    return false;
  bool counted = false;
  Value last = followScaling(op->getResult(0), *loss, counted);
  if (loss->ignore && !counted)
    return false;
  auto logitsElement = cast<RankedTensorType>(loss->logits.value.getType()).getElementType();
  int64_t classes = cast<RankedTensorType>(loss->logits.value.getType()).getShape().back();
  if (type.getElementType() != logitsElement ||
      !limitTargets(op->getParentOfType<func::FuncOp>(), *loss, classes))
    return false;
  int64_t rows = cast<RankedTensorType>(loss->target.value.getType()).getNumElements();
  double factor = loss->ignore ? loss->factor : loss->factor * rows;

  OpBuilder b(last.getDefiningOp());
  Location loc = op.getLoc();
  Value logits = flattenRows(b, loc, loss->logits.value, true),
        targets = flattenRows(b, loc, loss->target.value, false);
  auto logitsType = cast<RankedTensorType>(logits.getType());
  auto lseType = RankedTensorType::get({logitsType.getDimSize(0)}, logitsType.getElementType());
  IntegerAttr ignore = loss->ignore ? b.getI64IntegerAttr(*loss->ignore) : IntegerAttr();
  Value mean = CrossEntropyOp::create(b, loc, type, lseType, logits, targets,
                                      /*coordinate=*/Value(), ignore, /*mesh=*/{}, /*axes=*/{})
                   .getLoss();
  last.replaceAllUsesWith(std::abs(factor - 1) > 1e-6 ? scale(b, loc, mean, factor) : mean);
  return true;
}

void RaiseCrossEntropyPass::runOnOperation() {
  SmallVector<linalg::GenericOp> generics;
  getOperation().walk([&](linalg::GenericOp op) { generics.push_back(op); });
  for (linalg::GenericOp op : generics)
    numRaised += raise(op);
}
