//===- ExpandRing.cpp - Attention to the blocks of a ring -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   step     0           1           2             block of rank (c - j) mod C in step j
//   rank 0   q0: k0 v0   q0: k2 v2   q0: k1 v1
//   rank 1   q1: k1 v1   q1: k0 v0   q1: k2 v2     ──> shift to the next rank
//   rank 2   q2: k2 v2   q2: k1 v1   q2: k0 v0
//
//   %o, %lse = attention %q, %k, %v ring 2   =>   %o0, %lse0 = attention %q, %k, %v
//                                                 %k1 = shift %k site 0, %v1 = shift %v site 0
//                                                 %o1, %lse1 = attention %q, %k1, %v1
//                                                 %o, %lse = merge of both
//
//  1. Step j attends to the block of keys and values of rank (c - j) mod C. The block arrives by a
//     shift of the block of step j - 1. Functions of attention read the index of a key in the whole
//     sequence: a captured number tells the rank whose block it is.
//  2. Merge the result with that of the steps before: lse = log(exp lse + exp lse_j) and
//     o = o · exp(lse_o - lse) + o_j · exp(lse_j - lse). A row without keys in both has the weights
//     0. Sums of narrow types stay f32 until the last merge.
//  3. In the backward, keys and values travel again. With the log-sum-exp and the result of the
//     forward, the gradients of a step are terms of the gradients of all keys. Those of Q and of
//     captured tensors are added on the rank. The sums for keys and values travel with the blocks:
//     a rank adds its term of step j to the sum that arrives, and after C - 1 shifts the sum is on
//     the rank that has the block, which adds its own term of step 0.
//
// Per attention, a rank sends C - 1 blocks of keys and values in the forward, and again in the
// backward, and C - 1 blocks of their gradients, all but the first as f32. It never has more than
// three blocks of keys. O(C) ops per attention.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/Decompositions.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_EXPANDRINGPASS
#include "fsdp/Update/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Returns the type in which values of the type `element` are added.
static Type getWide(Type element) {
  return element.isF64() ? element : Type(Float32Type::get(element.getContext()));
}

namespace {
/// The result of attention to some blocks.
struct Partial {
  Value o, lse;
};

class RingExpander {
public:
  explicit RingExpander(func::FuncOp func) : func(func) {}

  LogicalResult expand(AttentionOp op);
  LogicalResult expand(AttentionGradOp op);

private:
  using Body = function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)>;
  template <typename Op>
  void begin(Op op);
  template <typename Op>
  LogicalResult checkCoordinate(Op op);
  SmallVector<Value> map(ImplicitLocOpBuilder &b, ValueRange inputs, ArrayRef<int64_t> shape,
                         TypeRange elements, Body body);
  Value shift(ImplicitLocOpBuilder &b, Value value, int64_t site);
  Value getBlockOwner(int64_t step);
  SmallVector<Value> getCaptures(ValueRange captures, int64_t step);
  void countKeys(Region &function, unsigned key);
  void copyFunctions(Operation *op, Operation *part);
  Partial merge(ImplicitLocOpBuilder &b, Partial x, Partial y, Type element);
  Value add(ImplicitLocOpBuilder &b, Value x, Value y, Type element);

  func::FuncOp func;
  int64_t ranks = 0, keys = 0; ///< of the op that is expanded: blocks, and keys of a block
  bool striped = false, readsKeys = false;
  Value coordinate; ///< tensor with the number of this rank, if functions read the index of a key
  /// for the coordinate and each step: tensor with the rank whose block the rank has
  DenseMap<std::pair<Value, int64_t>, Value> owners;
};
} // namespace

/// Returns the functions of an op, each with the number of its argument for the key.
static SmallVector<std::pair<Region *, unsigned>> getFunctions(Operation *op) {
  static constexpr unsigned keys[] = {4, 3, 3, 5};
  SmallVector<std::pair<Region *, unsigned>> functions;
  for (auto [region, key] : llvm::zip(op->getRegions(), keys))
    if (!region.empty())
      functions.push_back({&region, key});
  return functions;
}

template <typename Op>
void RingExpander::begin(Op op) {
  ranks = *op.getRing();
  striped = op.getStriped();
  keys = typeOf(op.getK()).getDimSize(2);
  readsKeys = llvm::any_of(getFunctions(op), [](auto &function) {
    return !function.first->front().getArgument(function.second).use_empty();
  });
}

template <typename Op>
LogicalResult RingExpander::checkCoordinate(Op op) {
  if (!readsKeys)
    return success();
  ValueRange captures = op.getCaptures();
  if (!captures.empty() && typeOf(captures.back()).getRank() == 0 &&
      typeOf(captures.back()).getElementType().isInteger(64)) {
    coordinate = captures.back();
    return success();
  }
  return op.emitError("has functions that read the index of a key; expected the last captured "
                      "tensor to be a tensor<i64> with the coordinate of the rank");
}

