//===- IdRanges.cpp - Intervals of integers in a model ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plain interval arithmetic, memoised; anything that may wrap is unknown. A
// select whose condition is decided has the interval of the branch taken, which
// is what makes `select(id < 0, id + V, id)` equal to id for id in [0, V).
//
// Of a reduction: what its body yields when the sum so far is in an interval that this
// keeps (the position of a maximum), or a count of steps times what each adds. Unions
// of intervals: IdSets.cpp.
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

static IdInterval join(IdInterval a, IdInterval b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

static IdInterval add(IdInterval a, IdInterval b) {
  IdInterval sum;
  if (llvm::AddOverflow(a.lo, b.lo, sum.lo) || llvm::AddOverflow(a.hi, b.hi, sum.hi))
    return {};
  return sum;
}

static IdInterval negate(IdInterval a) {
  if (a.lo == std::numeric_limits<int64_t>::min())
    return {};
  return {-a.hi, -a.lo};
}

static IdInterval multiply(IdInterval a, IdInterval b) {
  IdInterval product{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  for (int64_t x : {a.lo, a.hi})
    for (int64_t y : {b.lo, b.hi}) {
      int64_t value;
      if (llvm::MulOverflow(x, y, value))
        return {};
      product = join(product, IdInterval::of(value));
    }
  return product;
}

/// 1 for true, 0 for false, [0, 1] when not decided.
static IdInterval compare(arith::CmpIPredicate predicate, IdInterval a, IdInterval b) {
  using P = arith::CmpIPredicate;
  auto decide = [](bool yes, bool no) { return IdInterval{yes ? 1 : 0, no ? 0 : 1}; };
  bool bothNonNegative = a.lo >= 0 && b.lo >= 0;
  switch (predicate) {
  case P::eq:
    return decide(a.isSingle() && b.isSingle() && a.lo == b.lo, a.hi < b.lo || b.hi < a.lo);
  case P::ne:
    return decide(a.hi < b.lo || b.hi < a.lo, a.isSingle() && b.isSingle() && a.lo == b.lo);
  case P::ult:
    if (!bothNonNegative)
      return {0, 1};
    [[fallthrough]];
  case P::slt:
    return decide(a.hi < b.lo, a.lo >= b.hi);
  case P::ule:
    if (!bothNonNegative)
      return {0, 1};
    [[fallthrough]];
  case P::sle:
    return decide(a.hi <= b.lo, a.lo > b.hi);
  case P::ugt:
  case P::sgt:
    return compare(predicate == P::ugt ? P::ult : P::slt, b, a);
  case P::uge:
  case P::sge:
    return compare(predicate == P::uge ? P::ule : P::sle, b, a);
  }
  return {0, 1};
}

/// What a type can hold; i1 counts as 0 and 1.
static IdInterval typeRange(Type type) {
  type = getElementTypeOrSelf(type);
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.getWidth() >= 64)
    return {};
  if (integer.getWidth() == 1)
    return {0, 1};
  int64_t half = int64_t(1) << (integer.getWidth() - 1);
  return integer.isUnsigned() ? IdInterval{0, 2 * half - 1} : IdInterval{-half, half - 1};
}

IdInterval IdRanges::get(Value value) {
  auto [it, fresh] = known.try_emplace(value, typeRange(value.getType()));
  if (!fresh)
    return it->second;
  IdInterval range = compute(value), bound = typeRange(value.getType());
  if (!range.within(bound.lo, bound.hi))
    range = bound; // it may wrap
  return known[value] = range;
}

/// An argument of a function of attention: the captured tensor that it stands for, or null
/// and the extent of b, h, q or k.
static std::pair<Value, int64_t> attentionArgument(AttentionOp op, BlockArgument arg) {
  unsigned own = arg.getParentRegion() == &op.getScoreMod() ? 5 : 4;
  if (arg.getArgNumber() >= own)
    return {op.getCaptures()[arg.getArgNumber() - own], 0};
  ArrayRef<int64_t> q = cast<RankedTensorType>(op.getQ().getType()).getShape();
  int64_t extents[] = {q[0], q[1], q[2], cast<RankedTensorType>(op.getK().getType()).getDimSize(2)};
  return {Value(), extents[arg.getArgNumber() + 4 - own]};
}

IdInterval IdRanges::compute(Value value) {
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
      return assumed == limits.end() ? IdInterval{} : assumed->second;
    }
    return get(parent->getOperand(arg.getArgNumber()));
  }
  if (auto attention = dyn_cast<AttentionOp>(parent)) {
    auto [capture, extent] = attentionArgument(attention, arg);
    return capture ? get(capture) : IdInterval{0, std::max<int64_t>(extent - 1, 0)};
  }
  if (auto limit = limits.find(arg); limit != limits.end())
    return limit->second;
  if (auto func = dyn_cast<func::FuncOp>(parent))
    if (auto limit = func.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), FSDPDialect::limitAttr))
      return {0, limit.getInt() - 1};
  return {};
}

static IdInterval constantRange(Attribute attr) {
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return integer.getType().isInteger(1) ? IdInterval::of(integer.getValue().getZExtValue())
                                          : IdInterval::of(integer.getValue().getSExtValue());
  auto dense = dyn_cast<DenseIntElementsAttr>(attr);
  if (!dense || dense.empty())
    return {};
  bool isBool = dense.getElementType().isInteger(1);
  auto read = [&](const APInt &v) {
    return IdInterval::of(isBool ? v.getZExtValue() : v.getSExtValue());
  };
  if (dense.isSplat())
    return read(dense.getSplatValue<APInt>());
  IdInterval range = read(*dense.value_begin<APInt>());
  for (const APInt &v : dense.getValues<APInt>())
    range = join(range, read(v));
  return range;
}

