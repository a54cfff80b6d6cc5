//===- ArgReductions.cpp - Reductions to a value and its position --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A reduction may select a value together with the position of this value. Splits such a reduction
// into two reductions, each with one result. Each of the two may combine lanes in any order, like
// other reductions (KernelSteps.h):
//
//   v, i = reduce x, k { c = x > v        t = reduce x { max(x, t) }
//     select c, x, v                  =>  m = reduce x, k { min(x == t ? k : none, m) }
//     select c, k, i }                    b = t > v0;  v = b ? t : v0;  i = b ? m : i0
//
//  1. Determine from the body which value the condition chooses, and which of several equal values
//     it chooses:
//       condition                          chosen
//       x > v                              the first of equal values, but never NaN
//       x >= v                             the last of equal values, but never NaN
//       c = (v > x | v != v), and          the first of equal values, but NaN if there is one
//       c | (v == x & i < k) for the       (JAX emits these conditions)
//       position
//
//     The conditions may use < and <= instead of > and >=, and the first two conditions may compare
//     integers. The body may compute the value as max(x, v) instead of a select. In this case, a
//     NaN among the elements makes the value NaN, and the position is the initial position.
//  2. Emit the two reductions. Emit the ops that select between the results of these reductions and
//     the initial values v0 and i0.
//
// The emitted code reads each row twice. The second read is from the cache if the row fits into it.
// The rewrite takes time linear in the number of ops. The rewrite requires that the position is the
// index of the only reduced loop.
//
//===----------------------------------------------------------------------===//

#include "KernelSteps.h"
#include "Lowering.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// Properties of a reduction with two results.
struct ArgReduction {
  linalg::GenericOp op;
  // The value x of an element. It does not depend on the results so far (v and i).
  Value candidate;
  bool greatest = true; // true if the greatest value is chosen, false if the least
  bool last = false;    // true if the last of equal elements is chosen, false if the first
  bool nanWins = false; // true if NaN is chosen over all other values, false if NaN is never chosen
  bool keepsNan = false; // true for max(x, v): NaN changes the value, but not the position
  bool isUnsigned = false;

  Type getType() const { return candidate.getType(); }
  bool isFloat() const { return isa<FloatType>(getType()); }
};

/// A comparison of `lhs` and `rhs`. If `strict` is true, the comparison is > if `greater` is true,
/// and < otherwise. If `strict` is false, the comparison is >= or <=.
struct Comparison {
  Value lhs, rhs;
  bool greater, strict, isUnsigned;
};
} // namespace

static std::optional<Comparison> readComparison(Value condition) {
  if (auto op = condition.getDefiningOp<arith::CmpFOp>()) {
    arith::CmpFPredicate p = op.getPredicate();
    bool greater = p == arith::CmpFPredicate::OGT || p == arith::CmpFPredicate::OGE;
    bool strict = p == arith::CmpFPredicate::OGT || p == arith::CmpFPredicate::OLT;
    if (greater || strict || p == arith::CmpFPredicate::OLE)
      return Comparison{op.getLhs(), op.getRhs(), greater, strict, false};
  } else if (auto op = condition.getDefiningOp<arith::CmpIOp>()) {
    using P = arith::CmpIPredicate;
    P p = op.getPredicate();
    if (p == P::eq || p == P::ne)
      return std::nullopt;
    return Comparison{op.getLhs(), op.getRhs(),
                      p == P::sgt || p == P::sge || p == P::ugt || p == P::uge,
                      p == P::sgt || p == P::slt || p == P::ugt || p == P::ult,
                      p == P::ugt || p == P::uge || p == P::ult || p == P::ule};
  }
  return std::nullopt;
}

