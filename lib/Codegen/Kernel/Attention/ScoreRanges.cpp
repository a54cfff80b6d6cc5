//===- ScoreRanges.cpp - Ranges and staging of score functions --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Ranges: The extents determine the ranges of b, h, q and k. The range of an op's result is
//     known (inferResultRange) if the ranges of all operands are known and if 32-bit arithmetic
//     computes the same result as 64-bit arithmetic. The ranges of values read from memory are
//     unknown.
//  2. Staging: A value is computed in advance and stored under two conditions: another value that
//     depends on more arguments reads the value, and loading the value is cheaper than recomputing
//     it.
//
//===----------------------------------------------------------------------===//

#include "ScoreFunction.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::tile;

ScoreFunction::ScoreFunction(Region &region, unsigned scores, ArrayRef<int64_t> extents,
                             ArrayRef<Captured> captures)
    : region(region), scores(scores), extents(extents), captures(captures), dependences(region) {
  if (empty())
    return;
  findRanges();
  stage();
}

/// Values in the range from -farthest to farthest - 1 are computed in 32 bits.
static constexpr int64_t farthest = INT64_C(1) << 31;

std::optional<IntegerRange> ScoreFunction::rangeOf(Value value) const {
  auto found = ranges.find(value);
  return found == ranges.end() ? std::nullopt : std::optional(found->second);
}

/// Returns false if `op` is an unsigned op or a shift whose result in 32 bits may differ from its
/// result in 64 bits. `in` contains the ranges of the operands.
static bool isSameIn32Bits(Operation *op, ArrayRef<IntegerRange> in) {
  bool isShift = isa<arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp>(op);
  bool isUnsigned =
      isShift ||
      isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp, arith::ExtUIOp, arith::IndexCastUIOp>(
          op);
  return !(isUnsigned && llvm::any_of(in, [](IntegerRange r) { return r.lo < 0; })) &&
         !(isShift && in[1].hi > 31);
}

std::optional<IntegerRange> ScoreFunction::rangeOf(Operation *op) const {
  APInt constant;
  if (matchPattern(op, m_ConstantInt(&constant)))
    return constant.getSignificantBits() <= 32
               ? std::optional(IntegerRange::of(constant.getSExtValue()))
               : std::nullopt;
  if (isa<tensor::ExtractOp>(op))
    return std::nullopt;
  SmallVector<IntegerRange> in;
  for (Value operand : op->getOperands()) {
    bool isCondition = isa<arith::SelectOp>(op) && operand == op->getOperand(0);
    auto range = isCondition ? std::optional(IntegerRange{0, 1}) : rangeOf(operand);
    if (!range)
      return std::nullopt;
    in.push_back(*range);
  }
  return isSameIn32Bits(op, in) ? std::optional(inferResultRange(op, in)) : std::nullopt;
}

void ScoreFunction::findRanges() {
  Block &body = region.front();
  for (unsigned i = 0; i < 4; ++i)
    if (extents[i] < farthest)
      ranges[body.getArgument(scores + i)] = IntegerRange::below(extents[i]);
  for (Operation &op : body.without_terminator()) {
    if (op.getNumResults() != 1 || !op.getResult(0).getType().isIntOrIndex() ||
        op.getResult(0).getType().isInteger(1))
      continue;
    if (auto range = rangeOf(&op); range && range->within(-farthest, farthest - 1))
      ranges.insert({op.getResult(0), *range});
  }
}

/// Returns true if recomputing `value` is cheaper than loading it from a buffer. This holds for
/// arguments, for values that depend only on b and h, and for sums, differences and integer casts
/// of cheap values.
bool ScoreFunction::isCheap(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op || dependenceOf(value) == Dependence::None)
    return true;
  return isa<arith::AddIOp, arith::SubIOp, arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
             arith::TruncIOp>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isCheap(operand); });
}

void ScoreFunction::stage() {
  llvm::SmallSetVector<Value, 8> all[3];
  // Marks `value` as stored, because another value reads it. If recomputing `value` is cheap,
  // instead marks the values from which `value` is recomputed.
  std::function<void(Value)> require = [&](Value value) {
    Dependence own = dependenceOf(value);
    Operation *op = value.getDefiningOp();
    if (!op || own == Dependence::Both || isa<arith::ConstantOp>(op))
      return;
    if (own == Dependence::None || !isCheap(value)) {
      all[static_cast<unsigned>(own)].insert(value);
      return;
    }
    llvm::for_each(op->getOperands(), require);
  };
  for (Operation &op : region.front()) {
    // An op without results is a contribution, whose operands may depend on any arguments.
    Dependence by = op.getNumResults() ? dependences.of(&op) : Dependence::Both;
    for (Value operand : op.getOperands())
      if (!isa<RankedTensorType>(operand.getType()) &&
          (by == Dependence::Both ||
           (by != Dependence::None && dependenceOf(operand) == Dependence::None)))
        require(operand);
  }
  units = all[0].takeVector();
  rows = all[1].takeVector();
  columns = all[2].takeVector();
}

bool ScoreFunction::isNarrow(Value value) const {
  Type type = value.getType();
  return (type.isIndex() || type.isInteger(64)) && ranges.contains(value);
}

Type ScoreFunction::typeOf(Value value) const {
  Type type = value.getType();
  if (isNarrow(value))
    return IntegerType::get(type.getContext(), 32);
  return type.isIndex() ? Type(IntegerType::get(type.getContext(), 64)) : type;
}
