//===- ScoreFunction.cpp - Score functions on fragments ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %d = arith.subi %k, %q : index          %k' = [column ..] : vector<16xi32>
//   %x = arith.sitofp (cast %d)       =>    %d' = arith.subi %k', splat q : vector<16xi32>
//   %y = arith.mulf %slope, %x              %x' = arith.sitofp %d';  %y' = splat slope · %x'
//
// To emit a value, emit() clones the ops from which the value is computed, operands before their
// users. A clone stays scalar if its operands are the same in all lanes. A load from a captured
// tensor becomes a vector load if the last index is k and no other index depends on the lane. It
// becomes a scalar load if no index depends on the lane. In all other cases, it becomes a gather.
//
//===----------------------------------------------------------------------===//

#include "ScoreFunction.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::tile;

/// Returns true if `op` is a cast between integer types. Such a cast does not change a value whose
/// range is known.
static bool isIntegerCast(Operation *op) {
  return isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp,
             arith::TruncIOp>(op);
}

static Value toWidth(CodeBuilder &b, Value value, unsigned bits, bool isSigned = true) {
  unsigned from = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  Type type = withElement(value.getType(), b.getIntegerType(bits));
  if (from == bits)
    return value;
  if (from > bits)
    return arith::TruncIOp::create(b, b.loc, type, value);
  if (isSigned)
    return arith::ExtSIOp::create(b, b.loc, type, value);
  return arith::ExtUIOp::create(b, b.loc, type, value);
}

/// If `original` is an index or a 64-bit integer, extends its emitted value `emitted` to 64 bits.
/// Otherwise returns `emitted` unchanged.
Value ScoreFunction::widened(CodeBuilder &b, Value emitted, Value original) const {
  Type type = original.getType();
  return type.isIndex() || type.isInteger(64) ? toWidth(b, emitted, 64) : emitted;
}

/// Returns true if `op` can compute in 32 bits. It must be one of the ops below, and 32 bits must
/// hold all of its operands and results that are 64-bit integers or indices.
bool ScoreFunction::computesNarrow(Operation *op) const {
  if (!isa<arith::ConstantOp, arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MinSIOp,
           arith::MaxSIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp, arith::RemSIOp,
           arith::DivUIOp, arith::RemUIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp,
           arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp, arith::SelectOp, arith::CmpIOp,
           arith::SIToFPOp>(op))
    return false;
  auto fits = [&](Value v) {
    return !(v.getType().isIndex() || v.getType().isInteger(64)) || isNarrow(v);
  };
  return llvm::all_of(op->getOperands(), fits) && llvm::all_of(op->getResults(), fits);
}

Value ScoreFunction::emitArgument(CodeBuilder &b, BlockArgument argument, const Site &site) const {
  unsigned number = argument.getArgNumber();
  if (number < scores)
    return site.scores[number];
  unsigned bits = isNarrow(argument) ? 32 : 64;
  switch (number - scores) {
  case 0:
    return toWidth(b, site.b, bits);
  case 1:
    return toWidth(b, site.h, bits);
  case 2:
    return toWidth(b, site.q, bits);
  }
  Value column = toWidth(b, site.column, bits);
  if (!site.lanes)
    return column;
  column = arith::AddIOp::create(b, b.loc, b.splat(column, site.lanes),
                                 b.iota(site.lanes, b.getIntegerType(bits)));
  if (site.lastColumn)
    column = arith::MinSIOp::create(b, b.loc, column,
                                    b.splat(toWidth(b, site.lastColumn, bits), site.lanes));
  return column;
}

Value ScoreFunction::emitCast(CodeBuilder &b, Operation *op, Value operand,
                              const Site &site) const {
  Value source = op->getOperand(0), result = op->getResult(0);
  unsigned bits = typeOf(result).getIntOrFloatBitWidth();
  // The cast does not change the value, because the ranges of the operand and the result are known.
  if (rangeOf(source) && rangeOf(result))
    return toWidth(b, operand, bits);
  return toWidth(b, widened(b, operand, source), bits,
                 !isa<arith::ExtUIOp, arith::IndexCastUIOp>(op));
}

/// Emits one term of emitPosition(): the index times its stride.
Value ScoreFunction::emitIndex(CodeBuilder &b, Value index, int64_t stride, const Site &site,
                               Values &known, bool narrow) const {
  Value value = toWidth(b, emit(b, index, site, known), narrow ? 32 : 64);
  Type type = value.getType();
  TypedAttr factor = b.getIntegerAttr(getElementTypeOrSelf(type), stride);
  if (auto vector = dyn_cast<VectorType>(type))
    factor = DenseElementsAttr::get(vector, Attribute(factor));
  return b.createOrFold<arith::MulIOp>(b.loc, value, arith::ConstantOp::create(b, b.loc, factor));
}

