//===- Evaluator.cpp - The value of a tensor's element ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel is a graph of tensors. This walks it backwards from one element:
//
//   evaluate(%y, [row, 64 k + lane])        %y = generic(%x, %m) {sub}
//     evaluate(%x, [row, 64 k + lane])        -> vector.load %x[768 row + 64 k]
//     evaluate(%m, [row])                     -> the row's scalar
//     arith.subf : vector<64xf32>             -> %m is broadcast
//
// Views (reshapes, slices, concatenations, padding) only change the indices;
// memory is addressed by one linear expression, which is simplified until it is
// known to be the same for all lanes (scalar load), consecutive (vector.load) or
// neither (vector.gather). Positions that depend on data become new variables.
// Where the pieces of a slice meet inside a vector, both sides are evaluated at
// positions clamped into them, and selected; the innermost loop is split at such
// places when it can be (see EvaluationState::splits).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Evaluator.h"
#include "fsdp/Codegen/Lowering.h"
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
  // Vectors of the other width are of no use; scalars are.
  for (auto it = copy.known.begin(); it != copy.known.end();)
    it = isa<VectorType>(it->second.getType()) ? copy.known.erase(it) : std::next(it);
  return copy;
}

Value Evaluator::zero(Type element) { return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element)); }

Value Evaluator::refuse(const Twine &reason, Type element) {
  if (state.refusal.empty())
    state.refusal = reason.str();
  return zero(element);
}

Value Evaluator::broadcast(Value value) {
  if (lanes == 1 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(builder, loc, VectorType::get({lanes}, value.getType()), value);
}

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

Value Evaluator::materialise(AffineExpr expr) {
  expr = simplify(expr);
  Key key{nullptr, {expr.getAsOpaquePointer()}};
  if (auto found = known.find(key); found != known.end())
    return found->second;
  auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  Value result;
  if (auto literal = dyn_cast<AffineConstantExpr>(expr)) {
    result = constant(literal.getValue());
  } else if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    assert(dim.getPosition() != 0 && "a lane has no scalar value");
    result = dims[dim.getPosition()].value;
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value lhs = materialise(binary.getLHS()), rhs = materialise(binary.getRHS());
    switch (binary.getKind()) {
    case AffineExprKind::Add:
      result = arith::AddIOp::create(builder, loc, lhs, rhs, arith::IntegerOverflowFlags::nsw);
      break;
    case AffineExprKind::Mul:
      result = arith::MulIOp::create(builder, loc, lhs, rhs, arith::IntegerOverflowFlags::nsw);
      break;
    case AffineExprKind::FloorDiv:
      result = arith::DivUIOp::create(builder, loc, lhs, rhs);
      break;
    default:
      result = arith::RemUIOp::create(builder, loc, lhs, rhs);
      break;
    }
  }
  known[key] = result;
  return result;
}

/// All lanes of an expression, as a vector of index.
Value Evaluator::materialiseLanes(AffineExpr expr) {
  if (!hasLane(expr))
    return broadcast(materialise(expr));
  if (isa<AffineDimExpr>(expr))
    return vector::StepOp::create(builder, loc, VectorType::get({lanes}, builder.getIndexType()));
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = materialiseLanes(binary.getLHS()), rhs = materialiseLanes(binary.getRHS());
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  case AffineExprKind::Mul:
    return arith::MulIOp::create(builder, loc, lhs, rhs);
  case AffineExprKind::FloorDiv:
    return arith::DivUIOp::create(builder, loc, lhs, rhs);
  default:
    return arith::RemUIOp::create(builder, loc, lhs, rhs);
  }
}

Value Evaluator::toValue(const Subscript &index) {
  if (index.lanes)
    return index.lanes;
  AffineExpr expr = simplify(index.expr);
  if (!hasLane(expr))
    return materialise(expr);
  return lanes == 1 ? materialise(simplify(expr.replace(lane(), constant(0)))) : materialiseLanes(expr);
}

/// An index computed from data: a new variable when the lanes agree on it.
Subscript Evaluator::toSubscript(Value index) {
  if (isa<VectorType>(index.getType()))
    return {constant(0), index};
  APInt literal;
  if (matchPattern(index, m_ConstantInt(&literal)))
    return {constant(literal.getSExtValue()), {}};
  for (auto [position, dim] : llvm::enumerate(dims))
    if (dim.value == index)
      return {getAffineDimExpr(position, builder.getContext()), {}};
  return {addDim(index, 0, int64_t(1) << 40), {}};
}

