//===- DecomposeRows.cpp - Softmax and cross-entropy as linalg --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers ops on the rows of a matrix to generics, from which row kernels are formed.
//
//   softmax        m = max_v x;  e = exp(x - m);  s = Σ_v e;  y = e · (1/s)
//   cross_entropy  m, s as above; lse = m + log s; nll = lse - Σ_v (v = t ? x : 0);
//                  loss = Σ_n nll / N
//     of classes   l = lse of own classes, or -inf; a = all_reduce [l of each rank.., own Σ_v];
//                  lse = lse of the columns of a but the last, which replaces Σ_v
//   ..._grad       dx = (exp(x - lse) - [v = t]) · (g / N)
//
// Sums of narrower types are computed in f32.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/Decompositions.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;
using utils::IteratorType;

static constexpr double negativeInfinity = -std::numeric_limits<double>::infinity();

static Value constant(OpBuilder &b, Location loc, Type type, double value) {
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
}

static Type elementType(Value v) { return getElementTypeOrSelf(v.getType()); }

namespace {
using Body = function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// Builds generics that work on the rows of a tensor along the dimension `reduced`. An input has
/// all dimensions of the tensor, one value per row, or one value in total.
class RowBuilder {
public:
  RowBuilder(OpBuilder &b, Location loc, Value x, unsigned reduced)
      : b(b), loc(loc), shape(cast<RankedTensorType>(x.getType()).getShape()), reduced(reduced),
        wide(elementType(x).getIntOrFloatBitWidth() < 32 ? Type(b.getF32Type()) : elementType(x)) {
    rowShape.assign(shape.begin(), shape.end());
    rowShape.erase(rowShape.begin() + reduced);
  }
  /// Builds a map with one result per element.
  Value map(ValueRange ins, Type type, Body body) {
    return make(ins, shape, empty(shape, type), false, body);
  }
  /// Builds a map with one result per row, from inputs that have one value per row.
  Value mapRows(ValueRange ins, Type type, Body body) {
    return make(ins, rowShape, empty(rowShape, type), false, body);
  }
  /// Builds a reduction of the elements of each row, with the initial value `init`.
  Value reduce(ValueRange ins, double init, Body body) {
    Value out = linalg::FillOp::create(b, loc, constant(b, loc, wide, init), empty(rowShape, wide))
                    .getResult(0);
    return make(ins, shape, out, true, body);
  }
  /// Builds the sum over all rows, as a rank-0 tensor.
  Value total(Value perRow) {
    int64_t rank = rowShape.size();
    Value out =
        linalg::FillOp::create(b, loc, constant(b, loc, wide, 0), empty({}, wide)).getResult(0);
    SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(rank),
                                AffineMap::get(rank, 0, b.getContext())};
    SmallVector<IteratorType> iters(rank, IteratorType::reduction);
    return generic(perRow, out, maps, iters, [](OpBuilder &b, Location l, ValueRange a) -> Value {
      return arith::AddFOp::create(b, l, a[1], a[0]);
    });
  }
  Value empty(ArrayRef<int64_t> shape, Type type) {
    return tensor::EmptyOp::create(b, loc, shape, type);
  }
  Type wideType() const { return wide; }

private:
  Value make(ValueRange ins, ArrayRef<int64_t> loops, Value out, bool reduces, Body body) {
    AffineMap full = b.getMultiDimIdentityMap(loops.size());
    AffineMap none = AffineMap::get(loops.size(), 0, b.getContext());
    bool overRows = loops.size() == rowShape.size();
    AffineMap row = overRows ? full : full.dropResult(reduced);
    SmallVector<AffineMap> maps;
    for (Value in : llvm::concat<Value>(SmallVector<Value>(ins), SmallVector<Value>{out})) {
      size_t rank = cast<RankedTensorType>(in.getType()).getRank();
      maps.push_back(rank == loops.size() ? full : rank == rowShape.size() ? row : none);
    }
    SmallVector<IteratorType> iters(loops.size(), IteratorType::parallel);
    if (reduces)
      iters[reduced] = IteratorType::reduction;
    return generic(ins, out, maps, iters, body);
  }
  Value generic(ValueRange ins, Value out, ArrayRef<AffineMap> maps, ArrayRef<IteratorType> iters,
                Body body) {
    auto op = linalg::GenericOp::create(b, loc, out.getType(), ins, out, maps, iters,
                                        [&](OpBuilder &b, Location l, ValueRange args) {
                                          linalg::YieldOp::create(b, l, body(b, l, args));
                                        });
    return op.getResult(0);
  }

