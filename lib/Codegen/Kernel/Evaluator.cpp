//===- Evaluator.cpp - Code for single elements of tensors ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel is a graph of tensors. To emit the code for one element of a tensor, the evaluator
// follows the operands backwards:
//
//   evaluate(%y, [row, 64 k + lane])        %y = generic(%x, %m) {sub}
//     evaluate(%x, [row, 64 k + lane])        -> vector.load %x[768 row + 64 k]
//     evaluate(%m, [row])                     -> the row's scalar
//     arith.subf : vector<64xf32>             -> %m is broadcast
//
// Views (reshapes, slices, concatenations, padding) only change the indices. Elements of tensors in
// memory are loaded (ElementAddress.cpp). If the lanes of a vector come from two inputs of a view,
// both inputs are evaluated at clamped indices, and a select combines the results. If possible, the
// innermost loop is split at the positions where the view changes from one input to another. The
// select is then unnecessary (see EvaluationState::splits).
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
#include "KernelSteps.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fsdp;

Evaluator::Evaluator(OpBuilder &builder, Location loc, EvaluationState &state, int64_t lanes)
    : builder(builder), loc(loc), state(state), lanes(lanes) {
  dims.push_back({Value(), 0, lanes - 1});
}

AffineExpr Evaluator::addDim(Value value, int64_t lo, int64_t hi) {
  dims.push_back({value, lo, hi});
  return getAffineDimExpr(dims.size() - 1, builder.getContext());
}

Evaluator Evaluator::withLanes(int64_t count) const {
  Evaluator copy(*this);
  copy.lanes = count;
  copy.dims[0].hi = count - 1;
  // Forget the known vectors, because they have the old number of lanes. Known scalars can be
  // reused.
  for (auto it = copy.known.begin(); it != copy.known.end();)
    it = isa<VectorType>(it->second.getType()) ? copy.known.erase(it) : std::next(it);
  copy.strided.clear();
  return copy;
}

Value Evaluator::zero(Type element) {
  return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
}

Value Evaluator::refuse(const Twine &reason, Type element) {
  if (state.refusal.empty())
    state.refusal = reason.str();
  return zero(element);
}

Value Evaluator::broadcast(Value value) {
  if (lanes == 1 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(builder, loc, VectorType::get({lanes}, value.getType()),
                                     value);
}

/// Clones an op on scalars or vectors. The result is a vector if any operand is a vector.
Value Evaluator::clone(Operation *op, ValueRange operands) {
  SmallVector<Value> values(operands);
  bool wide = llvm::any_of(values, [](Value v) { return isa<VectorType>(v.getType()); });
  Type type = op->getResult(0).getType();
  if (wide) {
    for (Value &value : values)
      value = broadcast(value);
    type = VectorType::get({lanes}, type);
  }
  OperationState description(loc, op->getName(), values, type, op->getAttrs());
  description.propertiesAttr = op->getPropertiesAsAttribute();
  return builder.create(description)->getResult(0);
}

static bool isElementwise(Operation *op) {
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         op->getNumResults() == 1 && op->getNumRegions() == 0 && isPure(op) &&
         OpTrait::hasElementwiseMappableTraits(op);
}

Value Evaluator::evaluateScalar(Value value) {
  if (Value row = state.rowValues.lookup(value))
    return row;
  Key key{value.getAsOpaquePointer(), {}};
  if (auto found = known.find(key); found != known.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  Value result;
  if (!op) {
    result = refuse("a scalar argument", value.getType());
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    result = clone(constant, {});
  } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<Subscript> indices;
    for (Value index : extract.getIndices())
      indices.push_back(toSubscript(evaluateScalar(index)));
    result = evaluate(extract.getTensor(), indices);
    if (isa<VectorType>(result.getType()))
      result = refuse("a scalar that differs between lanes", value.getType());
  } else if (isElementwise(op)) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(evaluateScalar(operand));
    result = clone(op, operands);
  } else {
    result = refuse("the op '" + op->getName().getStringRef() + "'", value.getType());
  }
  known[key] = result;
  return result;
}

Value Evaluator::evaluate(Value tensor, ArrayRef<AffineExpr> indices) {
  SmallVector<Subscript> subscripts;
  for (AffineExpr index : indices)
    subscripts.push_back({index, {}});
  return evaluate(tensor, subscripts);
}

