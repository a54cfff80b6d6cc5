//===- LinalgBuilders.cpp - Builders of small linalg ops --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "LinalgBuilders.h"
#include "fsdp/IR/Widening.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fsdp;

Type fsdp::getWorkingType(Type type) {
  auto f = dyn_cast<FloatType>(type);
  return f && f.getWidth() < 32 ? Float32Type::get(type.getContext()) : type;
}

Type fsdp::withElementType(Type type, Type element) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(element);
  return element;
}

/// Returns the input if `v` is the result of an op that only extends the elements of a tensor
/// (extf). Else returns `v`.
static Value getWidened(Value v) {
  auto map = v.getDefiningOp<linalg::GenericOp>();
  return map && isWideningInPlace(map) ? map.getDpsInputs()[0] : v;
}

Value fsdp::convertElements(OpBuilder &b, Location loc, Value v, Type element) {
  if (getElementTypeOrSelf(v) == element)
    return v;
  if (Value narrow = getWidened(v); getElementTypeOrSelf(narrow) == element)
    return narrow;
  if (!isa<RankedTensorType>(v.getType()))
    return convertFloat(b, loc, v, element);
  return buildElementwise(b, loc, v, element, [&](OpBuilder &b, Location loc, ValueRange x) {
    return convertFloat(b, loc, x[0], element);
  });
}

Value fsdp::buildElementwise(OpBuilder &b, Location loc, ValueRange ins, Type element,
                             ScalarBody body) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(ins[0].getType()).getShape();
  Value empty = tensor::EmptyOp::create(b, loc, shape, element);
  SmallVector<AffineMap> maps(ins.size() + 1, b.getMultiDimIdentityMap(shape.size()));
  SmallVector<utils::IteratorType> loops(shape.size(), utils::IteratorType::parallel);
  auto op =
      linalg::GenericOp::create(b, loc, empty.getType(), ins, empty, maps, loops,
                                [&](OpBuilder &b, Location loc, ValueRange x) {
                                  linalg::YieldOp::create(b, loc, body(b, loc, x.drop_back()));
                                });
  return op.getResult(0);
}

Value fsdp::buildSum(OpBuilder &b, Location loc, ValueRange ins, ArrayRef<AffineMap> inMaps,
                     Value init, AffineMap outMap, ScalarBody body) {
  SmallVector<AffineMap> maps(inMaps);
  maps.push_back(outMap);
  auto op = linalg::GenericOp::create(
      b, loc, init.getType(), ins, init, maps, inferIterators(outMap),
      [&](OpBuilder &b, Location loc, ValueRange x) {
        Value term = convertFloat(b, loc, body(b, loc, x.drop_back()), x.back().getType());
        linalg::YieldOp::create(b, loc, ValueRange(arith::AddFOp::create(b, loc, x.back(), term)));
      });
  return op.getResult(0);
}

Value fsdp::buildZeros(OpBuilder &b, Location loc, Type type) {
  Type element = getElementTypeOrSelf(type);
  Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(element, 0));
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return zero;
  Value empty = tensor::EmptyOp::create(b, loc, tensor.getShape(), element);
  return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
}

SmallVector<utils::IteratorType> fsdp::inferIterators(AffineMap outMap) {
  SmallVector<utils::IteratorType> loops(outMap.getNumDims(), utils::IteratorType::reduction);
  for (AffineExpr result : outMap.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(result))
      loops[dim.getPosition()] = utils::IteratorType::parallel;
  return loops;
}
