//===- RaiseCrossEntropy.cpp - Losses become fsdp.cross_entropy -*- C++ -*-===//
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
//  1. From every sum down to rank 0, read the formula of one term (Points.h):
//     a sign, constant factors, `select(t == ignore_index, 0, ..)`, sums over
//     further rows, down to the log-probability of the target. That is
//     log_softmax at [row, t], or logsumexp minus x at [row, t]; the element is
//     picked by tensor.extract or by a sum against `t == column` (one-hot).
//  2. Follow the divisions and products behind the sum: by the number of rows,
//     or of rows that are not ignored.
//  3. Replace the last of them by the mean, times what remains of the factors.
//
// With ignore_index the divisor must be the count of the others; a sum with
// another divisor stays as it is (ExpandLookup.cpp makes it differentiable).
//
//===----------------------------------------------------------------------===//

#include "CaptureOperands.h"
#include "IdRanges.h"
#include "Points.h"
#include "Structured.h"
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

/// What a sum of terms turns out to be.
struct Loss {
  Point logits; // a tensor, its last position the class
  Point target;
  double factor = 1; // of the sum of -log p
  std::optional<int64_t> ignore;
  SmallVector<AffineExpr> rows; // symbols that are summed over
};
} // namespace

/// Behind casts between integer types.
static Point stripIntegerCasts(Point point) {
  for (;;) {
    point = settle(point);
    Operation *op = point.isTensor() ? nullptr : point.value.getDefiningOp();
    if (!isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp, arith::ExtUIOp,
                         arith::IndexCastUIOp>(op))
      return point;
    point = operandOf(point, 0);
  }
}

/// log(Σ_v exp(z)): z with the class at `column`.
static std::optional<Point> matchLogSumExp(const Point &point, AffineExpr column) {
  Point log = settle(point);
  if (!log.op<math::LogOp>())
    return std::nullopt;
  auto sum = matchReduction(operandOf(log, 0), Reduction::Sum);
  if (!sum || sum->symbols.size() != 1)
    return std::nullopt;
  Point term = settle(substitute(sum->term, sum->symbols[0], column));
  if (!term.op<math::ExpOp>())
    return std::nullopt;
  return operandOf(term, 0);
}

/// x of z = x - m where m is the same for all classes.
static Point withoutShift(const Point &z, AffineExpr column) {
  Point p = settle(z);
  if (p.op<arith::SubFOp>() && !dependsOn(operandOf(p, 1), column))
    return operandOf(p, 0);
  return z;
}

/// x when `point` is log_softmax(x): z - log Σ exp(z), or x - (log Σ exp(x - m) + m).
static std::optional<Point> matchLogSoftmax(const Point &point, AffineExpr column) {
  Point p = settle(point);
  if (!p.op<arith::SubFOp>())
    return std::nullopt;
  Point z = operandOf(p, 0);
  if (auto inner = matchLogSumExp(operandOf(p, 1), column); inner && equal(*inner, z))
    return withoutShift(z, column);
  Point lse = settle(operandOf(p, 1));
  if (!lse.op<arith::AddFOp>())
    return std::nullopt;
  for (unsigned i : {0, 1}) {
    auto inner = matchLogSumExp(operandOf(lse, i), column);
    Point shifted = inner ? settle(*inner) : Point{z};
    if (inner && shifted.op<arith::SubFOp>() && equal(operandOf(shifted, 0), z) &&
        equal(operandOf(shifted, 1), operandOf(lse, 1 - i)))
      return z;
  }
  return std::nullopt;
}

/// `tensor[rows.., t]`: the tensor with `column` for t, and t.
static std::optional<std::pair<Point, Point>> matchPick(const Point &point, AffineExpr column) {
  auto extract = point.op<tensor::ExtractOp>();
  if (!extract || extract.getIndices().empty())
    return std::nullopt;
  Point element{extract.getTensor(), {}};
  std::optional<Point> target;
  for (Value index : extract.getIndices()) {
    if (AffineExpr expr = affineIndex(index)) {
      element.at.push_back(expr.replaceDims(point.at));
      continue;
    }
    if (target)
      return std::nullopt;
    target = stripIntegerCasts({index, point.at});
    element.at.push_back(column);
  }
  if (!target)
    return std::nullopt;
  return std::pair(element, *target);
}