Value Evaluator::evaluate(Value tensor, ArrayRef<Subscript> indices) {
  Key key{tensor.getAsOpaquePointer(), {}};
  SmallVector<Subscript> simple;
  SmallVector<AffineExpr> exprs;
  bool precise = true;
  for (const Subscript &index : indices) {
    simple.push_back({simplify(index.expr), index.lanes});
    exprs.push_back(simple.back().expr);
    precise &= !index.lanes;
    key.second.push_back(simple.back().expr.getAsOpaquePointer());
    key.second.push_back(index.lanes.getAsOpaquePointer());
  }
  if (state.stored.count(tensor) || state.rowValues.count(tensor) || isa<BlockArgument>(tensor))
    if (state.onRead)
      state.onRead(tensor, exprs, precise);
  if (Value row = state.rowValues.lookup(tensor))
    return row;
  if (auto found = known.find(key); found != known.end())
    return found->second;
  Value result;
  auto type = cast<RankedTensorType>(tensor.getType());
  if (auto found = state.stored.find(tensor); found != state.stored.end())
    result = load(found->second, type, simple);
  else
    result = evaluateOp(tensor, simple);
  known[key] = result;
  return result;
}

/// Inserts zero indices for the unit dimensions that a slice drops.
static SmallVector<Subscript> expandDropped(ArrayRef<Subscript> indices,
                                            const llvm::SmallBitVector &dropped, AffineExpr zero) {
  SmallVector<Subscript> all;
  unsigned next = 0;
  for (unsigned i = 0; i < dropped.size(); ++i)
    all.push_back(dropped.test(i) ? Subscript{zero, {}} : indices[next++]);
  return all;
}

Value Evaluator::evaluateOp(Value tensor, ArrayRef<Subscript> indices) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Type element = type.getElementType();
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return refuse("an argument without memory", element);
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::ConstantOp constant) -> Value {
        auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
        if (!dense)
          return refuse("a constant without its values", element);
        if (dense.isSplat())
          return arith::ConstantOp::create(builder, loc,
                                           cast<TypedAttr>(dense.getSplatValue<Attribute>()));
        return load({table(constant), 0}, type, indices);
      })
      .Case([&](tensor::EmptyOp) { return zero(element); })
      .Case([&](linalg::FillOp fill) { return evaluateScalar(fill.getInputs()[0]); })
      .Case([&](tensor::SplatOp splat) { return evaluateScalar(splat.getInput()); })
      .Case([&](tensor::FromElementsOp elements) { return evaluateElements(elements, indices); })
      .Case([&](linalg::GenericOp generic) {
        return evaluateGeneric(generic, cast<OpResult>(tensor).getResultNumber(), indices);
      })
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
          [&](auto reshape) { return evaluateReshape(reshape.getSrc(), type, indices); })
      .Case([&](tensor::ExtractSliceOp slice) { return evaluateSlice(slice, indices); })
      .Case<tensor::InsertSliceOp, tensor::InsertOp>(
          [&](auto insert) { return evaluateInsert(insert, indices); })
      .Case([&](tensor::ConcatOp concat) { return evaluateConcat(concat, indices); })
      .Case([&](tensor::PadOp pad) { return evaluatePad(pad, indices); })
      .Case([&](GatherRowsOp gather) {
        Subscript row = toIndex(evaluate(gather.getIds(), indices.drop_back()));
        return evaluate(gather.getTable(), {row, indices.back()});
      })
      .Default([&](Operation *other) {
        return refuse("the op '" + other->getName().getStringRef() + "'", element);
      });
}

/// Converts an integer read from memory to an index.
Subscript Evaluator::toIndex(Value id) {
  Type index = builder.getIndexType();
  if (auto vector = dyn_cast<VectorType>(id.getType()))
    index = vector.clone(index);
  return toSubscript(arith::IndexCastOp::create(builder, loc, index, id));
}