Value ScoreFunction::emitPosition(CodeBuilder &b, RankedTensorType type, ValueRange indices,
                                  const Site &site, Values &known) const {
  int64_t stride = 1;
  bool narrow = type.getNumElements() < (INT64_C(1) << 31);
  Value position;
  for (int64_t d = type.getRank() - 1; d >= 0; --d) {
    Value term = emitIndex(b, indices[d], stride, site, known, narrow);
    stride *= type.getDimSize(d);
    if (!position) {
      position = term;
      continue;
    }
    if (isa<VectorType>(position.getType()) && !isa<VectorType>(term.getType()))
      term = b.splat(term, site.lanes);
    if (isa<VectorType>(term.getType()) && !isa<VectorType>(position.getType()))
      position = b.splat(position, site.lanes);
    position = b.add(position, term);
  }
  return position ? position : b.constant(0);
}

Value ScoreFunction::emitExtract(CodeBuilder &b, Operation *op, const Site &site,
                                 Values &known) const {
  auto extract = cast<tensor::ExtractOp>(op);
  unsigned number = cast<BlockArgument>(extract.getTensor()).getArgNumber() - scores - 4;
  const Captured &captured = captures[number];
  Type element = captured.type.getElementType();
  ValueRange indices = extract.getIndices();
  // The lanes read consecutive elements in memory if the last index is k and no other index depends
  // on k.
  bool along = site.lanes && !indices.empty() && indices.back() == keyArgument() &&
               llvm::none_of(indices.drop_back(), [&](Value i) {
                 return (dependenceOf(i) | Dependence::Row) == Dependence::Both;
               });
  if (!along) {
    Value position = emitPosition(b, captured.type, indices, site, known);
    if (isa<VectorType>(position.getType()))
      return b.gather(element, captured.place, position);
    return b.load(element, b.shift(captured.place, toWidth(b, position, 64)));
  }
  SmallVector<int64_t> shape(captured.type.getShape());
  Value row = b.constant(0);
  int64_t stride = 1;
  for (int64_t d = captured.type.getRank() - 1; d >= 0; --d) {
    Value index = d + 1 == captured.type.getRank()
                      ? site.column
                      : toWidth(b, emit(b, indices[d], site, known), 64);
    row = b.add(row, b.mul(index, stride));
    stride *= shape[d];
  }
  Value mask;
  if (site.lastColumn)
    mask = b.maskBelow(site.lanes, b.add(b.sub(site.lastColumn, site.column), 1));
  return b.load(VectorType::get({site.lanes}, element), b.shift(captured.place, row), mask);
}

void ScoreFunction::emitOp(CodeBuilder &b, Operation *op, const Site &site, Values &known) const {
  if (isa<tensor::ExtractOp>(op)) {
    known[op->getResult(0)] = emitExtract(b, op, site, known);
    return;
  }
  if (auto random = dyn_cast<RandomElementOp>(op)) {
    known[random] = emitRandom(b, random, site, known);
    return;
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(emit(b, operand, site, known));
  if (isIntegerCast(op)) {
    known[op->getResult(0)] = emitCast(b, op, operands[0], site);
    return;
  }
  bool narrow = computesNarrow(op);
  bool wide = llvm::any_of(operands, [](Value v) { return isa<VectorType>(v.getType()); });
  for (auto [value, original] : llvm::zip_equal(operands, op->getOperands())) {
    if (!narrow)
      value = widened(b, value, original);
    if (wide && !isa<VectorType>(value.getType()))
      value = b.splat(value, site.lanes);
  }
  auto is64 = [](Type type) { return type.isIndex() || type.isInteger(64); };
  SmallVector<Type> types;
  for (Value result : op->getResults()) {
    Type type = result.getType();
    if (is64(type))
      type = b.getIntegerType(narrow ? 32 : 64);
    types.push_back(wide ? Type(VectorType::get({site.lanes}, type)) : type);
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    TypedAttr value = constant.getValue();
    if (auto integer = dyn_cast<IntegerAttr>(value))
      value = b.getIntegerAttr(types[0],
                               integer.getValue().sextOrTrunc(types[0].getIntOrFloatBitWidth()));
    known[constant] = arith::ConstantOp::create(b, b.loc, value);
    return;
  }
  OperationState state(b.loc, op->getName(), operands, types,
                       llvm::to_vector(op->getDiscardableAttrs()));
  state.propertiesAttr = op->getPropertiesAsAttribute();
  Operation *copy = b.create(state);
  for (auto [result, original] : llvm::zip_equal(copy->getResults(), op->getResults()))
    // If the range of a result fits 32 bits, the users of the result expect a value of 32 bits.
    known[original] =
        isNarrow(original) && is64(original.getType()) ? toWidth(b, result, 32) : result;
}

Value ScoreFunction::emit(CodeBuilder &b, Value value, const Site &site, Values &known) const {
  if (Value found = known.lookup(value))
    return found;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return known[value] = emitArgument(b, argument, site);
  emitOp(b, value.getDefiningOp(), site, known);
  return known.lookup(value);
}

void ScoreFunction::emitUnit(CodeBuilder &b, const Site &site, Values &known) const {
  for (Value value : units)
    emit(b, value, site, known);
}
