//===- CodeBuilder.cpp - Builder for loops, vectors and memory accesses --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In memory, an i1 is a byte, an index is a 64-bit integer, and a 16-bit float is a 16-bit integer.
//
//===----------------------------------------------------------------------===//

#include "CodeBuilder.h"
#include "CacheLine.h"
#include "Lowering.h"

using namespace mlir;
using namespace mlir::fsdp;

Type fsdp::withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

Value CodeBuilder::constant(int64_t value) {
  return arith::ConstantIntOp::create(*this, loc, value, 64);
}
Value CodeBuilder::constantLike(Value like, int64_t value) {
  return arith::ConstantOp::create(*this, loc, getIntegerAttr(like.getType(), value));
}
Value CodeBuilder::boolean(bool value) {
  return arith::ConstantIntOp::create(*this, loc, value, 1);
}
Value CodeBuilder::add(Value a, Value b) { return createOrFold<arith::AddIOp>(loc, a, b); }
Value CodeBuilder::sub(Value a, Value b) { return createOrFold<arith::SubIOp>(loc, a, b); }
Value CodeBuilder::mul(Value a, int64_t b) { return mul(a, constantLike(a, b)); }
Value CodeBuilder::mul(Value a, Value b) { return createOrFold<arith::MulIOp>(loc, a, b); }
Value CodeBuilder::div(Value a, int64_t b) {
  return createOrFold<arith::DivUIOp>(loc, a, constantLike(a, b));
}
Value CodeBuilder::rem(Value a, int64_t b) {
  return createOrFold<arith::RemUIOp>(loc, a, constantLike(a, b));
}
Value CodeBuilder::min(Value a, Value b) { return createOrFold<arith::MinSIOp>(loc, a, b); }
Value CodeBuilder::max(Value a, Value b) { return createOrFold<arith::MaxSIOp>(loc, a, b); }
Value CodeBuilder::isLess(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, a, b);
}
Value CodeBuilder::isEqual(Value a, int64_t b) {
  return createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, a, constantLike(a, b));
}
Value CodeBuilder::both(Value a, Value b) { return createOrFold<arith::AndIOp>(loc, a, b); }
Value CodeBuilder::select(Value condition, Value a, Value b) {
  return createOrFold<arith::SelectOp>(loc, condition, a, b);
}

Value CodeBuilder::larger(Value a, Value b) {
  return select(arith::CmpFOp::create(*this, loc, arith::CmpFPredicate::OGT, a, b), a, b);
}

