//===- MaskedRows.cpp - Analysis of fully masked rows -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two analyses that decide whether a mask with finite numbers may become mask_mod: whether
// score_mod may yield such numbers, and, by evaluation, whether mask_mod keeps a key in every row.
// mask_mod may compute with indices and with elements of constant tables.
//
//===----------------------------------------------------------------------===//

#include "Raise/ScoreFunctions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

// Looks for finite constants of at least 1e4 in magnitude, which may be added or subtracted, for
// constant tables with such elements or unknown values, and for float arguments that are not
// parameters. (-inf is always a mask.)
bool fsdp::mayMask(AttentionOp op) {
  auto isLow = [](const APFloat &v) {
    return v.isFinite() && std::abs(v.convertToDouble()) >= -masked;
  };
  for (auto constant : op.getScoreMod().getOps<arith::ConstantOp>())
    if (auto value = dyn_cast<FloatAttr>(constant.getValue()); value && isLow(value.getValue()))
      return true;
  return llvm::any_of(llvm::enumerate(op.getCaptures()), [&](auto numbered) {
    Value capture = numbered.value();
    if (op.getScoreMod().getArgument(5 + numbered.index()).use_empty())
      // mask_mod or weight_mod reads the captured tensor.
      return false;
    auto argument = dyn_cast<BlockArgument>(capture);
    auto func = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
    DenseFPElementsAttr table;
    if (matchPattern(capture, m_Constant(&table)))
      return llvm::any_of(table.getValues<APFloat>(), isLow);
    return isa<FloatType>(getElementTypeOrSelf(capture.getType())) &&
           (capture.getDefiningOp<arith::ConstantOp>() ||
            (func && !func.getArgAttr(argument.getArgNumber(), FSDPDialect::paramAttr)));
  });
}

/// Returns the element at `at` of a constant table, through views and static slices; null if the
/// table is not constant.
static Attribute elementAt(Value table, SmallVector<int64_t> at) {
  for (Operation *op = table.getDefiningOp(); op; op = table.getDefiningOp()) {
    DenseElementsAttr elements;
    int64_t flat = 0;
    for (auto [coordinate, extent] :
         llvm::zip_equal(at, cast<RankedTensorType>(table.getType()).getShape())) {
      if (coordinate < 0 || coordinate >= extent)
        return {};
      flat = flat * extent + coordinate;
    }
    if (matchPattern(op, m_Constant(&elements)))
      return elements.getValues<Attribute>()[flat];
    bool isView = isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
    auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
    if (!isView &&
        (!slice ||
         slice.getStaticOffsets().size() != static_cast<size_t>(slice.getSourceType().getRank()) ||
         llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic) ||
         llvm::any_of(slice.getStaticStrides(), ShapedType::isDynamic)))
      return {};
    table = op->getOperand(0);
    ArrayRef<int64_t> shape = cast<RankedTensorType>(table.getType()).getShape();
    SmallVector<int64_t> source(shape.size());
    if (isView)
      for (unsigned d = shape.size(); d-- > 0; flat /= shape[d])
        source[d] = flat % shape[d];
    for (unsigned d = 0, next = 0; slice && d < shape.size(); ++d)
      source[d] = slice.getStaticOffsets()[d] +
                  (slice.getDroppedDims().test(d) ? 0 : at[next++] * slice.getStaticStrides()[d]);
    at = source;
  }
  return {};
}

MaskTable fsdp::classifyTable(Value table, double factor) {
  SmallVector<int64_t> first(cast<RankedTensorType>(table.getType()).getRank(), 0);
  if (!isa_and_nonnull<FloatAttr>(elementAt(table, first)))
    return MaskTable::None;
  while (!matchPattern(table, m_Constant()))
    table = table.getDefiningOp()->getOperand(0); // a view or a slice
  DenseFPElementsAttr elements;
  if (!matchPattern(table, m_Constant(&elements)))
    return MaskTable::None;
  bool masksAny = false, isFinite = false;
  for (const APFloat &element : elements.getValues<APFloat>()) {
    if (element.isZero())
      continue;
    if (!(element.convertToDouble() * factor <= masked))
      return MaskTable::None;
    masksAny = true;
    isFinite |= element.isFinite();
  }
  return !masksAny ? MaskTable::None : isFinite ? MaskTable::Finite : MaskTable::Infinite;
}