/// Returns true if `value` is max(x, state) and `pair` chooses the greatest value, or if `value` is
/// min(x, state) and `pair` chooses the least value. Sets `keepsNan` to true if the op propagates
/// NaN.
static bool isExtreme(Value value, Value x, Value state, const ArgReduction &pair, bool &keepsNan) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() != 2 ||
      !((op->getOperand(0) == x && op->getOperand(1) == state) ||
        (op->getOperand(1) == x && op->getOperand(0) == state)))
    return false;
  keepsNan = isa<arith::MaximumFOp, arith::MinimumFOp>(op);
  if (pair.greatest)
    return isa<arith::MaximumFOp, arith::MaxNumFOp>(op) ||
           (pair.isUnsigned ? isa<arith::MaxUIOp>(op) : isa<arith::MaxSIOp>(op));
  return isa<arith::MinimumFOp, arith::MinNumFOp>(op) ||
         (pair.isUnsigned ? isa<arith::MinUIOp>(op) : isa<arith::MinSIOp>(op));
}

/// Sets `condition` and `candidate` if `value` selects between `state` and another value. Sets
/// `flipped` to true if the select returns `state` where the condition is true. Returns false if
/// `value` is not such a select.
static bool readSelect(Value value, Value state, Value &condition, Value &candidate,
                       bool &flipped) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  if (!select || (select.getTrueValue() == state) == (select.getFalseValue() == state))
    return false;
  flipped = select.getTrueValue() == state;
  condition = select.getCondition();
  candidate = flipped ? select.getFalseValue() : select.getTrueValue();
  return true;
}

/// Returns true if `value` is the index of the only reduced loop.
static bool isPosition(linalg::GenericOp op, Value value) {
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  auto index = value.getDefiningOp<linalg::IndexOp>();
  return index && op.getNumReductionLoops() == 1 &&
         op.getIteratorTypesArray()[index.getDim()] == utils::IteratorType::reduction;
}

/// If `value` is an arith.ori of `first` and another operand, returns the other operand. Otherwise
/// returns null.
static Value otherOf(Value value, Value first) {
  auto either = value.getDefiningOp<arith::OrIOp>();
  if (!either)
    return {};
  if (either.getLhs() == first)
    return either.getRhs();
  return either.getRhs() == first ? either.getLhs() : Value();
}

/// Let v be `kept`, x `other`, i `keptIndex` and k `otherIndex`. Returns true if `valueCondition`
/// is (v > x | v != v), and `indexCondition` is `valueCondition` | (v == x & i < k). If the first
/// comparison is v < x instead of v > x, sets `greatest` to false.
static bool readNanAware(Value valueCondition, Value indexCondition, Value kept, Value other,
                         Value keptIndex, Value otherIndex, bool &greatest) {
  auto either = valueCondition.getDefiningOp<arith::OrIOp>();
  if (!either)
    return false;
  std::optional<Comparison> better = readComparison(either.getLhs());
  auto isNan = either.getRhs().getDefiningOp<arith::CmpFOp>();
  if (!better || !isNan || !better->strict || isNan.getLhs() != kept || isNan.getRhs() != kept ||
      (isNan.getPredicate() != arith::CmpFPredicate::UNE &&
       isNan.getPredicate() != arith::CmpFPredicate::UNO))
    return false;
  bool straight = better->lhs == kept && better->rhs == other;
  if (!straight && !(better->lhs == other && better->rhs == kept))
    return false;
  greatest = better->greater == straight;
  Value tie = otherOf(indexCondition, valueCondition);
  auto both = tie ? tie.getDefiningOp<arith::AndIOp>() : arith::AndIOp();
  auto equal = both ? both.getLhs().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  auto before = both ? both.getRhs().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!equal || !before || equal.getPredicate() != arith::CmpFPredicate::OEQ ||
      before.getPredicate() != arith::CmpIPredicate::slt)
    return false;
  bool same = (equal.getLhs() == kept && equal.getRhs() == other) ||
              (equal.getLhs() == other && equal.getRhs() == kept);
  return same && before.getLhs() == keptIndex && before.getRhs() == otherIndex;
}

