//===- IdRanges.cpp - Range analysis of integers in a model -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes ranges by the rules of IntegerRange.h and caches them. A value whose computation may
// overflow has the range of its type. A select with a known condition has the range of the chosen
// branch. If id is in [0, V), for example, `select(id < 0, id + V, id)` has the range of id.
//
// The range of a reduction, such as the index of a maximum, is a fixed point of the reduction's
// body: if a partial result is in the range, the next partial result is in the range too. If no
// fixed point is found, the range is the initial value plus the number of iterations times the
// range of the added term. IdSets.cpp computes unions of intervals.
//
//===----------------------------------------------------------------------===//

#include "Lookups/IdRanges.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

IntegerRange IdRanges::get(Value value) {
  auto [it, fresh] = known.try_emplace(value, IntegerRange::ofType(value.getType()));
  if (!fresh)
    return it->second;
  IntegerRange range = compute(value), bound = IntegerRange::ofType(value.getType());
  if (!range.within(bound))
    // The computation may overflow, so use the range of the type.
    range = bound;
  return known[value] = range;
}

/// If an argument of an attention region is an element of a captured tensor, returns this tensor.
/// If the argument is one of the indices b, h, q and k, returns null and the extent of this index.
static std::pair<Value, int64_t> attentionArgument(AttentionOp op, BlockArgument arg) {
  unsigned own = arg.getParentRegion() == &op.getScoreMod() ? 5 : 4;
  if (arg.getArgNumber() >= own)
    return {op.getCaptures()[arg.getArgNumber() - own], 0};
  ArrayRef<int64_t> q = cast<RankedTensorType>(op.getQ().getType()).getShape();
  int64_t extents[] = {q[0], q[1], q[2], cast<RankedTensorType>(op.getK().getType()).getDimSize(2)};
  return {Value(), extents[arg.getArgNumber() + 4 - own]};
}

IntegerRange IdRanges::compute(Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  if (!isa<IntegerType, IndexType>(element))
    return {};
  auto arg = dyn_cast<BlockArgument>(value);
  if (!arg)
    return computeResult(value.getDefiningOp(), cast<OpResult>(value).getResultNumber());
  Operation *parent = arg.getOwner()->getParentOp();
  if (auto structured = dyn_cast<linalg::LinalgOp>(parent)) {
    bool isInit = arg.getArgNumber() >= structured.getNumDpsInputs();
    if (isInit && structured.getNumReductionLoops() != 0) {
      auto assumed = limits.find(arg);
      return assumed == limits.end() ? IntegerRange{} : assumed->second;
    }
    return get(parent->getOperand(arg.getArgNumber()));
  }
  if (auto attention = dyn_cast<AttentionOp>(parent)) {
    auto [capture, extent] = attentionArgument(attention, arg);
    return capture ? get(capture) : IntegerRange::below(extent);
  }
  if (auto limit = limits.find(arg); limit != limits.end())
    return limit->second;
  if (auto func = dyn_cast<func::FuncOp>(parent))
    if (auto limit = func.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), FSDPDialect::limitAttr))
      return {0, limit.getInt() - 1};
  return {};
}

static IntegerRange constantRange(Attribute attr) {
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return integer.getType().isInteger(1) ? IntegerRange::of(integer.getValue().getZExtValue())
                                          : IntegerRange::of(integer.getValue().getSExtValue());
  auto dense = dyn_cast<DenseIntElementsAttr>(attr);
  if (!dense || dense.empty())
    return {};
  bool isBool = dense.getElementType().isInteger(1);
  auto read = [&](const APInt &v) {
    return IntegerRange::of(isBool ? v.getZExtValue() : v.getSExtValue());
  };
  if (dense.isSplat())
    return read(dense.getSplatValue<APInt>());
  IntegerRange range = read(*dense.value_begin<APInt>());
  for (const APInt &v : dense.getValues<APInt>())
    range = join(range, read(v));
  return range;
}

IntegerRange IdRanges::computeResult(Operation *op, unsigned result) {
  Attribute constant;
  if (op->getNumResults() == 1 && matchPattern(op, m_Constant(&constant)))
    return constantRange(constant);
  auto in = [&](unsigned i) { return get(op->getOperand(i)); };
  return llvm::TypeSwitch<Operation *, IntegerRange>(op)
      .Case([&](linalg::IndexOp index) -> IntegerRange {
        auto parent = index->getParentOfType<linalg::LinalgOp>();
        int64_t extent = parent.getStaticLoopRanges()[index.getDim()];
        return ShapedType::isDynamic(extent) ? IntegerRange{} : IntegerRange::below(extent);
      })
      .Case([&](linalg::FillOp fill) { return get(fill.getInputs()[0]); })
      .Case([&](linalg::GenericOp generic) -> IntegerRange {
        if (generic.getNumReductionLoops() != 0)
          return computeReduction(generic, result);
        return get(generic.getBody()->getTerminator()->getOperand(result));
      })
      .Case<tensor::PadOp, tensor::ConcatOp, tensor::InsertSliceOp, arith::SelectOp>([&](auto) {
        IdSet set = getSet(op->getResult(result));
        return set.empty() ? IntegerRange{} : IntegerRange{set.front().lo, set.back().hi};
      })
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp, tensor::CastOp,
            tensor::ExtractOp, tensor::SplatOp>([&](auto) { return in(0); })
      .Default([&](Operation *) {
        return result == 0
                   ? inferResultRange(op, llvm::map_to_vector(op->getOperands(),
                                                              [&](Value v) { return get(v); }))
                   : IntegerRange{};
      });
}