IdInterval IdRanges::computeResult(Operation *op, unsigned result) {
  Attribute constant;
  if (op->getNumResults() == 1 && matchPattern(op, m_Constant(&constant)))
    return constantRange(constant);
  auto in = [&](unsigned i) { return get(op->getOperand(i)); };
  return llvm::TypeSwitch<Operation *, IdInterval>(op)
      .Case([&](linalg::IndexOp index) -> IdInterval {
        auto parent = index->getParentOfType<linalg::LinalgOp>();
        int64_t extent = parent.getStaticLoopRanges()[index.getDim()];
        return ShapedType::isDynamic(extent) ? IdInterval{}
                                             : IdInterval{0, std::max<int64_t>(extent - 1, 0)};
      })
      .Case([&](linalg::FillOp fill) { return get(fill.getInputs()[0]); })
      .Case([&](linalg::GenericOp generic) -> IdInterval {
        if (generic.getNumReductionLoops() != 0)
          return computeReduction(generic, result);
        return get(generic.getBody()->getTerminator()->getOperand(result));
      })
      .Case<tensor::PadOp, tensor::ConcatOp, tensor::InsertSliceOp, arith::SelectOp>([&](auto) {
        IdSet set = getSet(op->getResult(result));
        return set.empty() ? IdInterval{} : IdInterval{set.front().lo, set.back().hi};
      })
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp, tensor::CastOp,
            tensor::ExtractOp, tensor::SplatOp>([&](auto) { return in(0); })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>([&](auto) {
        IdInterval range = in(0); // The true of i1 becomes -1 where the sign is extended.
        return getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1) ? negate(range)
                                                                              : range;
      })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto) {
        IdInterval range = in(0);
        return range.lo >= 0 ? range : IdInterval{};
      })
      .Case([&](arith::AddIOp) { return add(in(0), in(1)); })
      .Case([&](arith::SubIOp) { return add(in(0), negate(in(1))); })
      .Case([&](arith::MulIOp) { return multiply(in(0), in(1)); })
      .Case<arith::MaxSIOp, arith::MinSIOp>([&](auto) {
        IdInterval a = in(0), b = in(1);
        return isa<arith::MaxSIOp>(op) ? IdInterval{std::max(a.lo, b.lo), std::max(a.hi, b.hi)}
                                       : IdInterval{std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) -> IdInterval {
        IdInterval a = in(0), b = in(1);
        if (!b.isSingle() || b.lo <= 0 || a.lo < 0)
          return {};
        return a.hi < b.lo ? a : IdInterval{0, b.lo - 1};
      })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](auto) -> IdInterval {
        IdInterval a = in(0), b = in(1);
        return b.isSingle() && b.lo > 0 && a.lo >= 0 ? IdInterval{a.lo / b.lo, a.hi / b.lo}
                                                     : IdInterval{};
      })
      .Case([&](arith::CmpIOp cmp) { return compare(cmp.getPredicate(), in(0), in(1)); })
      .Case([&](arith::AndIOp) -> IdInterval {
        IdInterval a = in(0), b = in(1);
        return a.within(0, 1) && b.within(0, 1) ? IdInterval{a.lo & b.lo, a.hi & b.hi}
                                                : IdInterval{};
      })
      .Case([&](arith::OrIOp) -> IdInterval {
        IdInterval a = in(0), b = in(1);
        return a.within(0, 1) && b.within(0, 1) ? IdInterval{a.lo | b.lo, a.hi | b.hi}
                                                : IdInterval{};
      })
      .Default([](Operation *) { return IdInterval{}; });
}

/// Forgets what is known of the values of a body.
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

/// The interval of a result that is reduced: one that the body keeps, or steps times what each of
/// them adds.
IdInterval IdRanges::computeReduction(linalg::GenericOp op, unsigned result) {
  BlockArgument sum = op.getRegionOutputArgs()[result];
  Value yielded = op.getBody()->getTerminator()->getOperand(result);
  IdInterval start = get(op.getOutputs()[result]), kept = start;
  bool holds = false;
  for (unsigned round = 0; round < 3 && !holds; ++round) {
    clearBody(op);
    limits[sum] = kept;
    IdInterval next = get(yielded);
    holds = next.within(kept.lo, kept.hi);
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
  IdInterval term = get(add.getLhs() == sum ? add.getRhs()
                                            : add.getLhs()); // where it depends on the sum: unknown
  return ::add(start, multiply(term, IdInterval::of(steps)));
}

bool IdRanges::followsArgument(Value value) {
  auto in = [&](unsigned i) { return value.getDefiningOp()->getOperand(i); };
  // Some of the values, and the others are constants.
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
    IdInterval condition = get(in(0));
    return condition.isSingle() ? followsArgument(in(condition.lo ? 1 : 2))
                                : anyFollows({in(1), in(2)});
  }
  if (isa<tensor::ConcatOp>(op))
    return anyFollows(op->getOperands());
  if (isa<tensor::InsertSliceOp>(op))
    return anyFollows({in(0), in(1)});
  if (isa<arith::MaxSIOp, arith::MinSIOp>(op)) {
    IdInterval a = get(in(0)), b = get(in(1));
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
