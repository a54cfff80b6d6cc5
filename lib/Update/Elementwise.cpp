//===- Elementwise.cpp - Elementwise ops with scalar operands ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::fsdp;

SmallVector<Value> fsdp::createElementwise(OpBuilder &builder, Location loc, ValueRange ins,
                                           ValueRange outs, ElementFn body) {
  unsigned rank = cast<RankedTensorType>(outs.front().getType()).getRank();
  SmallVector<AffineMap> maps;
  for (Value operand : llvm::concat<Value>(SmallVector<Value>(ins), SmallVector<Value>(outs))) {
    bool isScalar = cast<RankedTensorType>(operand.getType()).getRank() == 0;
    maps.push_back(isScalar ? AffineMap::get(rank, 0, builder.getContext())
                            : builder.getMultiDimIdentityMap(rank));
  }
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto generic =
      linalg::GenericOp::create(builder, loc, outs.getTypes(), ins, outs, maps, iterators,
                                [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
                                  ImplicitLocOpBuilder b(nestedLoc, nested);
                                  linalg::YieldOp::create(b, body(b, args));
                                });
  return llvm::to_vector_of<Value>(generic->getResults());
}

Value fsdp::createElementView(OpBuilder &builder, Location loc, Value tensor, OpFoldResult at) {
  auto type = cast<RankedTensorType>(tensor.getType());
  OpFoldResult one = builder.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(builder, loc,
                                        RankedTensorType::get({}, type.getElementType()), tensor,
                                        ArrayRef(at), ArrayRef(one), ArrayRef(one));
}

Type fsdp::getPartType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.clone(tensor.getShape().drop_front());
}

Value fsdp::createPart(OpBuilder &builder, Location loc, Value tensor, int64_t index) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)),
      ones(type.getRank(), builder.getIndexAttr(1)),
      sizes = tensor::getMixedSizes(builder, loc, tensor);
  offsets[0] = builder.getIndexAttr(index);
  sizes[0] = builder.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(builder, loc, cast<RankedTensorType>(getPartType(type)),
                                        tensor, offsets, sizes, ones);
}

Value fsdp::createEmpty(OpBuilder &builder, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor::EmptyOp::create(builder, loc, tensor.getShape(), tensor.getElementType());
}

Value fsdp::createZeros(OpBuilder &builder, Location loc, Type type) {
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(cast<RankedTensorType>(type).getElementType()));
  return linalg::FillOp::create(builder, loc, zero, createEmpty(builder, loc, type)).getResult(0);
}

Value fsdp::castFloat(ImplicitLocOpBuilder &builder, Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from < to)
    return arith::ExtFOp::create(builder, type, value);
  if (from > to)
    return arith::TruncFOp::create(builder, type, value);
  return value;
}

Value fsdp::createConstant(ImplicitLocOpBuilder &builder, Type type, double value) {
  return arith::ConstantOp::create(builder, builder.getFloatAttr(type, value));
}

FloatType fsdp::getComputeType(Type type) {
  if (type.isF64())
    return cast<FloatType>(type);
  return Float32Type::get(type.getContext());
}