/// Reads the body of `op`. Assumes that result `v` is the value and that the other result is the
/// position. Returns nothing if the body does not have this form.
static std::optional<ArgReduction> readPair(linalg::GenericOp op, unsigned v) {
  ArgReduction pair;
  pair.op = op;
  Operation *yield = op.getBody()->getTerminator();
  Value state = op.getRegionOutputArgs()[v], indexState = op.getRegionOutputArgs()[1 - v];
  Value value = yield->getOperand(v), index = yield->getOperand(1 - v);
  Value indexCondition, position;
  bool flipped;
  if (!isa<IntegerType, IndexType>(index.getType()) ||
      !readSelect(index, indexState, indexCondition, position, flipped) ||
      !isPosition(op, position))
    return std::nullopt;
  Value valueCondition;
  bool valueFlipped;
  if (readSelect(value, state, valueCondition, pair.candidate, valueFlipped) &&
      valueFlipped == flipped && valueCondition != indexCondition) {
    if (!isa<FloatType>(pair.getType()) || dependsOnOutput(op, pair.candidate) ||
        !readNanAware(valueCondition, indexCondition, flipped ? state : pair.candidate,
                      flipped ? pair.candidate : state, flipped ? indexState : position,
                      flipped ? position : indexState, pair.greatest))
      return std::nullopt;
    pair.nanWins = pair.keepsNan = true;
    return pair;
  }
  std::optional<Comparison> comparison = readComparison(indexCondition);
  if (!comparison || flipped || (comparison->lhs == state) == (comparison->rhs == state))
    return std::nullopt;
  bool straight = comparison->rhs == state; // x > v
  pair.candidate = straight ? comparison->lhs : comparison->rhs;
  pair.greatest = comparison->greater == straight;
  pair.last = !comparison->strict;
  pair.isUnsigned = comparison->isUnsigned;
  auto select = value.getDefiningOp<arith::SelectOp>();
  bool together = select && select.getCondition() == indexCondition &&
                  select.getTrueValue() == pair.candidate && select.getFalseValue() == state;
  if (dependsOnOutput(op, pair.candidate) ||
      (!together && !isExtreme(value, pair.candidate, state, pair, pair.keepsNan)))
    return std::nullopt;
  return pair;
}

namespace {
class ArgReductionWriter {
public:
  ArgReductionWriter(OpBuilder &builder, ArgReduction pair, unsigned v)
      : b(builder), loc(pair.op.getLoc()), pair(pair), v(v), op(pair.op) {}
  void write();

private:
  using Body = function_ref<Value(OpBuilder &, Value x, Value index, ValueRange more, Value state)>;
  Value reduce(ValueRange more, TypedAttr init, unsigned result, Body body);
  Value choose(ValueRange ins, unsigned result, function_ref<Value(OpBuilder &, ValueRange)> body);
  Value extremum(OpBuilder &nested, Value x, Value y);
  Value compare(OpBuilder &nested, arith::CmpFPredicate real, Value x, Value y) {
    return arith::CmpFOp::create(nested, loc, real, x, y);
  }
  Value equals(OpBuilder &nested, Value x, Value y);
  Value isBetter(OpBuilder &nested, Value x, Value y);
  TypedAttr worst();

  OpBuilder &b;
  Location loc;
  ArgReduction pair;
  unsigned v;
  linalg::GenericOp op;
};
} // namespace