/// Computes each element of tensors of `shape` from the elements of `inputs` at the same indices.
/// An input may lack the last dimension.
SmallVector<Value> RingExpander::map(ImplicitLocOpBuilder &b, ValueRange inputs,
                                     ArrayRef<int64_t> shape, TypeRange elements, Body body) {
  unsigned rank = shape.size();
  SmallVector<AffineExpr> dims;
  for (unsigned i = 0; i < rank; ++i)
    dims.push_back(b.getAffineDimExpr(i));
  SmallVector<AffineMap> maps;
  for (Value input : inputs)
    maps.push_back(AffineMap::get(rank, 0, ArrayRef(dims).take_front(typeOf(input).getRank()),
                                  b.getContext()));
  SmallVector<Value> inits;
  for (Type element : elements)
    inits.push_back(tensor::EmptyOp::create(b, shape, element));
  maps.append(inits.size(), b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, TypeRange(ValueRange(inits)), inputs, inits, maps, loops,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        ImplicitLocOpBuilder in(loc, nested);
        linalg::YieldOp::create(in, body(in, args.take_front(inputs.size())));
      });
  return SmallVector<Value>(generic.getResults());
}

Value RingExpander::shift(ImplicitLocOpBuilder &b, Value value, int64_t site) {
  return ShiftOp::create(b, value.getType(), value, FlatSymbolRefAttr::get(b.getContext(), "mesh"),
                         b.getStrArrayAttr({contextAxis}), b.getI64IntegerAttr(site));
}

/// Returns a tensor with the rank whose block this rank has in a step.
Value RingExpander::getBlockOwner(int64_t step) {
  if (step == 0)
    return coordinate;
  Value &owner = owners[{coordinate, step}];
  if (owner)
    return owner;
  ImplicitLocOpBuilder b(coordinate.getLoc(), func.getContext());
  b.setInsertionPointAfterValue(coordinate);
  return owner = map(b, coordinate, {}, b.getI64Type(),
                     [&](ImplicitLocOpBuilder &in, ValueRange args) -> SmallVector<Value> {
                       auto constant = [&](int64_t value) -> Value {
                         return arith::ConstantOp::create(in, in.getI64IntegerAttr(value));
                       };
                       Value sum = arith::AddIOp::create(in, args[0], constant(ranks - step));
                       return {arith::RemUIOp::create(in, sum, constant(ranks))};
                     })[0];
}

SmallVector<Value> RingExpander::getCaptures(ValueRange captures, int64_t step) {
  SmallVector<Value> all(captures);
  if (readsKeys)
    all.push_back(getBlockOwner(step));
  return all;
}

/// Lets a function of a step read the index of a key in the whole sequence.
void RingExpander::countKeys(Region &function, unsigned key) {
  if (!readsKeys)
    return;
  Block &body = function.front();
  Location loc = body.getTerminator()->getLoc();
  BlockArgument owner =
      body.addArgument(RankedTensorType::get({}, IntegerType::get(func.getContext(), 64)), loc);
  countInWhole(loc, body.getArgument(key), owner, ranks, keys, striped);
}

/// Copies the functions of `op` to `part`, which is attention to the block of a step.
void RingExpander::copyFunctions(Operation *op, Operation *part) {
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(op->getRegions(), part->getRegions()))
    from.cloneInto(&to, mapping);
  for (auto [function, key] : getFunctions(part))
    countKeys(*function, key);
}

/// Merges the results of attention to disjoint sets of keys. The merged result has elements of the
/// type `element`.
Partial RingExpander::merge(ImplicitLocOpBuilder &b, Partial x, Partial y, Type element) {
  Type wide = typeOf(x.lse).getElementType();
  auto constant = [&](ImplicitLocOpBuilder &in, double value) -> Value {
    return arith::ConstantOp::create(in, in.getFloatAttr(wide, value));
  };
  SmallVector<Value> rows =
      map(b, {x.lse, y.lse}, typeOf(x.lse).getShape(), {wide, wide, wide},
          [&](ImplicitLocOpBuilder &in, ValueRange lse) -> SmallVector<Value> {
            Value none = constant(in, -std::numeric_limits<double>::infinity()),
                  most = arith::MaximumFOp::create(in, lse[0], lse[1]);
            Value isNone = arith::CmpFOp::create(in, arith::CmpFPredicate::OEQ, most, none);
            Value base = arith::SelectOp::create(in, isNone, constant(in, 0), most);
            SmallVector<Value> parts;
            for (Value one : lse)
              parts.push_back(math::ExpOp::create(in, arith::SubFOp::create(in, one, base)));
            Value sum = arith::AddFOp::create(in, parts[0], parts[1]);
            Value whole = arith::SelectOp::create(in, isNone, constant(in, 1), sum);
            Value merged = arith::AddFOp::create(in, most, math::LogOp::create(in, whole));
            return {merged, arith::DivFOp::create(in, parts[0], whole),
                    arith::DivFOp::create(in, parts[1], whole)};
          });
  Value o = map(
      b, {x.o, y.o, rows[1], rows[2]}, typeOf(x.o).getShape(), element,
      [&](ImplicitLocOpBuilder &in, ValueRange args) -> SmallVector<Value> {
        Value first =
                  arith::MulFOp::create(in, convertFloat(in, in.getLoc(), args[0], wide), args[2]),
              second =
                  arith::MulFOp::create(in, convertFloat(in, in.getLoc(), args[1], wide), args[3]);
        return {convertFloat(in, in.getLoc(), arith::AddFOp::create(in, first, second), element)};
      })[0];
  return {o, rows[0]};
}

