//===- ScoreRanges.cpp - What values of a score function may be -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Ranges: b, h, q, k lie in their extents; constants, sums, products, quotients,
//     remainders, bitwise operations, shifts, extrema, choices and casts of what has a range
//     have one. Anything else (what is read from memory) has none.
//  2. Staged: what of one dependence a value of another reads, unless it is as cheap
//     to compute as to load.
//
//===----------------------------------------------------------------------===//

#include "ScoreFunction.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

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

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// Beyond these nothing is known: no product of two leaves 64 bits.
static constexpr int64_t farthest = INT64_C(1) << 31;

static std::optional<std::pair<int64_t, int64_t>> within(int64_t lo, int64_t hi) {
  if (lo < -farthest || hi >= farthest)
    return std::nullopt;
  return std::pair(lo, hi);
}

std::optional<ScoreFunction::Range> ScoreFunction::rangeOf(Value value) const {
  auto found = ranges.find(value);
  return found == ranges.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ScoreFunction::Range> ScoreFunction::rangeOf(Operation *op) const {
  IntegerAttr attr;
  if (matchPattern(op, m_Constant(&attr)) && attr.getValue().getSignificantBits() <= 32)
    return within(attr.getInt(), attr.getInt());
  if (isa<tensor::ExtractOp, arith::CmpIOp, arith::CmpFOp>(op))
    return std::nullopt;
  SmallVector<Range> in;
  for (Value operand : op->getOperands().drop_front(isa<arith::SelectOp>(op))) {
    auto range = rangeOf(operand);
    if (!range)
      return std::nullopt;
    in.push_back(*range);
  }
  auto corners = [&](function_ref<int64_t(int64_t, int64_t)> f) {
    auto all = {f(in[0].first, in[1].first), f(in[0].first, in[1].second),
                f(in[0].second, in[1].first), f(in[0].second, in[1].second)};
    return within(std::min(all), std::max(all));
  };
  bool positive = llvm::all_of(in, [](Range r) { return r.first >= 0; });
  return TypeSwitch<Operation *, std::optional<Range>>(op)
      .Case([&](arith::AddIOp) { return corners([](int64_t a, int64_t b) { return a + b; }); })
      .Case([&](arith::SubIOp) { return corners([](int64_t a, int64_t b) { return a - b; }); })
      .Case([&](arith::MulIOp) { return corners([](int64_t a, int64_t b) { return a * b; }); })
      .Case([&](arith::MinSIOp) {
        return corners([](int64_t a, int64_t b) { return std::min(a, b); });
      })
      .Case([&](arith::MaxSIOp) {
        return corners([](int64_t a, int64_t b) { return std::max(a, b); });
      })
      .Case<arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(
          [&](auto) -> std::optional<Range> {
            if (in[1].first <= 0)
              return std::nullopt;
            return within(std::min<int64_t>(in[0].first, 0), std::max<int64_t>(in[0].second, 0));
          })
      .Case<arith::DivUIOp, arith::ShRUIOp, arith::ShRSIOp>([&](auto) -> std::optional<Range> {
        if (!positive)
          return std::nullopt;
        return within(0, in[0].second);
      })
      .Case([&](arith::RemSIOp) -> std::optional<Range> {
        if (in[1].first <= 0)
          return std::nullopt;
        return within(in[0].first < 0 ? 1 - in[1].second : 0, in[1].second - 1);
      })
      .Case([&](arith::RemUIOp) -> std::optional<Range> {
        if (!positive)
          return std::nullopt;
        return within(0, std::max<int64_t>(in[1].second - 1, 0));
      })
      .Case([&](arith::AndIOp) -> std::optional<Range> {
        if (!positive)
          return std::nullopt;
        return within(0, std::min(in[0].second, in[1].second));
      })
      .Case<arith::OrIOp, arith::XOrIOp>([&](auto) -> std::optional<Range> {
        if (!positive)
          return std::nullopt;
        return within(0, int64_t(llvm::NextPowerOf2(std::max(in[0].second, in[1].second))) - 1);
      })
      .Case([&](arith::ShLIOp) -> std::optional<Range> {
        if (!positive || in[1].second > 31)
          return std::nullopt;
        return within(0, in[0].second << in[1].second);
      })
      .Case([&](arith::SelectOp) {
        return within(std::min(in[0].first, in[1].first), std::max(in[0].second, in[1].second));
      })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>([&](auto) -> std::optional<Range> {
        return in[0]; // where it fits
      })
      .Case<arith::IndexCastUIOp, arith::ExtUIOp>([&](auto) -> std::optional<Range> {
        if (!positive)
          return std::nullopt;
        return in[0];
      })
      .Default([](Operation *) { return std::nullopt; });
}

void ScoreFunction::findRanges() {
  Block &body = region.front();
  for (unsigned i = 0; i < 4; ++i)
    if (extents[i] < farthest)
      ranges[body.getArgument(scores + i)] = {0, std::max<int64_t>(extents[i] - 1, 0)};
  for (Operation &op : body.without_terminator()) {
    if (op.getNumResults() != 1 || !op.getResult(0).getType().isIntOrIndex() ||
        op.getResult(0).getType().isInteger(1))
      continue;
    Type type = op.getResult(0).getType();
    unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    auto range = rangeOf(&op);
    int64_t limit = INT64_C(1) << std::min(bits - 1, 31u); // nothing wraps around
    if (range && range->first >= -limit && range->second < limit)
      ranges.insert({op.getResult(0), *range});
  }
}

//===----------------------------------------------------------------------===//
// What is kept
//===----------------------------------------------------------------------===//

/// Additions and casts of an argument.
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
  // What an element reads: kept, or computed again from what is kept.
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
    // What is contributed, and where, may be read at any level.
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