Subscript Evaluator::add(const Subscript &index, int64_t value) {
  if (!index.lanes)
    return {index.expr + value, {}};
  Value shift = broadcast(arith::ConstantIndexOp::create(builder, loc, value));
  return {index.expr, arith::AddIOp::create(builder, loc, index.lanes, shift)};
}

Subscript Evaluator::scale(const Subscript &index, int64_t factor) {
  if (!index.lanes)
    return {index.expr * factor, {}};
  Value by = broadcast(arith::ConstantIndexOp::create(builder, loc, factor));
  return {index.expr, arith::MulIOp::create(builder, loc, index.lanes, by)};
}

Subscript Evaluator::sum(const Subscript &a, const Subscript &b) {
  if (!a.lanes && !b.lanes)
    return {a.expr + b.expr, {}};
  Value lhs = a.lanes ? a.lanes : materialiseLanes(simplify(a.expr));
  Value rhs = b.lanes ? b.lanes : materialiseLanes(simplify(b.expr));
  return {constant(0), arith::AddIOp::create(builder, loc, lhs, rhs)};
}

Value Evaluator::inside(Subscript &index, int64_t lo, int64_t hi, bool &always) {
  Subscript original = index;
  if (!index.lanes) {
    AffineExpr expr = simplify(index.expr);
    auto [least, greatest] = subscripts().range(expr);
    always = least >= lo && greatest < hi;
    if (always || greatest < lo || least >= hi)
      return {};
    // Ask for a split where the innermost position itself crosses the border.
    auto offset = column ? dyn_cast<AffineConstantExpr>(simplify(expr - column)) : AffineConstantExpr();
    if (offset) {
      for (int64_t border : {lo, hi})
        if (border > least && border <= greatest)
          state.splits.push_back(border - offset.getValue());
    } else {
      ++state.gathers;
    }
  } else {
    ++state.gathers;
  }
  Value at = toValue(original);
  auto limit = [&](int64_t value) {
    Value scalar = arith::ConstantIndexOp::create(builder, loc, value);
    return isa<VectorType>(at.getType()) ? broadcast(scalar) : scalar;
  };
  Value above = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, at, limit(lo));
  Value below = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, at, limit(hi));
  Value clamped = arith::MaxSIOp::create(builder, loc, at, limit(lo));
  clamped = arith::MinSIOp::create(builder, loc, clamped, limit(hi - 1));
  index = isa<VectorType>(clamped.getType()) ? Subscript{constant(0), clamped}
                                             : Subscript{addDim(clamped, lo, hi - 1), {}};
  return arith::AndIOp::create(builder, loc, above, below);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Element of a flat memref: stored bytes to values of the kernel (i1, index).
static Value fromStorage(OpBuilder &b, Location loc, Value value, Type element) {
  if (element.isInteger(1)) {
    Type type = value.getType();
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
  }
  if (!element.isIndex())
    return value;
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  return arith::IndexCastOp::create(b, loc, type, value);
}

Value Evaluator::loadFlat(Value memory, Type element, AffineExpr offset, Value laneOffset) {
  Type storage = getStorageType(element);
  offset = simplify(offset);
  Value loaded;
  if (lanes == 1)
    offset = simplify(offset.replace(lane(), constant(0)));
  if (!laneOffset && !hasLane(offset)) {
    loaded = memref::LoadOp::create(builder, loc, memory, materialise(offset));
  } else {
    auto type = VectorType::get({lanes}, storage);
    AffineExpr base = simplify(offset - lane());
    if (!laneOffset && !hasLane(base)) {
      loaded = vector::LoadOp::create(builder, loc, type, memory, materialise(base));
    } else {
      ++state.gathers;
      Value positions = materialiseLanes(offset);
      if (laneOffset)
        positions = arith::AddIOp::create(builder, loc, positions, laneOffset);
      Value zeroIndex = arith::ConstantIndexOp::create(builder, loc, 0);
      auto maskType = VectorType::get({lanes}, builder.getI1Type());
      Value mask = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(maskType, true));
      Value pass = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
      loaded = vector::GatherOp::create(builder, loc, type, memory, ValueRange(zeroIndex), positions, mask, pass);
    }
  }
  return fromStorage(builder, loc, loaded, element);
}

Value Evaluator::load(Stored source, RankedTensorType type, ArrayRef<Subscript> indices) {
  Subscript offset{constant(0), {}};
  int64_t stride = 1;
  for (int64_t i = type.getRank() - 1; i >= source.skip; --i) {
    offset = sum(offset, scale(indices[i], stride));
    stride *= type.getDimSize(i);
  }
  return loadFlat(source.memory, type.getElementType(), offset.expr, offset.lanes);
}