/// Drops the cached ranges of all values in the body of `op`.
void IdRanges::clearBody(linalg::GenericOp op) {
  auto erase = [&](Value value) {
    known.erase(value);
    sets.erase(value);
  };
  for (BlockArgument arg : op.getBody()->getArguments())
    erase(arg);
  for (Operation &inner : *op.getBody())
    for (Value value : inner.getResults())
      erase(value);
}

/// Returns the range of a reduction. Searches for a fixed point of the body in at most 3 rounds.
IntegerRange IdRanges::computeReduction(linalg::GenericOp op, unsigned result) {
  BlockArgument sum = op.getRegionOutputArgs()[result];
  Value yielded = op.getBody()->getTerminator()->getOperand(result);
  IntegerRange start = get(op.getOutputs()[result]), kept = start;
  bool holds = false;
  for (unsigned round = 0; round < 3 && !holds; ++round) {
    clearBody(op);
    limits[sum] = kept;
    IntegerRange next = get(yielded);
    holds = next.within(kept);
    kept = join(kept, next);
  }
  limits.erase(sum);
  clearBody(op);
  if (holds)
    return kept;
  auto add = yielded.getDefiningOp<arith::AddIOp>();
  if (!add || (add.getLhs() == sum) == (add.getRhs() == sum))
    return {};
  int64_t steps = 1;
  for (auto [extent, kind] : llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction &&
        (ShapedType::isDynamic(extent) || llvm::MulOverflow(steps, extent, steps)))
      return {};
  // If the added term depends on the sum, the ranges of the term and of the result are unknown.
  IntegerRange term = get(add.getLhs() == sum ? add.getRhs() : add.getLhs());
  return start + term * IntegerRange::of(steps);
}

bool IdRanges::followsArgument(Value value) {
  auto in = [&](unsigned i) { return value.getDefiningOp()->getOperand(i); };
  // Returns true if at least one value is not constant, and followsArgument() is true for all
  // values that are not constant.
  auto anyFollows = [&](ValueRange values) {
    auto others = llvm::make_filter_range(
        values, [&](Value v) { return !get(v).isSingle() && !v.getDefiningOp<tensor::EmptyOp>(); });
    return !others.empty() && llvm::all_of(others, [&](Value v) { return followsArgument(v); });
  };
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    Operation *parent = arg.getOwner()->getParentOp();
    auto structured = dyn_cast<linalg::LinalgOp>(parent);
    return structured ? structured.getNumReductionLoops() == 0 &&
                            followsArgument(parent->getOperand(arg.getArgNumber()))
                      : isa<func::FuncOp>(parent);
  }
  Operation *op = value.getDefiningOp();
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return generic.getNumReductionLoops() == 0 &&
           followsArgument(generic.getBody()->getTerminator()->getOperand(
               cast<OpResult>(value).getResultNumber()));
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp, tensor::CastOp,
          tensor::PadOp, arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp,
          arith::TruncIOp>(op))
    return followsArgument(in(0));
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return anyFollows({in(0), in(1)}) && (get(in(0)).isSingle() || get(in(1)).isSingle());
  if (isa<arith::SelectOp>(op)) {
    IntegerRange condition = get(in(0));
    return condition.isSingle() ? followsArgument(in(condition.lo ? 1 : 2))
                                : anyFollows({in(1), in(2)});
  }
  if (isa<tensor::ConcatOp>(op))
    return anyFollows(op->getOperands());
  if (isa<tensor::InsertSliceOp>(op))
    return anyFollows({in(0), in(1)});
  if (isa<arith::MaxSIOp, arith::MinSIOp>(op)) {
    IntegerRange a = get(in(0)), b = get(in(1));
    bool isMax = isa<arith::MaxSIOp>(op);
    if (isMax ? a.lo >= b.hi : a.hi <= b.lo)
      return followsArgument(in(0));
    return (isMax ? b.lo >= a.hi : b.hi <= a.lo) && followsArgument(in(1));
  }
  return false;
}

void IdRanges::collectIdArguments(Value value, llvm::SmallPtrSetImpl<void *> &seen,
                                  SmallVectorImpl<BlockArgument> &arguments) {
  if (!seen.insert(value.getAsOpaquePointer()).second ||
      !isa<IntegerType, IndexType>(getElementTypeOrSelf(value.getType())))
    return;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    Operation *parent = arg.getOwner()->getParentOp();
    if (isa<linalg::LinalgOp>(parent))
      return collectIdArguments(parent->getOperand(arg.getArgNumber()), seen, arguments);
    if (auto attention = dyn_cast<AttentionOp>(parent))
      if (Value capture = attentionArgument(attention, arg).first)
        collectIdArguments(capture, seen, arguments);
    if (isa<func::FuncOp>(parent))
      arguments.push_back(arg);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return collectIdArguments(
        generic.getBody()->getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()),
        seen, arguments);
  for (Value operand : op->getOperands())
    collectIdArguments(operand, seen, arguments);
}
