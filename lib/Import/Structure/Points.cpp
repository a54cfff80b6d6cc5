//===- Points.cpp - The formula of one element across generics --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Structure/Points.h"
#include "Structure/Structured.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include <atomic>

using namespace mlir;
using namespace mlir::fsdp;

/// Maximum recursion depth when formulas are compared or searched.
static constexpr unsigned maxDepth = 24;

SmallVector<AffineExpr> fsdp::place(AffineMap map, ArrayRef<AffineExpr> at) {
  SmallVector<AffineExpr> result;
  for (AffineExpr expr : map.getResults())
    result.push_back(expr.replaceDims(at));
  return result;
}

std::optional<SmallVector<AffineExpr>> fsdp::loopsAt(AffineMap map, ArrayRef<AffineExpr> at) {
  SmallVector<AffineExpr> loops(map.getNumDims());
  for (auto [expr, where] : llvm::zip_equal(map.getResults(), at)) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || loops[dim.getPosition()])
      return std::nullopt;
    loops[dim.getPosition()] = where;
  }
  return loops;
}

/// `op` computes the point's tensor. If `op` is a view that only adds or drops dimensions of size
/// 1, returns the same element of the view's source.
static std::optional<Point> throughView(Operation *op, const Point &point) {
  if (!isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return std::nullopt;
  Value source = op->getOperand(0);
  ArrayRef<int64_t> from = cast<RankedTensorType>(point.value.getType()).getShape();
  ArrayRef<int64_t> to = cast<RankedTensorType>(source.getType()).getShape();
  auto wide = [](int64_t size) { return size != 1; };
  if (llvm::to_vector(llvm::make_filter_range(from, wide)) !=
      llvm::to_vector(llvm::make_filter_range(to, wide)))
    return std::nullopt;
  Point moved{source, {}};
  SmallVector<AffineExpr> kept;
  for (auto [size, expr] : llvm::zip_equal(from, point.at))
    if (wide(size))
      kept.push_back(expr);
  unsigned next = 0;
  for (int64_t size : to)
    moved.at.push_back(wide(size) ? kept[next++] : getAffineConstantExpr(0, op->getContext()));
  return moved;
}

Point fsdp::readElement(Point point) {
  auto arg = dyn_cast<BlockArgument>(point.value);
  auto generic = arg ? dyn_cast<linalg::GenericOp>(arg.getOwner()->getParentOp()) : nullptr;
  if (!generic)
    return point;
  OpOperand *operand = generic.getMatchingOpOperand(arg);
  return {operand->get(), place(generic.getMatchingIndexingMap(operand), point.at)};
}

std::optional<Point> fsdp::step(const Point &point) {
  if (!point.isTensor()) {
    auto arg = dyn_cast<BlockArgument>(point.value);
    auto generic = arg ? dyn_cast<linalg::GenericOp>(arg.getOwner()->getParentOp()) : nullptr;
    if (!generic || (arg.getArgNumber() >= generic.getNumDpsInputs() && !isParallel(generic)) ||
        llvm::is_contained(point.at, AffineExpr()))
      return std::nullopt;
    return readElement(point);
  }
  Operation *op = point.value.getDefiningOp();
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(op))
    return Point{fill.getInputs()[0], {}};
  if (auto view = throughView(op, point))
    return view;
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || !isParallel(generic))
    return std::nullopt;
  unsigned result = cast<OpResult>(point.value).getResultNumber();
  auto loops =
      loopsAt(generic.getIndexingMapsArray()[generic.getNumDpsInputs() + result], point.at);
  if (!loops || llvm::is_contained(*loops, AffineExpr()))
    return std::nullopt;
  return Point{generic.getBody()->getTerminator()->getOperand(result), *loops};
}

Point fsdp::settle(Point point) {
  for (unsigned steps = 0; steps < 256; ++steps) {
    std::optional<Point> next = step(point);
    if (!next)
      break;
    point = *next;
  }
  return point;
}

Point fsdp::operandOf(const Point &point, unsigned i) {
  return {point.value.getDefiningOp()->getOperand(i), point.at};
}

std::optional<double> fsdp::constantAt(const Point &point) {
  Point p = settle(point);
  Attribute value;
  if (!matchPattern(p.value, m_Constant(&value)))
    return std::nullopt;
  if (auto dense = dyn_cast<DenseElementsAttr>(value); dense && dense.isSplat())
    value = dense.getSplatValue<Attribute>();
  if (auto real = dyn_cast<FloatAttr>(value))
    return real.getValueAsDouble();
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return integer.getType().isInteger(1) ? static_cast<double>(integer.getValue().getZExtValue())
                                          : static_cast<double>(integer.getValue().getSExtValue());
  return std::nullopt;
}