void CodeBuilder::loop(Value from, Value to, int64_t step, function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(*this, loc, from, to, constantLike(from, step));
  InsertionGuard guard(*this);
  setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

CodeBuilder::Carried CodeBuilder::loop(Value from, Value to, int64_t step, ValueRange first,
                                       function_ref<Carried(Value, ValueRange)> body) {
  auto op = scf::ForOp::create(*this, loc, from, to, constantLike(from, step), first);
  InsertionGuard guard(*this);
  setInsertionPointToStart(op.getBody());
  Carried last = body(op.getInductionVar(), op.getRegionIterArgs());
  // If a loop has no carried values, ForOp::create() has already added a terminator.
  if (!first.empty())
    scf::YieldOp::create(*this, loc, last);
  return Carried(op.getResults());
}

CodeBuilder::Carried CodeBuilder::choose(Value condition, TypeRange types,
                                         function_ref<Carried()> then,
                                         function_ref<Carried()> otherwise) {
  auto op =
      scf::IfOp::create(*this, loc, types, condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
  InsertionGuard guard(*this);
  for (auto [block, branch] :
       {std::pair(op.thenBlock(), then), std::pair(op.elseBlock(), otherwise)}) {
    setInsertionPointToEnd(block);
    scf::YieldOp::create(*this, loc, branch());
  }
  return Carried(op.getResults());
}

void CodeBuilder::when(Value condition, function_ref<void()> then, function_ref<void()> otherwise) {
  auto op = scf::IfOp::create(*this, loc, condition, /*withElseRegion=*/bool(otherwise));
  InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  then();
  if (!otherwise)
    return;
  setInsertionPointToStart(op.elseBlock());
  otherwise();
}

Value CodeBuilder::address(const Pointer &place) {
  return LLVM::GEPOp::create(*this, loc, place.base.getType(), getStorageType(place.type),
                             place.base, ValueRange{place.index});
}

/// Returns the type that values of `type` have in memory. 16-bit floats are stored as integers,
/// because on CPUs without native support for 16-bit floats, LLVM converts these floats by library
/// calls.
static Type inMemory(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (element.isBF16() || element.isF16())
    return withElement(type, IntegerType::get(type.getContext(), 16));
  return withElement(type, getStorageType(element));
}

static Value fromMemory(CodeBuilder &b, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (getElementTypeOrSelf(type).isIndex())
    return arith::IndexCastOp::create(b, b.loc, type, value);
  if (isa<FloatType>(getElementTypeOrSelf(type)))
    return arith::BitcastOp::create(b, b.loc, type, value);
  return arith::TruncIOp::create(b, b.loc, type, value);
}

static Value toMemory(CodeBuilder &b, Value value) {
  Type type = inMemory(value.getType());
  if (value.getType() == type)
    return value;
  if (getElementTypeOrSelf(value.getType()).isIndex())
    return arith::IndexCastOp::create(b, b.loc, type, value);
  if (isa<FloatType>(getElementTypeOrSelf(value.getType())))
    return arith::BitcastOp::create(b, b.loc, type, value);
  return arith::ExtUIOp::create(b, b.loc, type, value);
}

static unsigned elementBytes(Type type) {
  return std::max(1u, getStorageType(getElementTypeOrSelf(type)).getIntOrFloatBitWidth() / 8);
}

Value CodeBuilder::load(Type type, const Pointer &place, Value mask) {
  Type memory = inMemory(type);
  unsigned align = elementBytes(type);
  Value value;
  if (mask)
    value =
        LLVM::MaskedLoadOp::create(*this, loc, memory, address(place), mask, zero(memory), align);
  else
    value = LLVM::LoadOp::create(*this, loc, memory, address(place), align);
  return fromMemory(*this, value, type);
}

void CodeBuilder::store(Value value, const Pointer &place, Value mask) {
  unsigned align = elementBytes(value.getType());
  value = toMemory(*this, value);
  if (mask)
    LLVM::MaskedStoreOp::create(*this, loc, value, address(place), mask, align);
  else
    LLVM::StoreOp::create(*this, loc, value, address(place), align);
}

void CodeBuilder::storeStreaming(Value value, const Pointer &place) {
  value = toMemory(*this, value);
  auto type = cast<VectorType>(value.getType());
  unsigned size = elementBytes(type) * type.getNumElements();
  unsigned alignment = std::min<unsigned>(size, lineBytes);
  LLVM::StoreOp::create(*this, loc, value, address(place), alignment, /*isVolatile=*/false,
                        /*isNonTemporal=*/true);
}

void CodeBuilder::storeFence() {
  LLVM::CallIntrinsicOp::create(*this, loc, getStringAttr("llvm.x86.sse.sfence"), ValueRange{});
}

void CodeBuilder::prefetch(const Pointer &place, bool forWriting) {
  LLVM::Prefetch::create(*this, loc, address(place), /*rw=*/forWriting, /*hint=*/3, /*cache=*/1);
}

Value CodeBuilder::strided(const Pointer &place, int64_t lanes, int64_t stride) {
  Value index =
      arith::MulIOp::create(*this, loc, iota(lanes, getI64Type()), splat(constant(stride), lanes));
  index = arith::AddIOp::create(*this, loc, index, splat(place.index, lanes));
  return LLVM::GEPOp::create(*this, loc, VectorType::get({lanes}, place.base.getType()),
                             getStorageType(place.type), place.base, ValueRange{index});
}

Value CodeBuilder::gather(VectorType type, const Pointer &place, int64_t stride, Value mask) {
  Value pointers = strided(place, type.getNumElements(), stride);
  Type memory = inMemory(type);
  Value value = LLVM::masked_gather::create(*this, loc, memory, pointers, mask, zero(memory),
                                            getI32IntegerAttr(elementBytes(type)));
  return fromMemory(*this, value, type);
}

Value CodeBuilder::gather(Type element, const Pointer &place, Value indices) {
  int64_t lanes = cast<VectorType>(indices.getType()).getNumElements();
  auto type = VectorType::get({lanes}, element);
  Value pointers =
      LLVM::GEPOp::create(*this, loc, VectorType::get({lanes}, place.base.getType()),
                          getStorageType(place.type), address(place), ValueRange{indices});
  Type memory = inMemory(type);
  Value all = arith::ConstantOp::create(
      *this, loc, DenseElementsAttr::get(VectorType::get({lanes}, getI1Type()), true));
  Value value = LLVM::masked_gather::create(*this, loc, memory, pointers, all, zero(memory),
                                            getI32IntegerAttr(elementBytes(type)));
  return fromMemory(*this, value, type);
}

void CodeBuilder::scatter(Value value, const Pointer &place, int64_t stride, Value mask) {
  auto type = cast<VectorType>(value.getType());
  LLVM::masked_scatter::create(*this, loc, toMemory(*this, value),
                               strided(place, type.getNumElements(), stride), mask,
                               getI32IntegerAttr(elementBytes(type)));
}

Value CodeBuilder::iota(int64_t lanes, Type element) {
  SmallVector<Attribute> values;
  for (int64_t i = 0; i < lanes; ++i)
    values.push_back(getIntegerAttr(element, i));
  return arith::ConstantOp::create(
      *this, loc, DenseElementsAttr::get(VectorType::get({lanes}, element), values));
}

Value CodeBuilder::maskBelow(int64_t lanes, Value count) {
  Value limit = arith::TruncIOp::create(*this, loc, getI32Type(), min(count, constant(lanes)));
  return arith::CmpIOp::create(*this, loc, arith::CmpIPredicate::slt, iota(lanes, getI32Type()),
                               splat(limit, lanes));
}

Value CodeBuilder::splat(Value scalar, int64_t lanes) {
  return vector::BroadcastOp::create(*this, loc, VectorType::get({lanes}, scalar.getType()),
                                     scalar);
}

Value CodeBuilder::zero(Type type) {
  return arith::ConstantOp::create(*this, loc, getZeroAttr(type));
}

Value CodeBuilder::shuffle(Value a, Value b, ArrayRef<int64_t> mask) {
  return vector::ShuffleOp::create(*this, loc, a, b, mask);
}

Value CodeBuilder::convertFloat(Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == element)
    return value;
  unsigned fromBits = from.getIntOrFloatBitWidth(), toBits = element.getIntOrFloatBitWidth();
  // Converts between bf16 and f16 through f32.
  if (fromBits == toBits)
    return convertFloat(convertFloat(value, getF32Type()), element);
  Type type = withElement(value.getType(), element);
  if (fromBits < toBits)
    return arith::ExtFOp::create(*this, loc, type, value);
  return arith::TruncFOp::create(*this, loc, type, value);
}

SmallVector<Value> CodeBuilder::inlineBody(linalg::LinalgOp op, ArrayRef<Value> inputs,
                                           int64_t lanes, function_ref<Value(unsigned)> index) {
  IRMapping map;
  auto vectorised = [&](Type type) { return lanes ? Type(VectorType::get({lanes}, type)) : type; };
  auto constantOf = [&](Value v) {
    TypedAttr value;
    matchPattern(v, m_Constant(&value));
    if (lanes)
      value = DenseElementsAttr::get(VectorType::get({lanes}, v.getType()), value);
    return arith::ConstantOp::create(*this, loc, value);
  };
  for (auto [argument, input] : llvm::zip_equal(op.getBlock()->getArguments(), inputs))
    if (input)
      map.map(argument, input);
  auto lookUp = [&](Value v) {
    // A value without a mapping must be a constant, which may be defined outside the body.
    if (!map.contains(v))
      map.map(v, constantOf(v));
    return map.lookup(v);
  };
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (isa<arith::ConstantOp>(inner))
      continue;
    if (auto indexOp = dyn_cast<linalg::IndexOp>(inner)) {
      map.map(indexOp.getResult(), index(indexOp.getDim()));
      continue;
    }
    for (Value operand : inner.getOperands())
      lookUp(operand);
    Operation *copy = clone(inner, map);
    copy->getResult(0).setType(vectorised(inner.getResult(0).getType()));
  }
  return llvm::map_to_vector(op.getBlock()->getTerminator()->getOperands(), lookUp);
}
