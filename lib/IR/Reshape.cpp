//===- Reshape.cpp - Reshape of a static tensor -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   2x3x4  ->  24  ->  6x4       by tensor.collapse_shape and tensor.expand_shape
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/Reshape.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;

Value fsdp::buildReshape(OpBuilder &b, Location loc, Value v, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(v.getType());
  if (type.getShape() == shape)
    return v;
  auto flat = RankedTensorType::get({type.getNumElements()}, type.getElementType());
  auto allOf = [](int64_t rank) {
    SmallVector<ReassociationIndices> groups;
    if (rank)
      groups.push_back(llvm::to_vector<2>(llvm::seq<int64_t>(0, rank)));
    return groups;
  };
  if (type.getRank() == 0)
    v = tensor::ExpandShapeOp::create(b, loc, flat, v, allOf(0));
  else if (type.getRank() > 1)
    v = tensor::CollapseShapeOp::create(b, loc, flat, v, allOf(type.getRank()));
  auto target = RankedTensorType::get(shape, type.getElementType());
  if (shape.empty())
    return tensor::CollapseShapeOp::create(b, loc, target, v, allOf(0));
  if (shape.size() > 1)
    return tensor::ExpandShapeOp::create(b, loc, target, v, allOf(shape.size()));
  return v;
}
