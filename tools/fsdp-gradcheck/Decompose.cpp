//===- Decompose.cpp - Raised ops as plain loops ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements, element by element, the formulas in the descriptions of the ops. The terms of a sum
// are added one after the other, in the order of their indices. As the descriptions require, types
// narrower than 32 bits are widened to f32.
//
//===----------------------------------------------------------------------===//

#include "Decompose.h"
#include "fsdp/IR/Decompositions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct Code {
  OpBuilder &b;
  Location loc;

  Value real(Type type, double v) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, v));
  }
  Value index(int64_t v) { return arith::ConstantIndexOp::create(b, loc, v); }
  Value toIndex(Value v) {
    return v.getType().isIndex()
               ? v
               : arith::IndexCastOp::create(b, loc, b.getIndexType(), v).getResult();
  }
  Value to(Value v, Type type) {
    auto from = cast<FloatType>(v.getType()), target = cast<FloatType>(type);
    if (from == target)
      return v;
    return from.getWidth() < target.getWidth()
               ? arith::ExtFOp::create(b, loc, type, v).getResult()
               : arith::TruncFOp::create(b, loc, type, v).getResult();
  }
  Value at(Value tensor, ValueRange where) {
    return tensor::ExtractOp::create(b, loc, tensor, where);
  }
  Value add(Value l, Value r) { return arith::AddFOp::create(b, loc, l, r); }
  Value sub(Value l, Value r) { return arith::SubFOp::create(b, loc, l, r); }
  Value mul(Value l, Value r) { return arith::MulFOp::create(b, loc, l, r); }
  Value select(Value c, Value l, Value r) { return arith::SelectOp::create(b, loc, c, l, r); }
  /// Returns two values for the target `t`: true unless the target is ignored, and the index of the
  /// target. For an ignored target, the index is 0.
  std::pair<Value, Value> target(Value t, std::optional<int64_t> ignored) {
    Value valid = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
    if (ignored) {
      Value none = arith::ConstantOp::create(b, loc, b.getIntegerAttr(t.getType(), *ignored));
      valid = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, t, none);
    }
    return {valid, select(valid, toIndex(t), index(0))};
  }
};
using Emit = function_ref<Value(Code &, ValueRange)>;
} // namespace

static Type widen(Type type) {
  return type.getIntOrFloatBitWidth() < 32 ? Float32Type::get(type.getContext()) : type;
}

/// Builds a tensor whose element at [i..] is emit(i..).
static Value forEach(OpBuilder &b, Location loc, RankedTensorType type, Emit emit) {
  return tensor::GenerateOp::create(b, loc, type, ValueRange{},
                                    [&](OpBuilder &b, Location loc, ValueRange at) {
                                      Code code{b, loc};
                                      tensor::YieldOp::create(b, loc, emit(code, at));
                                    });
}

/// Builds combine(...combine(start, emit(0))..., emit(count - 1)).
static Value fold(Code &code, int64_t count, Value start,
                  function_ref<Value(Code &, Value accumulator, Value i)> combine) {
  auto loop =
      scf::ForOp::create(code.b, code.loc, code.index(0), code.index(count), code.index(1), start,
                         [&](OpBuilder &b, Location loc, Value i, ValueRange accumulator) {
                           Code inner{b, loc};
                           scf::YieldOp::create(b, loc, combine(inner, accumulator[0], i));
                         });
  return loop.getResult(0);
}

static Value zeros(OpBuilder &b, Location loc, RankedTensorType type) {
  return forEach(b, loc, type,
                 [&](Code &code, ValueRange) { return code.real(type.getElementType(), 0); });
}

static void decompose(GatherRowsOp op, IRRewriter &b) {
  int64_t idsRank = cast<RankedTensorType>(op.getIds().getType()).getRank();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  b.replaceOp(op, forEach(b, op.getLoc(), type, [&](Code &code, ValueRange i) {
                Value row = code.toIndex(code.at(op.getIds(), i.take_front(idsRank)));
                return code.at(op.getTable(), {row, i.back()});
              }));
}