/// `t == column` for a summed column: t and the column's symbol.
static std::optional<std::pair<Point, AffineExpr>> matchOneHot(const Point &condition) {
  Point p = settle(condition);
  auto cmp = p.op<arith::CmpIOp>();
  if (!cmp || cmp.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  for (unsigned i : {0, 1}) {
    Point side = stripIntegerCasts(operandOf(p, i));
    if (auto index = side.op<linalg::IndexOp>())
      if (isa_and_nonnull<AffineSymbolExpr>(side.at[index.getDim()]))
        return std::pair(stripIntegerCasts(operandOf(p, 1 - i)), side.at[index.getDim()]);
  }
  return std::nullopt;
}

/// `t == c` or `t != c`: t, c, and whether equality selects the first value.
static bool matchIgnore(const Point &condition, int64_t &value, bool &equals, Point &target) {
  Point p = settle(condition);
  auto cmp = p.op<arith::CmpIOp>();
  if (!cmp)
    return false;
  equals = cmp.getPredicate() == arith::CmpIPredicate::eq;
  if (!equals && cmp.getPredicate() != arith::CmpIPredicate::ne)
    return false;
  std::optional<double> constant = constantAt(operandOf(p, 1));
  if (!constant)
    return false;
  value = static_cast<int64_t>(*constant);
  target = stripIntegerCasts(operandOf(p, 0));
  return true;
}

/// The target behind `select(t != ignore, t, 0)`, which keeps lookups in range, in a loss that
/// skips these rows.
static Point withoutSafeguard(Point target, std::optional<int64_t> ignore) {
  int64_t value;
  bool equals;
  Point asked;
  if (!ignore || !target.op<arith::SelectOp>() ||
      !matchIgnore(operandOf(target, 0), value, equals, asked) || value != *ignore ||
      !constantAt(operandOf(target, equals ? 1 : 2)))
    return target;
  Point kept = stripIntegerCasts(operandOf(target, equals ? 2 : 1));
  return equal(kept, asked) ? kept : target;
}

namespace {
/// Reads a term of the sum down to the log-probability, one layer after another.
class TermReader {
public:
  TermReader(Point term, ArrayRef<AffineExpr> symbols)
      : point(term), column(getAffineDimExpr(0, term.value.getContext())) { // rows are symbols
    loss.rows.assign(symbols.begin(), symbols.end());
  }

  std::optional<Loss> read() {
    for (unsigned layer = 0; layer < 64; ++layer) {
      point = settle(point);
      if (readPick() || readDifference() || readOneHot())
        return ignored && !equal(*ignored, loss.target) ? std::nullopt : std::optional(loss);
      if (!peelSum() && !peelFactor() && !peelIgnore())
        return std::nullopt;
    }
    return std::nullopt;
  }

private:
  /// Sums over further rows, or over a one-hot's columns.
  bool peelSum() {
    auto sum = matchReduction(point, Reduction::Sum);
    if (!sum)
      return false;
    loss.rows.append(sum->symbols);
    point = sum->term;
    return true;
  }

  /// Signs and constant factors.
  bool peelFactor() {
    if (point.op<arith::NegFOp>()) {
      loss.factor = -loss.factor;
      point = operandOf(point, 0);
      return true;
    }
    bool divides = static_cast<bool>(point.op<arith::DivFOp>());
    if (!divides && !point.op<arith::MulFOp>())
      return false;
    for (unsigned i : {1, 0}) {
      std::optional<double> c = divides && i == 0 ? std::nullopt : constantAt(operandOf(point, i));
      if (!c || *c == 0)
        continue;
      loss.factor = divides ? loss.factor / *c : loss.factor * *c;
      point = operandOf(point, 1 - i);
      return true;
    }
    return false;
  }

  /// select(t == ignore_index, 0, x), or the same with `!=`.
  bool peelIgnore() {
    int64_t value;
    bool equals;
    Point target;
    if (ignored || !point.op<arith::SelectOp>() ||
        !matchIgnore(operandOf(point, 0), value, equals, target) ||
        constantAt(operandOf(point, equals ? 1 : 2)) != 0.0)
      return false;
    ignored = target;
    loss.ignore = value;
    point = operandOf(point, equals ? 2 : 1);
    return true;
  }

  /// log_softmax(x)[row, t]
  bool readPick() {
    auto pick = matchPick(point, column);
    auto x = pick ? matchLogSoftmax(pick->first, column) : std::nullopt;
    if (!x)
      return false;
    finish(*x, withoutSafeguard(pick->second, loss.ignore), -1);
    return true;
  }

  /// logsumexp(x)[row] - x[row, t], both shifted alike or not at all.
  bool readDifference() {
    if (!point.op<arith::SubFOp>())
      return false;
    auto pick = matchPick(settle(operandOf(point, 1)), column);
    if (!pick)
      return false;
    const Point &picked = pick->first; // x, or x - m
    if (auto inner = matchLogSumExp(operandOf(point, 0), column); inner && equal(*inner, picked)) {
      bool isShifted = static_cast<bool>(settle(picked).op<arith::SubFOp>());
      finish(isShifted ? withoutShift(picked, column) : picked,
             withoutSafeguard(pick->second, loss.ignore), 1);
      return true;
    }
    Point lse = settle(operandOf(point, 0));
    for (unsigned i = 0; i < 2 && lse.op<arith::AddFOp>(); ++i) {
      auto shifted = matchLogSumExp(operandOf(lse, i), column);
      Point z = shifted ? settle(*shifted) : lse;
      if (shifted && z.op<arith::SubFOp>() && equal(operandOf(z, 0), picked) &&
          equal(operandOf(z, 1), operandOf(lse, 1 - i))) {
        finish(picked, withoutSafeguard(pick->second, loss.ignore), 1);
        return true;
      }
    }
    return false;
  }

  /// Σ_v select(t == v, log_softmax(x), 0), or with a product.
  bool readOneHot() {
    Point hot, kept;
    if (point.op<arith::SelectOp>() && constantAt(operandOf(point, 2)) == 0.0) {
      hot = operandOf(point, 0);
      kept = operandOf(point, 1);
      return finishOneHot(matchOneHot(hot), kept);
    }
    for (unsigned i = 0; i < 2 && point.op<arith::MulFOp>(); ++i) {
      hot = settle(operandOf(point, i));
      bool isSelect = hot.op<arith::SelectOp>() && constantAt(operandOf(hot, 1)) == 1.0 &&
                      constantAt(operandOf(hot, 2)) == 0.0;
      if (isSelect || hot.op<arith::UIToFPOp>())
        hot = operandOf(hot, 0);
      if (finishOneHot(matchOneHot(hot), operandOf(point, 1 - i)))
        return true;
    }
    return false;
  }

  bool finishOneHot(std::optional<std::pair<Point, AffineExpr>> oneHot, Point kept) {
    if (!oneHot)
      return false;
    double sign = -1;
    kept = settle(kept);
    if (kept.op<arith::NegFOp>()) {
      sign = 1;
      kept = operandOf(kept, 0);
    }
    auto x = matchLogSoftmax(kept, oneHot->second);
    if (!x)
      return false;
    llvm::erase(loss.rows, oneHot->second);
    finish(substitute(*x, oneHot->second, column), oneHot->first, sign);
    return true;
  }

  void finish(const Point &x, Point target, double sign) {
    loss.logits = readElement(x);
    loss.target = target;
    loss.factor *= sign;
  }

  Point point;
  AffineExpr column; // stands for the class
  Loss loss;
  std::optional<Point> ignored;
};
} // namespace

/// Rows of the loss: logits [rows.., V] and targets [rows..] read in one order.
static bool readsWholeRows(const Loss &loss) {
  if (!loss.logits.isTensor() || !loss.target.isTensor() || loss.logits.at.empty())
    return false;
  ArrayRef<AffineExpr> rows = ArrayRef(loss.logits.at).drop_back();
  if (!isa<AffineDimExpr>(loss.logits.at.back()) || rows != ArrayRef(loss.target.at) ||
      rows.size() != loss.rows.size())
    return false;
  return llvm::all_of(rows, [&](AffineExpr e) { return llvm::is_contained(loss.rows, e); });
}

/// Makes sure that every target is a class or the ignored value, whatever the runtime lets through.
/// A one-hot takes any number: its argument gets a limit.
static bool limitTargets(func::FuncOp func, const Loss &loss, int64_t classes) {
  llvm::SmallPtrSet<void *, 16> seen;
  SmallVector<BlockArgument> arguments;
  IdRanges::collectIdArguments(loss.target.value, seen, arguments);
  auto fits = [&](IdInterval range) {
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
        trial.assume(arg, IdInterval::of(id));
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
  limits.assume(arguments[0], IdInterval::of(*loss.ignore));
  if (fits(limits.get(loss.target.value)))
    func.setArgAttr(number, FSDPDialect::extraIdsAttr, b.getDenseI64ArrayAttr(*loss.ignore));
  return true;
}

/// `count` is Σ_rows float(t != ignore).
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

/// Follows the one rank-0 use of the sum while it scales by constants or the count.
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

/// Views [rows.., V] as [N, V], and [rows..] as [N].
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

/// A rank-0 tensor times a constant.
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
  std::optional<Loss> loss = TermReader(sum->term, sum->symbols).read();
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
  Value mean = CrossEntropyOp::create(b, loc, type, lseType, logits, targets, ignore).getLoss();
  last.replaceAllUsesWith(std::abs(factor - 1) > 1e-6 ? scale(b, loc, mean, factor) : mean);
  return true;
}

void RaiseCrossEntropyPass::runOnOperation() {
  SmallVector<linalg::GenericOp> generics;
  getOperation().walk([&](linalg::GenericOp op) { generics.push_back(op); });
  for (linalg::GenericOp op : generics)
    numRaised += raise(op);
}