void Evaluator::store(Value value, Value memory, AffineExpr offset) {
  Type element = getElementTypeOrSelf(value.getType());
  Type storage = getStorageType(element);
  auto type = [&](Type scalar) {
    auto vector = dyn_cast<VectorType>(value.getType());
    return vector ? Type(vector.clone(scalar)) : scalar;
  };
  if (element.isInteger(1))
    value = arith::ExtUIOp::create(builder, loc, type(storage), value);
  else if (element.isIndex())
    value = arith::IndexCastOp::create(builder, loc, type(storage), value);
  offset = simplify(offset);
  if (lanes == 1)
    offset = simplify(offset.replace(lane(), constant(0)));
  if (!hasLane(offset)) {
    memref::StoreOp::create(builder, loc, value, memory, materialise(offset));
    return;
  }
  AffineExpr base = simplify(offset - lane());
  if (hasLane(base)) {
    (void)refuse("lanes of a result lie apart in memory", element);
    return;
  }
  vector::StoreOp::create(builder, loc, broadcast(value), memory, materialise(base));
}

/// A constant tensor as read-only data beside the kernel.
Value Evaluator::table(arith::ConstantOp op) {
  if (auto found = state.stored.find(op.getResult()); found != state.stored.end())
    return found->second.memory;
  auto attr = cast<DenseElementsAttr>(op.getValue());
  Type storage = getStorageType(attr.getElementType());
  auto flat = RankedTensorType::get({attr.getNumElements()}, storage);
  DenseElementsAttr data;
  if (storage == attr.getElementType()) {
    data = attr.reshape(flat);
  } else {
    SmallVector<APInt> values;
    for (APInt value : attr.getValues<APInt>())
      values.push_back(value.zextOrTrunc(storage.getIntOrFloatBitWidth()));
    data = DenseElementsAttr::get(flat, values);
  }
  auto type = MemRefType::get(flat.getShape(), storage);
  // The same data has one global per phase: its number is its place in the kernel.
  unsigned number = 0;
  for (auto constant : state.kernel.getOps<arith::ConstantOp>()) {
    if (constant == op)
      break;
    ++number;
  }
  std::string name = state.phase.getName().str() + ".table" + std::to_string(number);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(state.phase);
  auto global = memref::GlobalOp::create(builder, op.getLoc(), name, builder.getStringAttr("private"), type, data,
                                         /*constant=*/true, builder.getI64IntegerAttr(64));
  (void)global;
  builder.setInsertionPointToStart(&state.phase.front());
  Value memory = memref::GetGlobalOp::create(builder, op.getLoc(), type, name);
  state.stored[op.getResult()] = {memory, 0};
  return memory;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// The op on operands that are scalars or vectors; vectors when any of them is.
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
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) && op->getNumResults() == 1 &&
         op->getNumRegions() == 0 && isPure(op) && OpTrait::hasElementwiseMappableTraits(op);
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

/// Drops or adds the dimensions of size one that a slice leaves out.
static SmallVector<Subscript> expandDropped(ArrayRef<Subscript> indices, const llvm::SmallBitVector &dropped,
                                            AffineExpr zero) {
  SmallVector<Subscript> all;
  unsigned next = 0;
  for (unsigned i = 0; i < dropped.size(); ++i)
    all.push_back(dropped.test(i) ? Subscript{zero, {}} : indices[next++]);
  return all;
}