Value Evaluator::evaluateReshape(Value source, RankedTensorType type, ArrayRef<Subscript> indices) {
  SmallVector<AffineExpr> exprs;
  for (const Subscript &index : indices) {
    if (index.lanes)
      return refuse("a reshape at positions that depend on data", type.getElementType());
    exprs.push_back(index.expr);
  }
  AffineExpr linear = fsdp::linearise(subscripts(), exprs, type.getShape(), builder.getContext());
  return evaluate(source, fsdp::delinearise(subscripts(), linear,
                                            cast<RankedTensorType>(source.getType()).getShape()));
}

Value Evaluator::evaluateSlice(tensor::ExtractSliceOp op, ArrayRef<Subscript> indices) {
  if (!ShapedType::isStaticShape(op.getStaticSizes()) ||
      !ShapedType::isStaticShape(op.getStaticStrides()))
    return refuse("a slice of dynamic size", op.getType().getElementType());
  SmallVector<Subscript> source = expandDropped(indices, op.getDroppedDims(), constant(0));
  for (auto [i, offset] : llvm::enumerate(op.getMixedOffsets())) {
    source[i] = scale(source[i], op.getStaticStrides()[i]);
    if (auto fixed = getConstantIntValue(offset))
      source[i] = add(source[i], *fixed);
    else
      source[i] = sum(source[i], toSubscript(evaluateScalar(cast<Value>(offset))));
  }
  return evaluate(op.getSource(), source);
}

Value Evaluator::evaluateElements(tensor::FromElementsOp op, ArrayRef<Subscript> indices) {
  auto type = op.getType();
  if (type.getNumElements() == 1)
    return evaluateScalar(op.getElements()[0]);
  if (type.getNumElements() > 64 ||
      llvm::any_of(indices, [](const Subscript &i) { return bool(i.lanes); }))
    return refuse("many single elements", type.getElementType());
  SmallVector<AffineExpr> exprs;
  for (const Subscript &index : indices)
    exprs.push_back(index.expr);
  AffineExpr linear = fsdp::linearise(subscripts(), exprs, type.getShape(), builder.getContext());
  Value at = toValue({linear, {}});
  Value result = evaluateScalar(op.getElements().back());
  for (int64_t i = type.getNumElements() - 2; i >= 0; --i) {
    Value here = arith::ConstantIndexOp::create(builder, loc, i),
          value = evaluateScalar(op.getElements()[i]);
    if (isa<VectorType>(at.getType())) {
      here = broadcast(here);
      value = broadcast(value);
      result = broadcast(result);
    }
    Value is = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, at, here);
    result = arith::SelectOp::create(builder, loc, is, value, result);
  }
  return result;
}

Value Evaluator::evaluateGeneric(linalg::GenericOp op, unsigned result,
                                 ArrayRef<Subscript> indices) {
  Type element = getElementTypeOrSelf(op.getResult(result).getType());
  AffineMap map = op.getIndexingMapMatchingResult(op->getResult(result));
  if (op.getNumParallelLoops() != op.getNumLoops())
    return refuse("a reduction inside an expression", element);
  if (!map.isPermutation())
    return refuse("a map whose result does not cover its loops", element);
  SmallVector<Subscript> loops(op.getNumLoops());
  for (auto [index, expr] : llvm::zip_equal(indices, map.getResults()))
    loops[cast<AffineDimExpr>(expr).getPosition()] = index;
  return evaluateBody(op, op.getBody()->getTerminator()->getOperand(result), loops);
}

Value Evaluator::advance(linalg::GenericOp op, unsigned number, Value before,
                         ArrayRef<AffineExpr> loops) {
  SmallVector<Subscript> subscripts;
  for (AffineExpr loop : loops)
    subscripts.push_back({simplify(loop), {}});
  BlockArgument result = op.getRegionOutputArgs()[number];
  state.carried[result] = before;
  Value after = evaluateBody(op, op.getBody()->getTerminator()->getOperand(number), subscripts);
  state.carried.erase(result);
  return broadcast(after);
}