static void decompose(ScatterAddRowsOp op, IRRewriter &b) {
  Location loc = op.getLoc();
  auto idsType = cast<RankedTensorType>(op.getIds().getType());
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Value start = op.getInit() ? op.getInit() : zeros(b, loc, type);
  SmallVector<int64_t> extents(idsType.getShape());
  extents.push_back(type.getDimSize(1));
  Code outer{b, loc};
  SmallVector<Value> lower, upper, step;
  for (int64_t extent : extents) {
    lower.push_back(outer.index(0));
    upper.push_back(outer.index(extent));
    step.push_back(outer.index(1));
  }
  auto nest = scf::buildLoopNest(
      b, loc, lower, upper, step, start,
      [&](OpBuilder &b, Location loc, ValueRange i, ValueRange table) -> scf::ValueVector {
        Code code{b, loc};
        SmallVector<Value> at{code.toIndex(code.at(op.getIds(), i.drop_back())), i.back()};
        Value sum = code.add(code.at(table[0], at), code.at(op.getUpdates(), i));
        return {tensor::InsertOp::create(b, loc, sum, table[0], at)};
      });
  b.replaceOp(op, nest.results);
}

/// Builds max(1, number of rows whose target is not ignored), by which a mean is divided. Because
/// the divisor is at least 1, the mean over no rows is 0.
static Value countRows(Code &code, Value targets, std::optional<int64_t> ignored, Type type) {
  int64_t rows = cast<RankedTensorType>(targets.getType()).getDimSize(0);
  Value count = fold(code, rows, code.real(type, 0), [&](Code &c, Value sum, Value n) {
    Value valid = c.target(c.at(targets, n), ignored).first;
    return c.add(sum, c.select(valid, c.real(type, 1), c.real(type, 0)));
  });
  return arith::MaximumFOp::create(code.b, code.loc, count, code.real(type, 1));
}

static void decompose(CrossEntropyOp op, IRRewriter &b) {
  Location loc = op.getLoc();
  auto logits = cast<RankedTensorType>(op.getLogits().getType());
  auto lseType = cast<RankedTensorType>(op.getLse().getType()),
       lossType = cast<RankedTensorType>(op.getLoss().getType());
  Type work = widen(logits.getElementType());
  int64_t rows = logits.getDimSize(0), columns = logits.getDimSize(1);
  Value lse = forEach(b, loc, RankedTensorType::get({rows}, work), [&](Code &code, ValueRange n) {
    Value lowest = code.real(work, -std::numeric_limits<double>::infinity());
    Value m = fold(code, columns, lowest, [&](Code &c, Value m, Value v) -> Value {
      return arith::MaximumFOp::create(c.b, c.loc, m, c.to(c.at(op.getLogits(), {n[0], v}), work));
    });
    Value s = fold(code, columns, code.real(work, 0), [&](Code &c, Value s, Value v) {
      Value x = c.sub(c.to(c.at(op.getLogits(), {n[0], v}), work), m);
      return c.add(s, math::ExpOp::create(c.b, c.loc, x));
    });
    return code.add(math::LogOp::create(code.b, code.loc, s), m);
  });
  Value loss = forEach(b, loc, lossType, [&](Code &code, ValueRange) {
    Value sum = fold(code, rows, code.real(work, 0), [&](Code &c, Value sum, Value n) {
      auto [valid, t] = c.target(c.at(op.getTargets(), n), op.getIgnoreIndex());
      Value nll = c.sub(c.at(lse, n), c.to(c.at(op.getLogits(), {n, t}), work));
      return c.add(sum, c.select(valid, nll, c.real(work, 0)));
    });
    Value count = countRows(code, op.getTargets(), op.getIgnoreIndex(), work);
    return code.to(arith::DivFOp::create(code.b, code.loc, sum, count), lossType.getElementType());
  });
  Value lseOut = forEach(b, loc, lseType, [&](Code &code, ValueRange n) {
    return code.to(code.at(lse, n), lseType.getElementType());
  });
  b.replaceOp(op, {loss, lseOut});
}