/// Emits a reduction over the loops of the original op. The reduction starts with `init` and has
/// the body `body`. In addition to the inputs of the original op, it has the inputs `more`, which
/// have the shape of the original op's results.
Value ArgReductionWriter::reduce(ValueRange more, TypedAttr init, unsigned result, Body body) {
  auto type = cast<RankedTensorType>(op.getResult(result).getType());
  Value constant = arith::ConstantOp::create(b, loc, init);
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  Value filled = linalg::FillOp::create(b, loc, constant, empty).getResult(0);
  SmallVector<Value> ins(op.getInputs());
  llvm::append_range(ins, more);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap out = maps[op.getNumDpsInputs() + result];
  maps.truncate(op.getNumDpsInputs());
  maps.append(more.size() + 1, out);
  auto generic = linalg::GenericOp::create(
      b, loc, type, ins, filled, maps, op.getIteratorTypesArray(),
      [&](OpBuilder &nested, Location, ValueRange args) {
        IRMapping mapping;
        unsigned inputs = op.getNumDpsInputs();
        for (auto [old, now] : llvm::zip(op.getRegionInputArgs(), args.take_front(inputs)))
          mapping.map(old, now);
        // Output arguments of the old body are replaced by zeros. The value of the zeros is not
        // important, because only ops that become dead read them.
        for (BlockArgument old : op.getRegionOutputArgs()) {
          TypedAttr any = cast<TypedAttr>(nested.getZeroAttr(old.getType()));
          mapping.map(old, arith::ConstantOp::create(nested, loc, any).getResult());
        }
        Value position;
        for (Operation &inner : op.getBody()->without_terminator()) {
          nested.clone(inner, mapping);
          if (isa<linalg::IndexOp>(inner) && isPosition(op, inner.getResult(0)))
            position = mapping.lookup(inner.getResult(0));
        }
        if (Type to = type.getElementType(); !to.isIndex() && !isa<FloatType>(to))
          position = arith::IndexCastOp::create(nested, loc, to, position);
        linalg::YieldOp::create(nested, loc,
                                body(nested, mapping.lookupOrDefault(pair.candidate), position,
                                     args.slice(inputs, more.size()), args.back()));
      });
  return generic.getResult(0);
}

Value ArgReductionWriter::choose(ValueRange ins, unsigned result,
                                 function_ref<Value(OpBuilder &, ValueRange)> body) {
  auto type = cast<RankedTensorType>(op.getResult(result).getType());
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<AffineMap> maps(ins.size() + 1, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, type, ins, empty, maps, iterators,
                                   [&](OpBuilder &nested, Location, ValueRange args) {
                                     linalg::YieldOp::create(nested, loc, body(nested, args));
                                   })
      .getResult(0);
}

Value ArgReductionWriter::extremum(OpBuilder &nested, Value x, Value y) {
  if (pair.isFloat())
    return pair.greatest ? Value(arith::MaximumFOp::create(nested, loc, x, y))
                         : arith::MinimumFOp::create(nested, loc, x, y);
  if (pair.isUnsigned)
    return pair.greatest ? Value(arith::MaxUIOp::create(nested, loc, x, y))
                         : arith::MinUIOp::create(nested, loc, x, y);
  return pair.greatest ? Value(arith::MaxSIOp::create(nested, loc, x, y))
                       : arith::MinSIOp::create(nested, loc, x, y);
}

Value ArgReductionWriter::equals(OpBuilder &nested, Value x, Value y) {
  if (pair.isFloat())
    return compare(nested, arith::CmpFPredicate::OEQ, x, y);
  return arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::eq, x, y);
}

/// Emits the condition that x is chosen instead of y, where x is a result of the emitted reduction
/// and y is the initial value.
Value ArgReductionWriter::isBetter(OpBuilder &nested, Value x, Value y) {
  if (!pair.greatest)
    std::swap(x, y);
  if (!pair.isFloat()) {
    using P = arith::CmpIPredicate;
    P p = pair.isUnsigned ? (pair.last ? P::uge : P::ugt) : (pair.last ? P::sge : P::sgt);
    return arith::CmpIOp::create(nested, loc, p, x, y);
  }
  return compare(nested, pair.last ? arith::CmpFPredicate::OGE : arith::CmpFPredicate::OGT, x, y);
}

/// Returns the least value of the type if the reduction chooses the greatest value. Returns the
/// greatest value of the type if the reduction chooses the least value.
TypedAttr ArgReductionWriter::worst() {
  Type type = pair.getType();
  if (auto real = dyn_cast<FloatType>(type))
    return b.getFloatAttr(type,
                          APFloat::getInf(real.getFloatSemantics(), /*Negative=*/pair.greatest));
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  APInt value = pair.isUnsigned ? (pair.greatest ? APInt::getZero(width) : APInt::getAllOnes(width))
                                : (pair.greatest ? APInt::getSignedMinValue(width)
                                                 : APInt::getSignedMaxValue(width));
  return b.getIntegerAttr(type, value);
}

