//===- MaskEvaluator.cpp - Whether each row keeps a key ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Evaluates mask_mod at single positions (b, h, i, j). The region may compute with indices and with
// elements of constant tables, including tables that elementwise ops compute from constants.
//
//   ids = [7 7 7 3 3]     j <= i and ids[i] == ids[j]     i = 3:  j = 3 is kept, for any ids
//
// Elements of other tensors are unknown, but each element equals itself: if i = j, `ids[b, i]` and
// `ids[b, j]` are the same element. For example, a causal mask of packed documents keeps a key in
// every row. To compare unknown values, the class gives them numbers. Two unknown values have the
// same number if equal ops compute the values from equal operands.
//
//===----------------------------------------------------------------------===//

#include "Raise/ConstantElements.h"
#include "Raise/ScoreFunctions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <map>

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The value of a scalar: an integer (with 64 bits if the scalar is an index), a float, or unknown.
/// Two unknown values with the same `number` are equal.
struct MaskValue {
  std::optional<APInt> integer;
  std::optional<APFloat> real;
  std::optional<unsigned> number = std::nullopt;
};

class MaskEvaluator {
public:
  explicit MaskEvaluator(AttentionOp op) : op(op), body(op.getMaskMod().front()) {}

  /// Returns the result of mask_mod at a position, or nothing if it depends on unknown data.
  std::optional<bool> evaluate(ArrayRef<int64_t> position);
  /// Returns whether mask_mod reads its argument number `i`, where the arguments are (b, h, i, j).
  bool uses(unsigned i) { return !body.getArgument(i).use_empty(); }

private:
  MaskValue compute(Operation &o);
  MaskValue compare(Operation &o);
  MaskValue numberUnknown(Operation &o);
  bool areSame(Value a, Value b) {
    std::optional<unsigned> number = values[a].number;
    return number && number == values[b].number;
  }
  MaskValue read(tensor::ExtractOp read);
  static MaskValue fromAttribute(Attribute value);
  const APInt *integer(Value v) {
    MaskValue &known = values[v];
    return known.integer ? &*known.integer : nullptr;
  }

  AttentionOp op;
  Block &body;
  DenseMap<Value, MaskValue> values;
  /// Numbers of unknown values. The key consists of the name, the attributes, the result type and
  /// the operands of the op that computes the value.
  std::map<std::vector<uint64_t>, unsigned> numbers;
};
} // namespace

/// Returns an unknown value whose number is the same for all equal ops on the same operands. If an
/// operand is unknown and has no number, the returned value has no number either.
MaskValue MaskEvaluator::numberUnknown(Operation &o) {
  auto address = [](const void *p) { return reinterpret_cast<uint64_t>(p); };
  std::vector<uint64_t> key{address(o.getName().getAsOpaquePointer()),
                            address(o.getAttrDictionary().getAsOpaquePointer()),
                            address(o.getResult(0).getType().getAsOpaquePointer())};
  for (Value operand : o.getOperands()) {
    if (isa<RankedTensorType>(operand.getType())) {
      Value capture = op.getCaptures()[cast<BlockArgument>(operand).getArgNumber() - 4];
      key.insert(key.end(), {0, address(capture.getAsOpaquePointer())});
      continue;
    }
    const MaskValue &known = values[operand];
    std::optional<APInt> bits =
        known.real ? std::optional(known.real->bitcastToAPInt()) : known.integer;
    if (bits ? bits->getBitWidth() > 64 : !known.number)
      return {};
    key.insert(key.end(), {bits ? uint64_t(1) : 2, bits ? bits->getZExtValue() : *known.number});
  }
  return {{}, {}, numbers.try_emplace(std::move(key), numbers.size()).first->second};
}

MaskValue MaskEvaluator::fromAttribute(Attribute value) {
  if (auto integer = dyn_cast_or_null<IntegerAttr>(value))
    return {integer.getValue(), {}};
  if (auto real = dyn_cast_or_null<FloatAttr>(value))
    return {{}, real.getValue()};
  return {};
}

MaskValue MaskEvaluator::read(tensor::ExtractOp read) {
  SmallVector<int64_t> at;
  for (Value index : read.getIndices()) {
    const APInt *known = integer(index);
    if (!known)
      return {};
    at.push_back(known->getSExtValue());
  }
  return fromAttribute(
      elementAt(op.getCaptures()[cast<BlockArgument>(read.getTensor()).getArgNumber() - 4], at,
                /*throughBodies=*/true));
}

MaskValue MaskEvaluator::compare(Operation &o) {
  MaskValue &a = values[o.getOperand(0)], &b = values[o.getOperand(1)];
  std::optional<bool> holds;
  if (auto cmp = dyn_cast<arith::CmpIOp>(o); cmp && a.integer && b.integer)
    holds = arith::applyCmpPredicate(cmp.getPredicate(), *a.integer, *b.integer);
  if (auto cmp = dyn_cast<arith::CmpFOp>(o); cmp && a.real && b.real)
    holds = arith::applyCmpPredicate(cmp.getPredicate(), *a.real, *b.real);
  if (auto cmp = dyn_cast<arith::CmpIOp>(o); cmp && areSame(o.getOperand(0), o.getOperand(1)))
    holds = arith::applyCmpPredicate(cmp.getPredicate(), APInt(1, 0), APInt(1, 0));
  return holds ? MaskValue{APInt(1, *holds), {}} : MaskValue();
}

/// Returns the result of an integer op with two operands. Returns nothing if the result is
/// undefined or the op is not supported.
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

MaskValue MaskEvaluator::compute(Operation &o) {
  Attribute constant;
  if (matchPattern(&o, m_Constant(&constant)))
    return fromAttribute(constant);
  if (auto extract = dyn_cast<tensor::ExtractOp>(o))
    return read(extract);
  if (isa<arith::CmpIOp, arith::CmpFOp>(o))
    return compare(o);
  if (isa<arith::ExtFOp, arith::TruncFOp>(o)) {
    MaskValue converted = values[o.getOperand(0)];
    bool isInexact;
    if (converted.real)
      converted.real->convert(cast<FloatType>(o.getResult(0).getType()).getFloatSemantics(),
                              APFloat::rmNearestTiesToEven, &isInexact);
    return converted;
  }
  const APInt *a = o.getNumOperands() ? integer(o.getOperand(0)) : nullptr;
  if (isa<arith::SelectOp>(o))
    return a ? values[o.getOperand(a->isZero() ? 2 : 1)] : MaskValue();
  const APInt *b = o.getNumOperands() == 2 ? integer(o.getOperand(1)) : nullptr;
  if (isa<arith::SubIOp, arith::XOrIOp>(o) && areSame(o.getOperand(0), o.getOperand(1))) {
    Type type = o.getResult(0).getType();
    return {APInt(type.isIndex() ? 64 : type.getIntOrFloatBitWidth(), 0), {}};
  }
  // A known operand may determine the result although the other operand is unknown.
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
  return b ? MaskValue{combine(o, *a, *b), {}} : MaskValue();
}

std::optional<bool> MaskEvaluator::evaluate(ArrayRef<int64_t> position) {
  values.clear();
  numbers.clear();
  for (auto [argument, at] : llvm::zip(body.getArguments(), position))
    values[argument] = {APInt(64, at), {}};
  for (Operation &o : body.without_terminator()) {
    // Assign to `values` only after compute(), which reads `values`.
    MaskValue result = compute(o);
    if (!result.integer && !result.real && !result.number)
      result = numberUnknown(o);
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
        // Find a key that the row keeps. First try the key on the diagonal, then the key that was
        // found for the previous row, then all keys.
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
