//===- ElementAddress.cpp - Addresses of tensor elements --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emits index arithmetic and memory accesses for the Evaluator. An address is a linear expression
// over the loops and the lane. After simplification, the expression shows how far apart the
// addresses of neighbouring lanes are:
//
//   equal                      768 row              -> memref.load, a scalar
//   consecutive                768 row + lane       -> vector.load
//   2, 4 or 8 apart            4 row + 4 lane + 1   -> vector.loads and shuffles
//   none of these              768 lane + row       -> vector.gather
//
// An index that depends on data becomes a new variable of the linear expression if the index is
// equal in all lanes. Otherwise it becomes a vector of type index.
//
//===----------------------------------------------------------------------===//

#include "CacheLine.h"
#include "Evaluator.h"
#include "Lowering.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Tensors of at least `prefetchedBytes` are prefetched.
static constexpr int64_t prefetchedBytes = 4 << 20;

Value Evaluator::materialise(AffineExpr expr) {
  expr = simplify(expr);
  Key key{nullptr, {expr.getAsOpaquePointer()}};
  if (auto found = known.find(key); found != known.end())
    return found->second;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
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

/// Returns a vector of type index that contains the value of the expression in each lane.
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
  return lanes == 1 ? materialise(simplify(expr.replace(lane(), constant(0))))
                    : materialiseLanes(expr);
}

/// Converts an SSA value to an index of an element. A vector becomes the `lanes` of the index. A
/// constant becomes a constant expression. A loop variable becomes its dim. Any other scalar
/// becomes a new dim.
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
    // If the index crosses the border lo or hi, request a split of the innermost loop at this
    // border.
    auto offset =
        column ? dyn_cast<AffineConstantExpr>(simplify(expr - column)) : AffineConstantExpr();
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

/// Converts a value that was loaded from a flat memref to the element type of the tensor. The
/// element types i1 and index differ from the type in memory.
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

// deinterleave() separates the columns of a matrix. For example, four vectors contain the elements
// a b c d a b c d .. of a matrix with the columns a, b, c and d. Each round separates the even and
// the odd lanes of neighbouring vectors. A round moves the lowest bit of the number of each element
// to the highest place. After two rounds, vector i contains column i. interleave() is the inverse
// function.

static void deinterleave(OpBuilder &b, Location loc, SmallVector<Value> &vectors) {
  int64_t lanes = cast<VectorType>(vectors[0].getType()).getDimSize(0), count = vectors.size();
  SmallVector<int64_t> even, odd;
  for (int64_t i = 0; i < lanes; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
  }
  for (int64_t round = 1; round < count; round *= 2) {
    SmallVector<Value> next(count);
    for (int64_t i = 0; i < count / 2; ++i) {
      next[i] = vector::ShuffleOp::create(b, loc, vectors[2 * i], vectors[2 * i + 1], even);
      next[i + count / 2] =
          vector::ShuffleOp::create(b, loc, vectors[2 * i], vectors[2 * i + 1], odd);
    }
    vectors = next;
  }
}

void fsdp::interleave(OpBuilder &b, Location loc, SmallVector<Value> &vectors) {
  int64_t lanes = cast<VectorType>(vectors[0].getType()).getDimSize(0), half = vectors.size() / 2;
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < lanes / 2; ++i) {
    low.append({i, lanes + i});
    high.append({lanes / 2 + i, lanes + lanes / 2 + i});
  }
  for (int64_t round = 1; round < 2 * half; round *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < half; ++i) {
      next.push_back(vector::ShuffleOp::create(b, loc, vectors[i], vectors[i + half], low));
      next.push_back(vector::ShuffleOp::create(b, loc, vectors[i], vectors[i + half], high));
    }
    vectors = next;
  }
}