static void decompose(CrossEntropyGradOp op, IRRewriter &b) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Type work = widen(type.getElementType());
  Code outer{b, op.getLoc()};
  Value count = countRows(outer, op.getTargets(), op.getIgnoreIndex(), work);
  b.replaceOp(
      op, forEach(b, op.getLoc(), type, [&](Code &c, ValueRange at) {
        auto [valid, t] = c.target(c.at(op.getTargets(), at[0]), op.getIgnoreIndex());
        Value x = c.sub(c.to(c.at(op.getLogits(), at), work), c.to(c.at(op.getLse(), at[0]), work));
        Value p = math::ExpOp::create(c.b, c.loc, x);
        Value hit = arith::CmpIOp::create(c.b, c.loc, arith::CmpIPredicate::eq, at[1], t);
        p = c.sub(p, c.select(hit, c.real(work, 1), c.real(work, 0)));
        Value g = arith::DivFOp::create(c.b, c.loc, c.to(c.at(op.getGloss(), {}), work), count);
        return c.to(c.select(valid, c.mul(g, p), c.real(work, 0)), type.getElementType());
      }));
}

static void decompose(linalg::SoftmaxOp op, IRRewriter &b) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  Type work = widen(type.getElementType());
  int64_t dim = op.getDimension(), columns = type.getDimSize(dim);
  SmallVector<int64_t> rowShape(type.getShape());
  rowShape.erase(rowShape.begin() + dim);
  auto element = [&](Code &c, ValueRange row, Value v) {
    SmallVector<Value> at(row);
    at.insert(at.begin() + dim, v);
    return c.to(c.at(op.getInput(), at), work);
  };
  auto rows = RankedTensorType::get(rowShape, work);
  Value maxima = forEach(b, op.getLoc(), rows, [&](Code &code, ValueRange row) {
    Value lowest = code.real(work, -std::numeric_limits<double>::infinity());
    return fold(code, columns, lowest, [&](Code &c, Value m, Value v) -> Value {
      return arith::MaximumFOp::create(c.b, c.loc, m, element(c, row, v));
    });
  });
  Value sums = forEach(b, op.getLoc(), rows, [&](Code &code, ValueRange row) {
    Value m = code.at(maxima, row);
    return fold(code, columns, code.real(work, 0), [&](Code &c, Value s, Value v) {
      return c.add(s, math::ExpOp::create(c.b, c.loc, c.sub(element(c, row, v), m)));
    });
  });
  b.replaceOp(
      op, forEach(b, op.getLoc(), type, [&](Code &c, ValueRange at) {
        SmallVector<Value> row(at);
        row.erase(row.begin() + dim);
        Value e =
            math::ExpOp::create(c.b, c.loc, c.sub(element(c, row, at[dim]), c.at(maxima, row)));
        return c.to(arith::DivFOp::create(c.b, c.loc, e, c.at(sums, row)), type.getElementType());
      }));
}