/// Adds two tensors. The result has elements of the type `element`.
Value RingExpander::add(ImplicitLocOpBuilder &b, Value x, Value y, Type element) {
  Type wide = getWide(element);
  return map(b, {x, y}, typeOf(x).getShape(), element,
             [&](ImplicitLocOpBuilder &in, ValueRange args) -> SmallVector<Value> {
               Value sum = arith::AddFOp::create(in, convertFloat(in, in.getLoc(), args[0], wide),
                                                 convertFloat(in, in.getLoc(), args[1], wide));
               return {convertFloat(in, in.getLoc(), sum, element)};
             })[0];
}

LogicalResult RingExpander::expand(AttentionOp op) {
  begin(op);
  if (failed(checkCoordinate(op)))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value k = op.getK(), v = op.getV();
  Type narrow = typeOf(op.getO()).getElementType();
  Partial result;
  for (int64_t step = 0; step < ranks; ++step) {
    if (step) {
      k = shift(b, k, /*site=*/0);
      v = shift(b, v, /*site=*/0);
    }
    auto part = AttentionOp::create(b, op.getO().getType(), op.getLse().getType(), op.getQ(), k, v,
                                    getCaptures(op.getCaptures(), step), op.getScaleAttr(),
                                    IntegerAttr(), UnitAttr());
    copyFunctions(op, part);
    Type element = step + 1 == ranks ? narrow : getWide(narrow);
    Partial next{part.getO(), part.getLse()};
    result = step ? merge(b, result, next, element) : next;
  }
  op.replaceAllUsesWith(ValueRange{result.o, result.lse});
  op.erase();
  return success();
}

LogicalResult RingExpander::expand(AttentionGradOp op) {
  begin(op);
  if (failed(checkCoordinate(op)))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value k = op.getK(), v = op.getV();
  auto elementOf = [&](unsigned result) { return typeOf(op->getResult(result)).getElementType(); };
  SmallVector<Value> first, sums; // of the results
  for (int64_t step = 0; step < ranks; ++step) {
    if (step) {
      k = shift(b, k, /*site=*/1);
      v = shift(b, v, /*site=*/1);
    }
    auto part = AttentionGradOp::create(
        b, op->getResultTypes(), op.getQ(), k, v, op.getO(), op.getLse(), op.getDout(),
        getCaptures(op.getCaptures(), step), op.getScaleAttr(), IntegerAttr(), UnitAttr());
    copyFunctions(op, part);
    if (step == 0)
      first = sums = SmallVector<Value>(part->getResults());
    for (unsigned i = 0; step && i < sums.size(); ++i) {
      bool travels = i == 1 || i == 2, isLast = step + 1 == ranks;
      Value term = part->getResult(i);
      if (travels && step == 1)
        sums[i] = term;
      else if (travels)
        sums[i] = add(b, shift(b, sums[i], /*site=*/1), term, getWide(elementOf(i)));
      else
        sums[i] = add(b, sums[i], term, isLast ? elementOf(i) : getWide(elementOf(i)));
    }
  }
  for (unsigned i : {1, 2})
    sums[i] = add(b, shift(b, sums[i], /*site=*/1), first[i], elementOf(i));
  op->replaceAllUsesWith(sums);
  op.erase();
  return success();
}

namespace {
struct ExpandRingPass : fsdp::impl::ExpandRingPassBase<ExpandRingPass> {
  void runOnOperation() override {
    RingExpander expander(getOperation());
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      auto forward = dyn_cast<AttentionOp>(op);
      auto backward = dyn_cast<AttentionGradOp>(op);
      if ((forward && forward.getRing()) || (backward && backward.getRing()))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      auto forward = dyn_cast<AttentionOp>(op);
      if (failed(forward ? expander.expand(forward) : expander.expand(cast<AttentionGradOp>(op))))
        return signalPassFailure();
      ++numExpanded;
    }
  }
};
} // namespace