bool fsdp::equal(const Point &a, const Point &b, unsigned depth) {
  if (depth > maxDepth)
    return false;
  Point p = settle(a), q = settle(b);
  if (p.value == q.value && (p.at == q.at || matchPattern(p.value, m_Constant())))
    return true;
  if (p.isTensor() || q.isTensor() || p.value.getType() != q.value.getType())
    return false;
  if (auto x = constantAt(p))
    return constantAt(q) == x;
  Operation *x = p.value.getDefiningOp(), *y = q.value.getDefiningOp();
  if (!x || !y || x->getName() != y->getName() ||
      x->getAttrDictionary() != y->getAttrDictionary() ||
      x->getNumOperands() != y->getNumOperands() || x->getNumRegions() != 0)
    return false;
  if (auto index = dyn_cast<linalg::IndexOp>(x))
    return p.at[index.getDim()] == q.at[cast<linalg::IndexOp>(y).getDim()];
  for (unsigned i = 0, e = x->getNumOperands(); i < e; ++i)
    if (!equal(operandOf(p, i), operandOf(q, i), depth + 1))
      return false;
  return x->getNumOperands() > 0;
}

bool fsdp::dependsOn(const Point &point, AffineExpr expr, unsigned depth) {
  Point p = settle(point);
  auto involves = [&](AffineExpr where) {
    bool found = !where;
    if (where)
      where.walk([&](AffineExpr part) { found |= part == expr; });
    return found;
  };
  if (p.isTensor() || isa<BlockArgument>(p.value) || depth > maxDepth)
    return depth > maxDepth || llvm::any_of(p.at, involves);
  Operation *op = p.value.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return involves(p.at[index.getDim()]);
  if (isa<tensor::ExtractOp>(op))
    return llvm::any_of(p.at, involves);
  for (unsigned i = 0, e = op->getNumOperands(); i < e; ++i)
    if (dependsOn(operandOf(p, i), expr, depth + 1))
      return true;
  return false;
}

Point fsdp::substitute(Point point, AffineExpr from, AffineExpr to) {
  for (AffineExpr &expr : point.at)
    if (expr)
      expr = expr.replace(from, to);
  return point;
}

/// If a body yields out + term or max(out, term), returns the term. Otherwise returns null.
static Value combinedTerm(linalg::GenericOp op, Reduction::Kind kind, unsigned result) {
  Operation *combiner = op.getBody()->getTerminator()->getOperand(result).getDefiningOp();
  bool fits = kind == Reduction::Sum
                  ? isa_and_nonnull<arith::AddFOp, arith::AddIOp>(combiner)
                  : isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(combiner);
  if (!fits)
    return nullptr;
  BlockArgument out = op.getRegionOutputArgs()[result];
  if (combiner->getOperand(0) == out && combiner->getOperand(1) != out)
    return combiner->getOperand(1);
  return combiner->getOperand(1) == out ? combiner->getOperand(0) : Value();
}

std::optional<Reduction> fsdp::matchReduction(const Point &point, Reduction::Kind kind) {
  Point p = settle(point);
  auto op = p.isTensor() ? p.value.getDefiningOp<linalg::GenericOp>() : nullptr;
  if (!op || op.getNumReductionLoops() == 0)
    return std::nullopt;
  unsigned result = cast<OpResult>(p.value).getResultNumber();
  Value term = combinedTerm(op, kind, result);
  TypedAttr init = uniformConstant(op.getDpsInits()[result]);
  auto loops = loopsAt(op.getIndexingMapsArray()[op.getNumDpsInputs() + result], p.at);
  if (!term || !init || !loops)
    return std::nullopt;
  if (auto real = dyn_cast<FloatAttr>(init)) {
    APFloat value = real.getValue();
    bool neutral = kind == Reduction::Sum
                       ? value.isZero()
                       : value.isNegative() && (value.isInfinity() || value.isLargest());
    if (!neutral)
      return std::nullopt;
  } else if (kind != Reduction::Sum || !cast<IntegerAttr>(init).getValue().isZero()) {
    return std::nullopt;
  }
  Reduction reduction{kind, {}, {}, op};
  // Create new symbols, because different reductions of a formula must have different symbols.
  static std::atomic<unsigned> nextSymbol{0};
  for (auto [loop, iterator] : llvm::zip_equal(*loops, op.getIteratorTypesArray())) {
    if (loop)
      continue;
    if (iterator != utils::IteratorType::reduction)
      return std::nullopt;
    loop = getAffineSymbolExpr(nextSymbol++, op.getContext());
    reduction.symbols.push_back(loop);
  }
  reduction.term = {term, *loops};
  return reduction;
}