/// Lowers attention to loops. The loops compute the scores again for each element of the result. If
/// an AttentionGradOp uses the op, the decomposition of the compiler lowers the op instead.
static void decompose(AttentionOp op, IRRewriter &b) {
  if (llvm::any_of(op->getUsers(), llvm::IsaPred<AttentionGradOp>))
    return b.replaceOp(op, lowerToLinalg(op, b));
  auto q = cast<RankedTensorType>(op.getQ().getType()),
       k = cast<RankedTensorType>(op.getK().getType());
  auto lseType = cast<RankedTensorType>(op.getLse().getType()),
       oType = cast<RankedTensorType>(op.getO().getType());
  Type work = lseType.getElementType();
  int64_t keys = k.getDimSize(2);
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  auto kvHead = [&](Code &c, Value h) -> Value {
    return arith::DivUIOp::create(c.b, c.loc, h, c.index(q.getDimSize(1) / k.getDimSize(1)));
  };
  auto score = [&](Code &c, ValueRange row, Value key) {
    Value dot = fold(c, q.getDimSize(3), c.real(work, 0), [&](Code &c, Value sum, Value d) {
      Value x = c.to(c.at(op.getQ(), {row[0], row[1], row[2], d}), work);
      Value y = c.to(c.at(op.getK(), {row[0], kvHead(c, row[1]), key, d}), work);
      return c.add(sum, c.mul(x, y));
    });
    SmallVector<Value> at{row[0], row[1], row[2], key};
    Value s = c.mul(dot, c.real(work, op.getScale().convertToDouble()));
    if (!op.getScoreMod().empty()) {
      SmallVector<Value> arguments{s};
      llvm::append_range(arguments, at);
      s = inlineFunction(c.b, op.getScoreMod(), arguments, op.getCaptures());
    }
    if (op.getMaskMod().empty())
      return s;
    return c.select(inlineFunction(c.b, op.getMaskMod(), at, op.getCaptures()), s,
                    c.real(work, lowest));
  };
  auto isLowest = [&](Code &c, Value v) -> Value {
    return arith::CmpFOp::create(c.b, c.loc, arith::CmpFPredicate::OEQ, v, c.real(work, lowest));
  };
  Value lse = forEach(b, op.getLoc(), lseType, [&](Code &code, ValueRange row) {
    Value m = fold(code, keys, code.real(work, lowest), [&](Code &c, Value m, Value key) -> Value {
      return arith::MaximumFOp::create(c.b, c.loc, m, score(c, row, key));
    });
    Value shift = code.select(isLowest(code, m), code.real(work, 0), m);
    Value z = fold(code, keys, code.real(work, 0), [&](Code &c, Value z, Value key) {
      return c.add(z, math::ExpOp::create(c.b, c.loc, c.sub(score(c, row, key), shift)));
    });
    return code.select(isLowest(code, m), m, code.add(m, math::LogOp::create(code.b, code.loc, z)));
  });
  Value o = forEach(b, op.getLoc(), oType, [&](Code &code, ValueRange at) {
    Value row = code.at(lse, at.drop_back());
    Value sum = fold(code, keys, code.real(work, 0), [&](Code &c, Value sum, Value key) {
      Value p = math::ExpOp::create(c.b, c.loc, c.sub(score(c, at, key), row));
      if (!op.getWeightMod().empty())
        p = c.select(isLowest(c, score(c, at, key)), c.real(work, 0),
                     c.mul(p, inlineFunction(c.b, op.getWeightMod(), {at[0], at[1], at[2], key},
                                             op.getCaptures())));
      return c.add(sum,
                   c.mul(p, c.to(c.at(op.getV(), {at[0], kvHead(c, at[1]), key, at[3]}), work)));
    });
    return code.to(code.select(isLowest(code, row), code.real(work, 0), sum),
                   oType.getElementType());
  });
  b.replaceOp(op, {o, lse});
}

static void decompose(AttentionGradOp op, IRRewriter &b) { b.replaceOp(op, lowerToLinalg(op, b)); }
static void decompose(RandomOp op, IRRewriter &b) { b.replaceOp(op, lowerToLinalg(op, b)); }

/// math.clampf is decomposed here, because --math-expand-ops of MLIR 22 swaps the two bounds of the
/// op.
static void decompose(math::ClampFOp op, IRRewriter &b) {
  Value low = arith::MaximumFOp::create(b, op.getLoc(), op.getValue(), op.getMin());
  b.replaceOp(op, arith::MinimumFOp::create(b, op.getLoc(), low, op.getMax()));
}

LogicalResult gradcheck::decomposeRaisedOps(ModuleOp module) {
  IRRewriter b(module.getContext());
  SmallVector<Operation *> raised;
  // Attention is decomposed first, because its gradient may create scatter ops.
  module.walk([&](Operation *op) {
    if (isa<AttentionOp, AttentionGradOp>(op))
      raised.push_back(op);
  });
  for (Operation *op : raised) {
    b.setInsertionPoint(op);
    llvm::TypeSwitch<Operation *>(op).Case<AttentionOp, AttentionGradOp>(
        [&](auto known) { decompose(known, b); });
  }
  raised.clear();
  module.walk([&](Operation *op) {
    if (isa<GatherRowsOp, ScatterAddRowsOp, CrossEntropyOp, CrossEntropyGradOp, linalg::SoftmaxOp,
            RandomOp, math::ClampFOp>(op))
      raised.push_back(op);
  });
  for (Operation *op : raised) {
    b.setInsertionPoint(op);
    llvm::TypeSwitch<Operation *>(op)
        .Case<GatherRowsOp, ScatterAddRowsOp, CrossEntropyOp, CrossEntropyGradOp, linalg::SoftmaxOp,
              RandomOp, math::ClampFOp>([&](auto known) { decompose(known, b); });
  }
  WalkResult rest = module.walk([&](Operation *op) {
    if (!isa_and_nonnull<FSDPDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitError("expected ops of the model contract, found '")
        << op->getName() << "', which fsdp-gradcheck cannot run";
    return WalkResult::interrupt();
  });
  return failure(rest.wasInterrupted());
}