/// Loads lanes whose elements are 2, 4 or 8 elements apart in memory: loads whole vectors and picks
/// the lanes from them with shuffles. The shuffles also produce vectors of the elements in between,
/// which are kept for later loads. Returns null if the elements have another distance.
Value Evaluator::loadStrided(Value memory, Type storage, AffineExpr offset) {
  for (int64_t stride : {2, 4, 8}) {
    AffineExpr base = simplify(offset - lane() * stride);
    if (hasLane(base) || cast<MemRefType>(memory.getType()).getNumElements() % stride != 0)
      continue;
    AffineExpr column = subscripts().mod(base, stride);
    if (!isa<AffineConstantExpr>(column) || lanes < 2)
      return {};
    AffineExpr first = simplify(base - column);
    Key key{memory.getAsOpaquePointer(),
            {first.getAsOpaquePointer(), constant(stride).getAsOpaquePointer()}};
    SmallVector<Value> &columns = strided[key];
    if (columns.empty()) {
      auto type = VectorType::get({lanes}, storage);
      for (int64_t i = 0; i < stride; ++i)
        columns.push_back(
            vector::LoadOp::create(builder, loc, type, memory, materialise(first + i * lanes)));
      deinterleave(builder, loc, columns);
    }
    return columns[cast<AffineConstantExpr>(column).getValue()];
  }
  return {};
}

Value Evaluator::gather(Value memory, Type storage, AffineExpr offset, Value laneOffset) {
  ++state.gathers;
  auto type = VectorType::get({lanes}, storage);
  Value positions = materialiseLanes(offset);
  if (laneOffset)
    positions = arith::AddIOp::create(builder, loc, positions, laneOffset);
  Value zeroIndex = arith::ConstantIndexOp::create(builder, loc, 0);
  auto maskType = VectorType::get({lanes}, builder.getI1Type());
  Value mask = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(maskType, true));
  Value pass = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return vector::GatherOp::create(builder, loc, type, memory, ValueRange(zeroIndex), positions,
                                  mask, pass);
}

// Emits prefetches for a load of `lanes` elements at `offset`: prefetches the cache lines that are
// `prefetchDistance` bytes after the loaded cache lines. Small tensors are in a cache already.
void Evaluator::prefetchAhead(Value memory, AffineExpr offset) {
  auto type = cast<MemRefType>(memory.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  if (state.prefetchDistance == 0 || type.getNumElements() * bytes < prefetchedBytes)
    return;
  for (int64_t line = 0; line < lanes * bytes; line += lineBytes) {
    Value place = materialise(simplify(offset + constant((state.prefetchDistance + line) / bytes)));
    memref::PrefetchOp::create(builder, loc, memory, place, /*isWrite=*/false, /*localityHint=*/3,
                               /*isDataCache=*/true);
  }
}

Value Evaluator::loadFlat(Value memory, Type element, AffineExpr offset, Value laneOffset) {
  Type storage = getStorageType(element);
  offset = simplify(offset);
  if (lanes == 1)
    offset = simplify(offset.replace(lane(), constant(0)));
  AffineExpr base = simplify(offset - lane());
  Value loaded;
  if (laneOffset)
    loaded = gather(memory, storage, offset, laneOffset);
  else if (!hasLane(offset))
    loaded = memref::LoadOp::create(builder, loc, memory, materialise(offset));
  else if (!hasLane(base)) {
    prefetchAhead(memory, base);
    loaded = vector::LoadOp::create(builder, loc, VectorType::get({lanes}, storage), memory,
                                    materialise(base));
  } else if (!(loaded = loadStrided(memory, storage, offset)))
    loaded = gather(memory, storage, offset, {});
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

/// Returns a read-only global of the phase that holds a constant tensor.
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
  // If several phases read a constant, each phase has its own global. The number in the name of the
  // global is the position of the constant among the constants of the kernel.
  unsigned number = 0;
  for (auto constant : state.kernel.getOps<arith::ConstantOp>()) {
    if (constant == op)
      break;
    ++number;
  }
  std::string name = state.phase.getName().str() + ".table" + std::to_string(number);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(state.phase);
  auto global = memref::GlobalOp::create(builder, op.getLoc(), name,
                                         builder.getStringAttr("private"), type, data,
                                         /*constant=*/true, builder.getI64IntegerAttr(64));
  (void)global;
  builder.setInsertionPointToStart(&state.phase.front());
  Value memory = memref::GetGlobalOp::create(builder, op.getLoc(), type, name);
  state.stored[op.getResult()] = {memory, 0};
  return memory;
}