  OpBuilder &b;
  Location loc;
  SmallVector<int64_t> shape, rowShape;
  unsigned reduced;
  Type wide;
};
} // namespace

static Value buildMax(RowBuilder &rows, Value x) {
  return rows.reduce(x, negativeInfinity, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::MaximumFOp::create(b, l, convertFloat(b, l, a[0], rows.wideType()), a[1]);
  });
}

/// Builds exp(x - shift) inside a body.
static Value buildShiftedExp(OpBuilder &b, Location l, Value x, Value shift, Type wide) {
  Value difference =
      arith::SubFOp::create(b, l, convertFloat(b, l, x, wide), convertFloat(b, l, shift, wide));
  return math::ExpOp::create(b, l, difference);
}

SmallVector<Value> fsdp::lowerToLinalg(linalg::SoftmaxOp op, OpBuilder &b) {
  RowBuilder rows(b, op.getLoc(), op.getInput(), op.getDimension());
  Type wide = rows.wideType(), element = elementType(op->getResult(0));
  Value max = buildMax(rows, op.getInput());
  Value exps = rows.map({op.getInput(), max}, wide, [&](OpBuilder &b, Location l, ValueRange a) {
    return buildShiftedExp(b, l, a[0], a[1], wide);
  });
  Value sum = rows.reduce(exps, 0, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::AddFOp::create(b, l, a[1], a[0]);
  });
  Value inverse = rows.mapRows(sum, wide, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::DivFOp::create(b, l, constant(b, l, wide, 1), a[0]);
  });
  return {rows.map({exps, inverse}, element, [&](OpBuilder &b, Location l, ValueRange a) {
    return convertFloat(b, l, arith::MulFOp::create(b, l, a[0], a[1]), element);
  })};
}

/// Builds a condition that is true if a target is ignored.
static Value buildIgnored(OpBuilder &b, Location l, Value target, int64_t ignore) {
  Value c = arith::ConstantOp::create(b, l, b.getIntegerAttr(target.getType(), ignore));
  return arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, target, c);
}

/// Builds the number by which the sum of losses is divided: the number of rows that are not
/// ignored, but at least 1. The mean is therefore 0 if all rows are ignored.
static Value buildDivisor(OpBuilder &b, Location l, Value count, Type wide) {
  return arith::MaximumFOp::create(b, l, count, constant(b, l, wide, 1));
}

/// Builds the number of rows that are not ignored as a rank-0 tensor. Returns null if `ignore` is
/// not set.
static Value buildCount(RowBuilder &rows, Value targets, std::optional<int64_t> ignore) {
  if (!ignore)
    return {};
  Type wide = rows.wideType();
  return rows.total(
      rows.mapRows(targets, wide, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
        Value skip = buildIgnored(b, l, a[0], *ignore);
        return arith::SelectOp::create(b, l, skip, constant(b, l, wide, 0),
                                       constant(b, l, wide, 1));
      }));
}

/// Builds the column of the logits that each target has. On a rank with a slice of the classes,
/// other targets have columns that the slice does not have.
static Value buildColumns(RowBuilder &rows, Value logits, Value targets, Value coordinate) {
  if (!coordinate)
    return targets;
  int64_t columns = cast<RankedTensorType>(logits.getType()).getDimSize(1);
  Type type = elementType(coordinate);
  return rows.mapRows({targets, coordinate}, type,
                      [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                        Value target = a[0];
                        if (unsigned width = target.getType().getIntOrFloatBitWidth(); width < 64)
                          target = arith::ExtSIOp::create(b, l, type, target);
                        else if (width > 64)
                          target = arith::TruncIOp::create(b, l, type, target);
                        Value size = arith::ConstantOp::create(b, l, b.getI64IntegerAttr(columns));
                        Value first = arith::MulIOp::create(b, l, a[1], size);
                        return arith::SubIOp::create(b, l, target, first);
                      });
}