DenseElementsAttr fsdp::keptElements(Value table) {
  auto type = cast<RankedTensorType>(table.getType());
  SmallVector<bool> kept(type.getNumElements());
  for (int64_t flat = 0, e = type.getNumElements(); flat < e; ++flat) {
    SmallVector<int64_t> at(type.getRank());
    int64_t rest = flat;
    for (int64_t d = type.getRank(); d-- > 0; rest /= type.getDimSize(d))
      at[d] = rest % type.getDimSize(d);
    kept[flat] = cast<FloatAttr>(elementAt(table, at)).getValue().isZero();
  }
  auto bit = IntegerType::get(table.getContext(), 1);
  return DenseElementsAttr::get(RankedTensorType::get(type.getShape(), bit), ArrayRef<bool>(kept));
}

//===----------------------------------------------------------------------===//
// Evaluation of mask_mod
//===----------------------------------------------------------------------===//

namespace {
/// An integer (64 bits for an index) or a float. If both are empty, the value is not known.
struct Scalar {
  std::optional<APInt> integer;
  std::optional<APFloat> real;
};

/// Evaluates mask_mod at one position (b, h, i, j) at a time.
class MaskEvaluator {
public:
  explicit MaskEvaluator(AttentionOp op) : op(op), body(op.getMaskMod().front()) {}

  /// Returns the condition, or nothing if it depends on data that is not constant.
  std::optional<bool> evaluate(ArrayRef<int64_t> position);
  /// Returns whether mask_mod reads index `i` of b, h, i and j.
  bool uses(unsigned i) { return !body.getArgument(i).use_empty(); }

private:
  Scalar compute(Operation &o);
  Scalar compare(Operation &o);
  Scalar read(tensor::ExtractOp read);
  static Scalar fromAttribute(Attribute value);
  const APInt *integer(Value v) {
    Scalar &known = values[v];
    return known.integer ? &*known.integer : nullptr;
  }

  AttentionOp op;
  Block &body;
  DenseMap<Value, Scalar> values;
};
} // namespace

Scalar MaskEvaluator::fromAttribute(Attribute value) {
  if (auto integer = dyn_cast_or_null<IntegerAttr>(value))
    return {integer.getValue(), {}};
  if (auto real = dyn_cast_or_null<FloatAttr>(value))
    return {{}, real.getValue()};
  return {};
}

Scalar MaskEvaluator::read(tensor::ExtractOp read) {
  SmallVector<int64_t> at;
  for (Value index : read.getIndices()) {
    const APInt *known = integer(index);
    if (!known)
      return {};
    at.push_back(known->getSExtValue());
  }
  return fromAttribute(
      elementAt(op.getCaptures()[cast<BlockArgument>(read.getTensor()).getArgNumber() - 4], at));
}

Scalar MaskEvaluator::compare(Operation &o) {
  Scalar &a = values[o.getOperand(0)], &b = values[o.getOperand(1)];
  std::optional<bool> holds;
  if (auto cmp = dyn_cast<arith::CmpIOp>(o); cmp && a.integer && b.integer)
    holds = arith::applyCmpPredicate(cmp.getPredicate(), *a.integer, *b.integer);
  if (auto cmp = dyn_cast<arith::CmpFOp>(o); cmp && a.real && b.real)
    holds = arith::applyCmpPredicate(cmp.getPredicate(), *a.real, *b.real);
  return holds ? Scalar{APInt(1, *holds), {}} : Scalar();
}

/// Returns the result of an integer op with two operands; nothing if the result is undefined or the
/// op is not supported here.
static std::optional<APInt> combine(Operation &o, const APInt &a, const APInt &b) {
  if (a.getBitWidth() != b.getBitWidth())
    return std::nullopt;
  bool canDivide = !b.isZero() && !(a.isMinSignedValue() && b.isAllOnes());
  return llvm::TypeSwitch<Operation &, std::optional<APInt>>(o)
      .Case<arith::AddIOp>([&](auto) { return a + b; })
      .Case<arith::SubIOp>([&](auto) { return a - b; })
      .Case<arith::MulIOp>([&](auto) { return a * b; })
      .Case<arith::AndIOp>([&](auto) { return a & b; })
      .Case<arith::OrIOp>([&](auto) { return a | b; })
      .Case<arith::XOrIOp>([&](auto) { return a ^ b; })
      .Case<arith::MinSIOp>([&](auto) { return llvm::APIntOps::smin(a, b); })
      .Case<arith::MaxSIOp>([&](auto) { return llvm::APIntOps::smax(a, b); })
      .Case<arith::MinUIOp>([&](auto) { return llvm::APIntOps::umin(a, b); })
      .Case<arith::MaxUIOp>([&](auto) { return llvm::APIntOps::umax(a, b); })
      .Case<arith::DivSIOp, arith::RemSIOp, arith::DivUIOp, arith::RemUIOp>(
          [&](auto) -> std::optional<APInt> {
            if (!canDivide)
              return std::nullopt;
            return isa<arith::DivSIOp>(o)   ? a.sdiv(b)
                   : isa<arith::RemSIOp>(o) ? a.srem(b)
                   : isa<arith::DivUIOp>(o) ? a.udiv(b)
                                            : a.urem(b);
          })
      .Default([](Operation &) { return std::nullopt; });
}