static bool isStatic(ArrayRef<int64_t> values) { return llvm::none_of(values, ShapedType::isDynamic); }

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
          return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(dense.getSplatValue<Attribute>()));
        return load({table(constant), 0}, type, indices);
      })
      .Case([&](tensor::EmptyOp) { return zero(element); })
      .Case([&](linalg::FillOp fill) { return evaluateScalar(fill.getInputs()[0]); })
      .Case([&](tensor::SplatOp splat) { return evaluateScalar(splat.getInput()); })
      .Case([&](tensor::FromElementsOp elements) { return evaluateElements(elements, indices); })
      .Case([&](linalg::GenericOp generic) {
        return evaluateGeneric(generic, cast<OpResult>(tensor).getResultNumber(), indices);
      })
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp>([&](auto reshape) -> Value {
        auto from = cast<RankedTensorType>(reshape.getSrc().getType());
        SmallVector<AffineExpr> exprs;
        for (const Subscript &index : indices) {
          if (index.lanes)
            return refuse("a reshape at positions that depend on data", element);
          exprs.push_back(index.expr);
        }
        AffineExpr linear = fsdp::linearise(subscripts(), exprs, type.getShape(), builder.getContext());
        return evaluate(reshape.getSrc(), fsdp::delinearise(subscripts(), linear, from.getShape()));
      })
      .Case([&](tensor::ExtractSliceOp slice) -> Value {
        if (!isStatic(slice.getStaticSizes()) || !isStatic(slice.getStaticStrides()))
          return refuse("a slice of dynamic size", element);
        SmallVector<Subscript> source = expandDropped(indices, slice.getDroppedDims(), constant(0));
        for (auto [i, offset] : llvm::enumerate(slice.getMixedOffsets())) {
          source[i] = scale(source[i], slice.getStaticStrides()[i]);
          if (auto fixed = getConstantIntValue(offset))
            source[i] = add(source[i], *fixed);
          else
            source[i] = sum(source[i], toSubscript(evaluateScalar(cast<Value>(offset))));
        }
        return evaluate(slice.getSource(), source);
      })
      .Case([&](tensor::InsertSliceOp insert) { return evaluateInsert(insert, indices); })
      .Case([&](tensor::ConcatOp concat) { return evaluateConcat(concat, indices); })
      .Case([&](tensor::PadOp pad) { return evaluatePad(pad, indices); })
      .Case([&](GatherRowsOp gather) -> Value {
        Value id = evaluate(gather.getIds(), indices.drop_back());
        Type index = builder.getIndexType();
        if (auto vector = dyn_cast<VectorType>(id.getType()))
          index = vector.clone(index);
        Value row = arith::IndexCastOp::create(builder, loc, index, id);
        return evaluate(gather.getTable(), {toSubscript(row), indices.back()});
      })
      .Default([&](Operation *other) { return refuse("the op '" + other->getName().getStringRef() + "'", element); });
}