/// Builds x[n, t[n]] for each row n, or 0 if a rank does not have the class.
static Value buildTargetLogit(RowBuilder &rows, CrossEntropyOp op) {
  Type wide = rows.wideType();
  Value columns = buildColumns(rows, op.getLogits(), op.getTargets(), op.getCoordinate());
  // Select the target's logit by a sum over the row. Each logit is then read only at its own index,
  // so that a gradient can overwrite the logits.
  return rows.reduce(
      {op.getLogits(), columns}, 0, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
        Value v =
            arith::IndexCastOp::create(b, l, a[1].getType(), linalg::IndexOp::create(b, l, 1));
        Value hit = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, v, a[1]);
        Value x = arith::SelectOp::create(b, l, hit, convertFloat(b, l, a[0], wide),
                                          constant(b, l, wide, 0));
        return arith::AddFOp::create(b, l, a[2], x);
      });
}

/// Builds lse[n] - picked[n] for each row n, or 0 if the row is ignored.
static Value buildNegativeLogLikelihood(RowBuilder &rows, CrossEntropyOp op, Value lse,
                                        Value picked) {
  Type wide = rows.wideType();
  std::optional<int64_t> ignore = op.getIgnoreIndex();
  return rows.mapRows({op.getTargets(), lse, picked}, wide,
                      [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                        Value v = arith::SubFOp::create(b, l, convertFloat(b, l, a[1], wide), a[2]);
                        if (!ignore)
                          return v;
                        return arith::SelectOp::create(b, l, buildIgnored(b, l, a[0], *ignore),
                                                       constant(b, l, wide, 0), v);
                      });
}

/// Builds the log-sum-exp of each row of `x`, as a `type`. If `isSlice`, all elements of a row may
/// be -inf, which is then the result.
static Value buildLse(RowBuilder &rows, Value x, Type type, bool isSlice) {
  Type wide = rows.wideType();
  Value max = buildMax(rows, x);
  if (isSlice)
    max = rows.mapRows(max, wide, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
      Value isEmpty = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, a[0],
                                            constant(b, l, wide, negativeInfinity));
      return arith::SelectOp::create(b, l, isEmpty, constant(b, l, wide, 0), a[0]);
    });
  Value sum = rows.reduce({x, max}, 0, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::AddFOp::create(b, l, a[2], buildShiftedExp(b, l, a[0], a[1], wide));
  });
  return rows.mapRows({max, sum}, type, [&](OpBuilder &b, Location l, ValueRange a) {
    Value v = arith::AddFOp::create(b, l, a[0], math::LogOp::create(b, l, a[1]));
    return convertFloat(b, l, v, type);
  });
}

/// Replaces the log-sum-exp and the target's logit of the own classes of a rank, `lse` and
/// `picked`, by those of all classes.
static void joinClasses(RowBuilder &rows, CrossEntropyOp op, OpBuilder &b, Value &lse,
                        Value &picked) {
  Location loc = op.getLoc();
  Type wide = rows.wideType();
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, op.getMeshAttr());
  int64_t ranks = 1;
  for (StringRef axis : op.getAxesAttr().getAsValueRange<StringAttr>())
    ranks *= mesh.getAxisSize(axis);
  // Returns whether an element is in column `column`, or in the last column if there is none.
  auto isColumn = [&](OpBuilder &b, Location l, Value column) -> Value {
    Value v = arith::IndexCastOp::create(b, l, b.getI64Type(), linalg::IndexOp::create(b, l, 1));
    if (!column)
      column = arith::ConstantOp::create(b, l, b.getI64IntegerAttr(ranks));
    return arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, v, column);
  };
  int64_t count = cast<RankedTensorType>(lse.getType()).getDimSize(0);
  RowBuilder parts(b, loc, rows.empty({count, ranks + 1}, wide), 1);
  Value own = parts.map({lse, picked, op.getCoordinate()}, wide,
                        [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                          Value other = arith::SelectOp::create(b, l, isColumn(b, l, a[2]), a[0],
                                                                constant(b, l, wide, 0));
                          return arith::SelectOp::create(b, l, isColumn(b, l, {}), a[1], other);
                        });
  auto sum = ReductionKindAttr::get(b.getContext(), ReductionKind::sum);
  Value all =
      AllReduceOp::create(b, loc, own.getType(), own, op.getMeshAttr(), op.getAxesAttr(), sum);
  Value lses = parts.map(all, wide, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
    return arith::SelectOp::create(b, l, isColumn(b, l, {}), constant(b, l, wide, negativeInfinity),
                                   a[0]);
  });
  lse = buildLse(parts, lses, elementType(op.getLse()), /*isSlice=*/false);
  picked = parts.reduce(all, 0, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
    Value last = arith::SelectOp::create(b, l, isColumn(b, l, {}), a[0], constant(b, l, wide, 0));
    return arith::AddFOp::create(b, l, a[1], last);
  });
}