/// If `value` is an affine function of the loops, returns the index to which this function
/// evaluates at the loop position `loops`. Otherwise returns nothing.
std::optional<Subscript> Evaluator::positionOf(Value value, ArrayRef<Subscript> loops) {
  if (auto index = value.getDefiningOp<linalg::IndexOp>())
    return loops[index.getDim()];
  auto apply = value.getDefiningOp<affine::AffineApplyOp>();
  if (!apply)
    return std::nullopt;
  SmallVector<AffineExpr> operands;
  for (Value operand : apply.getMapOperands()) {
    std::optional<Subscript> position = positionOf(operand, loops);
    if (!position || position->lanes)
      return std::nullopt;
    operands.push_back(position->expr);
  }
  unsigned numDims = apply.getAffineMap().getNumDims();
  AffineExpr expr = apply.getAffineMap().getResult(0).replaceDimsAndSymbols(
      ArrayRef(operands).take_front(numDims), ArrayRef(operands).drop_front(numDims));
  // Refuses expressions that may be negative or that contain ceildiv, because Subscripts expects
  // non-negative values.
  return expr.isPureAffine() && subscripts().range(expr).lo >= 0 && expr.walk([](AffineExpr e) {
    return e.getKind() == AffineExprKind::CeilDiv ? WalkResult::interrupt() : WalkResult::advance();
  }) == WalkResult::advance()
             ? std::optional(Subscript{expr, {}})
             : std::nullopt;
}

Value Evaluator::evaluateBody(linalg::GenericOp op, Value value, ArrayRef<Subscript> loops) {
  if (value.getParentBlock() != op.getBody())
    return evaluateScalar(value);
  Key key{value.getAsOpaquePointer(), {}};
  for (const Subscript &loop : loops) {
    key.second.push_back(loop.expr.getAsOpaquePointer());
    key.second.push_back(loop.lanes.getAsOpaquePointer());
  }
  // A value that depends on the result so far of a reduction must not be reused, because the result
  // so far changes with each evaluation.
  bool carries = !state.carried.empty() &&
                 state.carried.begin()->first.getParentBlock() == op.getBody() &&
                 dependsOnOutput(op, value);
  if (auto found = known.find(key); found != known.end() && !carries)
    return found->second;
  Value result = isa<BlockArgument>(value) ? evaluateOperand(op, cast<BlockArgument>(value), loops)
                                           : evaluateInner(op, value, loops);
  if (!carries)
    known[key] = result;
  return result;
}

/// Evaluates an argument of the body: the element that the body reads from the operand at the loop
/// position `loops`.
Value Evaluator::evaluateOperand(linalg::GenericOp op, BlockArgument argument,
                                 ArrayRef<Subscript> loops) {
  if (Value value = state.carried.lookup(argument))
    return value;
  OpOperand &operand = op->getOpOperand(argument.getArgNumber());
  if (!isa<RankedTensorType>(operand.get().getType()))
    return evaluateScalar(operand.get());
  SmallVector<Subscript> indices;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
    // Each result of the map is a single loop, or a sum of loops with coefficients. Such sums come
    // from slices.
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      indices.push_back(loops[dim.getPosition()]);
      continue;
    }
    SmallVector<AffineExpr> replacements;
    for (const Subscript &loop : loops) {
      if (loop.lanes)
        return refuse("an affine access at positions that depend on data", argument.getType());
      replacements.push_back(loop.expr);
    }
    indices.push_back({expr.replaceDims(replacements), {}});
  }
  return evaluate(operand.get(), indices);
}

/// Evaluates `value`, a result of an op inside the body, at the loop position `loops`.
Value Evaluator::evaluateInner(linalg::GenericOp op, Value value, ArrayRef<Subscript> loops) {
  Operation *definition = value.getDefiningOp();
  if (std::optional<Subscript> position = positionOf(value, loops))
    return toValue(*position);
  if (auto extract = dyn_cast<tensor::ExtractOp>(definition)) {
    SmallVector<Subscript> indices;
    for (Value at : extract.getIndices()) {
      std::optional<Subscript> position = positionOf(at, loops);
      indices.push_back(position ? *position : toSubscript(evaluateBody(op, at, loops)));
    }
    return evaluate(extract.getTensor(), indices);
  }
  if (!isElementwise(definition) && !isa<arith::ConstantOp>(definition))
    return refuse("the op '" + definition->getName().getStringRef() + "'", value.getType());
  SmallVector<Value> operands;
  for (Value operand : definition->getOperands())
    operands.push_back(evaluateBody(op, operand, loops));
  return clone(definition, operands);
}