Value Evaluator::evaluateElements(tensor::FromElementsOp op, ArrayRef<Subscript> indices) {
  auto type = op.getType();
  if (type.getNumElements() == 1)
    return evaluateScalar(op.getElements()[0]);
  if (type.getNumElements() > 64 || llvm::any_of(indices, [](const Subscript &i) { return bool(i.lanes); }))
    return refuse("many single elements", type.getElementType());
  SmallVector<AffineExpr> exprs;
  for (const Subscript &index : indices)
    exprs.push_back(index.expr);
  AffineExpr linear = fsdp::linearise(subscripts(), exprs, type.getShape(), builder.getContext());
  Value at = toValue({linear, {}});
  Value result = evaluateScalar(op.getElements().back());
  for (int64_t i = type.getNumElements() - 2; i >= 0; --i) {
    Value here = arith::ConstantIndexOp::create(builder, loc, i), value = evaluateScalar(op.getElements()[i]);
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

Value Evaluator::evaluateGeneric(linalg::GenericOp op, unsigned result, ArrayRef<Subscript> indices) {
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

Value Evaluator::evaluateInBody(linalg::GenericOp op, Value value, ArrayRef<AffineExpr> loops) {
  SmallVector<Subscript> subscripts;
  for (AffineExpr loop : loops)
    subscripts.push_back({simplify(loop), {}});
  return evaluateBody(op, value, subscripts);
}

/// A value of index that is an affine function of the loops.
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
  AffineExpr expr = apply.getAffineMap().getResult(0).replaceDimsAndSymbols(ArrayRef(operands).take_front(numDims),
                                                                            ArrayRef(operands).drop_front(numDims));
  // Quotients towards minus infinity of what may be negative are left alone.
  return expr.isPureAffine() && subscripts().range(expr).first >= 0 && expr.walk([](AffineExpr e) {
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
  if (auto found = known.find(key); found != known.end())
    return found->second;
  Value result;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    if (!isa<RankedTensorType>(operand.get().getType()))
      return known[key] = evaluateScalar(operand.get());
    SmallVector<Subscript> indices;
    for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
      // Dims of the map are loops; sums of loops with coefficients come from slices.
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        indices.push_back(loops[dim.getPosition()]);
        continue;
      }
      SmallVector<AffineExpr> replacements;
      for (const Subscript &loop : loops) {
        if (loop.lanes)
          return refuse("an affine access at positions that depend on data", value.getType());
        replacements.push_back(loop.expr);
      }
      indices.push_back({expr.replaceDims(replacements), {}});
    }
    result = evaluate(operand.get(), indices);
  } else {
    Operation *definition = value.getDefiningOp();
    if (std::optional<Subscript> position = positionOf(value, loops)) {
      result = toValue(*position);
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(definition)) {
      SmallVector<Subscript> indices;
      for (Value at : extract.getIndices()) {
        std::optional<Subscript> position = positionOf(at, loops);
        indices.push_back(position ? *position : toSubscript(evaluateBody(op, at, loops)));
      }
      result = evaluate(extract.getTensor(), indices);
    } else if (isElementwise(definition)) {
      SmallVector<Value> operands;
      for (Value operand : definition->getOperands())
        operands.push_back(evaluateBody(op, operand, loops));
      result = clone(definition, operands);
    } else {
      result = refuse("the op '" + definition->getName().getStringRef() + "'", value.getType());
    }
  }
  known[key] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Views of several parts
//===----------------------------------------------------------------------===//

static Value conjunction(OpBuilder &b, Location loc, Evaluator &evaluator, Value a, Value c) {
  if (!a || !c)
    return a ? a : c;
  if (isa<VectorType>(a.getType()) || isa<VectorType>(c.getType())) {
    a = evaluator.broadcast(a);
    c = evaluator.broadcast(c);
  }
  return arith::AndIOp::create(b, loc, a, c);
}

static Value choose(OpBuilder &b, Location loc, Evaluator &evaluator, Value condition, Value yes, Value no) {
  bool wide = llvm::any_of(ArrayRef<Value>{condition, yes, no}, [](Value v) { return isa<VectorType>(v.getType()); });
  if (wide) {
    yes = evaluator.broadcast(yes);
    no = evaluator.broadcast(no);
    condition = evaluator.broadcast(condition);
  }
  return arith::SelectOp::create(b, loc, condition, yes, no);
}

Value Evaluator::evaluateInsert(tensor::InsertSliceOp op, ArrayRef<Subscript> indices) {
  Type element = op.getType().getElementType();
  if (!isStatic(op.getStaticOffsets()) || !isStatic(op.getStaticSizes()) ||
      llvm::any_of(op.getStaticStrides(), [](int64_t s) { return s != 1; }))
    return refuse("an insertion that is not a static box", element);
  Value condition;
  SmallVector<Subscript> source;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (auto [i, given] : llvm::enumerate(indices)) {
    Subscript index = given;
    int64_t lo = op.getStaticOffsets()[i], hi = lo + op.getStaticSizes()[i];
    bool always = false;
    Value here = inside(index, lo, hi, always);
    if (!here && !always)
      return evaluate(op.getDest(), indices);
    condition = conjunction(builder, loc, *this, condition, here);
    if (!dropped.test(i))
      source.push_back(add(index, -lo));
  }
  Value inner = evaluate(op.getSource(), source);
  if (!condition)
    return inner;
  return choose(builder, loc, *this, condition, inner, evaluate(op.getDest(), indices));
}

Value Evaluator::evaluateConcat(tensor::ConcatOp op, ArrayRef<Subscript> indices) {
  int64_t dim = op.getDim(), offset = 0;
  Value result;
  // From the last part to the first: each selects between itself and what follows.
  SmallVector<std::pair<Value, int64_t>> parts;
  for (Value part : op.getInputs()) {
    parts.push_back({part, offset});
    offset += cast<RankedTensorType>(part.getType()).getDimSize(dim);
  }
  for (auto [part, begin] : llvm::reverse(parts)) {
    SmallVector<Subscript> at(indices);
    bool always = false;
    Value here = inside(at[dim], begin, begin + cast<RankedTensorType>(part.getType()).getDimSize(dim), always);
    if (!here && !always)
      continue;
    at[dim] = add(at[dim], -begin);
    Value value = evaluate(part, at);
    result = !result || !here ? value : choose(builder, loc, *this, here, value, result);
  }
  return result;
}

Value Evaluator::evaluatePad(tensor::PadOp op, ArrayRef<Subscript> indices) {
  Type element = op.getType().getElementType();
  Value padding = op.getConstantPaddingValue();
  if (!padding || !isStatic(op.getStaticLow()) || !isStatic(op.getStaticHigh()))
    return refuse("padding that is not constant", element);
  Value condition;
  SmallVector<Subscript> source;
  for (auto [i, given] : llvm::enumerate(indices)) {
    Subscript index = given;
    int64_t lo = op.getStaticLow()[i], hi = lo + op.getSourceType().getDimSize(i);
    bool always = false;
    Value here = inside(index, lo, hi, always);
    Value outside = padding.getParentRegion() == &op.getRegion() ? clone(padding.getDefiningOp(), {}) : evaluateScalar(padding);
    if (!here && !always)
      return outside;
    condition = conjunction(builder, loc, *this, condition, here);
    source.push_back(add(index, -lo));
  }
  Value inner = evaluate(op.getSource(), source);
  if (!condition)
    return inner;
  Value outside = padding.getParentRegion() == &op.getRegion() ? clone(padding.getDefiningOp(), {}) : evaluateScalar(padding);
  return choose(builder, loc, *this, condition, inner, outside);
}