void ArgReductionWriter::write() {
  TypedAttr least = worst();
  Value total =
      reduce({}, least, v, [&](OpBuilder &nested, Value x, Value, ValueRange, Value state) {
        // Replaces NaN by `least`, so that NaN is never chosen.
        if (pair.isFloat() && !pair.keepsNan) {
          Value never = arith::ConstantOp::create(nested, loc, least);
          x = arith::SelectOp::create(nested, loc, compare(nested, arith::CmpFPredicate::UNO, x, x),
                                      never, x);
        }
        return extremum(nested, x, state);
      });
  Type indexType = getElementTypeOrSelf(op.getResult(1 - v).getType());
  unsigned width = indexType.isIndex() ? 64 : indexType.getIntOrFloatBitWidth();
  TypedAttr none = b.getIntegerAttr(indexType, pair.last ? APInt::getSignedMinValue(width)
                                                         : APInt::getSignedMaxValue(width));
  Value where = reduce(total, none, 1 - v,
                       [&](OpBuilder &nested, Value x, Value index, ValueRange more, Value state) {
                         Value hit = equals(nested, x, more.front());
                         if (pair.nanWins)
                           hit = arith::OrIOp::create(
                               nested, loc, hit, compare(nested, arith::CmpFPredicate::UNO, x, x));
                         Value here = arith::SelectOp::create(
                             nested, loc, hit, index, arith::ConstantOp::create(nested, loc, none));
                         return pair.last ? Value(arith::MaxSIOp::create(nested, loc, here, state))
                                          : arith::MinSIOp::create(nested, loc, here, state);
                       });
  Value init = op.getDpsInits()[v], indexInit = op.getDpsInits()[1 - v];
  auto decide = [&](OpBuilder &nested, Value x, Value y) {
    Value better = isBetter(nested, x, y);
    if (!pair.nanWins)
      return better;
    better =
        arith::OrIOp::create(nested, loc, better, compare(nested, arith::CmpFPredicate::UNO, x, x));
    return Value(arith::AndIOp::create(nested, loc, better,
                                       compare(nested, arith::CmpFPredicate::ORD, y, y)));
  };
  Value best = choose({total, init}, v, [&](OpBuilder &nested, ValueRange a) -> Value {
    if (pair.keepsNan)
      return extremum(nested, a[0], a[1]);
    return arith::SelectOp::create(nested, loc, decide(nested, a[0], a[1]), a[0], a[1]);
  });
  Value index =
      choose({total, init, where, indexInit}, 1 - v, [&](OpBuilder &nested, ValueRange a) -> Value {
        Value better = decide(nested, a[0], a[1]);
        // The result is the initial position if no element was found, or if the initial value is
        // chosen instead of the found value.
        if (pair.last) {
          Value nowhere = arith::ConstantOp::create(nested, loc, none);
          Value found = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::ne, a[2], nowhere);
          better = arith::AndIOp::create(nested, loc, better, found);
        }
        return arith::SelectOp::create(nested, loc, better, a[2], a[3]);
      });
  op.getResult(v).replaceAllUsesWith(best);
  op.getResult(1 - v).replaceAllUsesWith(index);
  op.erase();
}

void fsdp::splitArgReductions(func::FuncOp kernel) {
  for (auto op : llvm::make_early_inc_range(kernel.getOps<linalg::GenericOp>())) {
    if (op->getNumResults() != 2 || op.getNumReductionLoops() != 1 ||
        op.getIndexingMapMatchingResult(op->getResult(0)) !=
            op.getIndexingMapMatchingResult(op->getResult(1)))
      continue;
    for (unsigned v : {0, 1}) {
      std::optional<ArgReduction> pair = readPair(op, v);
      if (!pair)
        continue;
      OpBuilder builder(op);
      ArgReductionWriter(builder, *pair, v).write();
      break;
    }
  }
}