SmallVector<Value> fsdp::lowerToLinalg(CrossEntropyOp op, OpBuilder &b) {
  RowBuilder rows(b, op.getLoc(), op.getLogits(), 1);
  Type wide = rows.wideType(), lossType = elementType(op.getLoss());
  bool isSlice = static_cast<bool>(op.getCoordinate());
  Value lse = buildLse(rows, op.getLogits(), isSlice ? wide : elementType(op.getLse()), isSlice);
  Value picked = buildTargetLogit(rows, op);
  if (isSlice)
    joinClasses(rows, op, b, lse, picked);
  SmallVector<Value> ins{rows.total(buildNegativeLogLikelihood(rows, op, lse, picked))};
  if (Value count = buildCount(rows, op.getTargets(), op.getIgnoreIndex()))
    ins.push_back(count);
  double all = cast<RankedTensorType>(op.getLogits().getType()).getDimSize(0);
  SmallVector<AffineMap> maps(ins.size() + 1, AffineMap::get(0, 0, b.getContext()));
  Value out = rows.empty({}, lossType);
  auto loss = linalg::GenericOp::create(
      b, op.getLoc(), out.getType(), ins, out, maps, ArrayRef<IteratorType>(),
      [&](OpBuilder &b, Location l, ValueRange a) {
        Value n = ins.size() == 2 ? buildDivisor(b, l, a[1], wide) : constant(b, l, wide, all);
        Value v = arith::DivFOp::create(b, l, a[0], n);
        linalg::YieldOp::create(b, l, convertFloat(b, l, v, lossType));
      });
  return {loss.getResult(0), lse};
}

SmallVector<Value> fsdp::lowerToLinalg(CrossEntropyGradOp op, OpBuilder &b) {
  RowBuilder rows(b, op.getLoc(), op.getLogits(), 1);
  Type wide = rows.wideType(), element = elementType(op.getResult());
  std::optional<int64_t> ignore = op.getIgnoreIndex();
  SmallVector<Value> ins{op.getTargets(), op.getGloss()};
  if (Value count = buildCount(rows, op.getTargets(), ignore))
    ins.push_back(count);
  double all = cast<RankedTensorType>(op.getLogits().getType()).getDimSize(0);
  Value scale = rows.mapRows(ins, wide, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
    Value n = ins.size() == 3 ? buildDivisor(b, l, a[2], wide) : constant(b, l, wide, all);
    Value v = arith::DivFOp::create(b, l, convertFloat(b, l, a[1], wide), n);
    if (!ignore)
      return v;
    return arith::SelectOp::create(b, l, buildIgnored(b, l, a[0], *ignore), constant(b, l, wide, 0),
                                   v);
  });
  Value columns = buildColumns(rows, op.getLogits(), op.getTargets(), op.getCoordinate());
  ins = {op.getLogits(), columns, op.getLse(), scale};
  return {rows.map(ins, element, [&](OpBuilder &b, Location l, ValueRange a) {
    Value p = buildShiftedExp(b, l, a[0], a[2], wide);
    Value v = arith::IndexCastOp::create(b, l, a[1].getType(), linalg::IndexOp::create(b, l, 1));
    Value hit = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, v, a[1]);
    Value minus = arith::SubFOp::create(b, l, p, constant(b, l, wide, 1));
    Value d = arith::SelectOp::create(b, l, hit, minus, p);
    return convertFloat(b, l, arith::MulFOp::create(b, l, d, a[3]), element);
  })};
}