Scalar MaskEvaluator::compute(Operation &o) {
  Attribute constant;
  if (matchPattern(&o, m_Constant(&constant)))
    return fromAttribute(constant);
  if (auto extract = dyn_cast<tensor::ExtractOp>(o))
    return read(extract);
  if (isa<arith::CmpIOp, arith::CmpFOp>(o))
    return compare(o);
  if (isa<arith::ExtFOp, arith::TruncFOp>(o)) {
    Scalar converted = values[o.getOperand(0)];
    bool isInexact;
    if (converted.real)
      converted.real->convert(cast<FloatType>(o.getResult(0).getType()).getFloatSemantics(),
                              APFloat::rmNearestTiesToEven, &isInexact);
    return converted;
  }
  const APInt *a = o.getNumOperands() ? integer(o.getOperand(0)) : nullptr;
  if (isa<arith::SelectOp>(o))
    return a ? values[o.getOperand(a->isZero() ? 2 : 1)] : Scalar();
  const APInt *b = o.getNumOperands() == 2 ? integer(o.getOperand(1)) : nullptr;
  // For `and` and `or`, one known operand may determine the result.
  if (o.getNumOperands() == 2 && o.getResult(0).getType().isInteger(1))
    if (const APInt *known = a ? a : b; known && ((isa<arith::AndIOp>(o) && known->isZero()) ||
                                                  (isa<arith::OrIOp>(o) && !known->isZero())))
      return {*known, {}};
  if (!a)
    return {};
  Type type = o.getResult(0).getType();
  unsigned width = type.isIndex() ? 64 : type.isInteger() ? type.getIntOrFloatBitWidth() : 0;
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(o))
    return {a->sextOrTrunc(width), {}};
  if (isa<arith::IndexCastUIOp, arith::ExtUIOp>(o))
    return {a->zextOrTrunc(width), {}};
  if (isa<math::AbsIOp>(o))
    return {a->abs(), {}};
  if (auto floats = dyn_cast<FloatType>(type); floats && isa<arith::SIToFPOp, arith::UIToFPOp>(o)) {
    APFloat real(floats.getFloatSemantics());
    real.convertFromAPInt(*a, isa<arith::SIToFPOp>(o), APFloat::rmNearestTiesToEven);
    return {{}, real};
  }
  return b ? Scalar{combine(o, *a, *b), {}} : Scalar();
}

std::optional<bool> MaskEvaluator::evaluate(ArrayRef<int64_t> position) {
  values.clear();
  for (auto [argument, at] : llvm::zip(body.getArguments(), position))
    values[argument] = {APInt(64, at), {}};
  for (Operation &o : body.without_terminator()) {
    // Compute first: compute() looks up `values`, which the insertion may rehash.
    Scalar result = compute(o);
    values[o.getResult(0)] = result;
  }
  const APInt *keep = integer(body.getTerminator()->getOperand(0));
  return keep ? std::optional(!keep->isZero()) : std::nullopt;
}

bool fsdp::keepsKeyInEveryRow(AttentionOp op) {
  constexpr int64_t maxEvaluations = int64_t(1) << 20;
  ArrayRef<int64_t> q = cast<RankedTensorType>(op.getQ().getType()).getShape();
  int64_t keys = cast<RankedTensorType>(op.getK().getType()).getDimSize(2), evaluations = 0;
  MaskEvaluator mask(op);
  std::array<int64_t, 3> extents{q[0], q[1], q[2]};
  for (unsigned i = 0; i < extents.size(); ++i)
    if (!mask.uses(i))
      extents[i] = 1;
  for (int64_t b = 0; b < extents[0]; ++b)
    for (int64_t h = 0; h < extents[1]; ++h)
      for (int64_t i = 0, last = 0; i < extents[2]; ++i) {
        // Try the diagonal, then the key that the last row keeps, then all.
        bool found = false;
        for (int64_t n = -2; n < keys && !found; ++n) {
          int64_t j = n == -2 ? std::min(i, keys - 1) : n == -1 ? last : n;
          if (++evaluations > maxEvaluations)
            return false;
          if ((found = mask.evaluate({b, h, i, j}).value_or(false)))
            last = j;
        }
        if (!found)
          return false;
      }
  return true;
}
