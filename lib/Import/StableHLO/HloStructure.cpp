//===- HloStructure.cpp - Views, slices and joins of StableHLO --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers ops that move elements:
//
//   broadcast_in_dim %x, dims = [0, 2]  ->  a view without unit dimensions, then a linalg.broadcast
//   pad with interior elements          ->  a filled tensor, and a tensor.insert_slice with strides
//   reverse                             ->  a linalg.generic that reads at n - 1 - i
//
// A broadcast of a constant whose elements are all equal becomes a constant.
//
//===----------------------------------------------------------------------===//

#include "StableHLO/HloOps.h"
#include "fsdp/IR/Reshape.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

static Value buildEmpty(OpBuilder &b, Location loc, RankedTensorType type) {
  return tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
}

HloResult fsdp::lowerBroadcast(OpBuilder &b, Operation *op) {
  if (failed(checkCount(op, "operands", op->getNumOperands(), 1)))
    return failure();
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  RankedTensorType from = tensorOf(x), to = tensorOf(op->getResult(0));
  SmallVector<int64_t> dims = getInts(op, "broadcast_dimensions");
  if (failed(checkCount(op, "broadcast_dimensions", dims.size(), from.getRank())) ||
      failed(checkDims(op, "broadcast_dimensions", dims, to.getRank())))
    return failure();
  // Collect the dimensions of the operand that the broadcast does not repeat, in the order of the
  // result. Each pair contains a dimension of the result and the corresponding dimension of the
  // operand.
  SmallVector<std::pair<int64_t, int64_t>> kept;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    int64_t size = from.getDimSize(i), target = to.getDimSize(dim);
    if (size != 1 && size != target)
      return op->emitError("expected dimension ")
             << i << " of the operand to have size 1 or " << target << ", found " << size;
    if (size == target)
      kept.push_back({dim, i});
  }
  DenseElementsAttr constant;
  if (matchPattern(x, m_Constant(&constant)) && constant.isSplat())
    return SmallVector<Value>{arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(to, constant.getSplatValue<Attribute>()))};
  SmallVector<int64_t> ordered = llvm::map_to_vector(kept, [](auto pair) { return pair.second; });
  SmallVector<int64_t> shape =
      llvm::map_to_vector(ordered, [&](int64_t dim) { return from.getDimSize(dim); });
  Value view = buildReshape(b, loc, x, shape);
  SmallVector<int64_t> inResult = llvm::map_to_vector(kept, [](auto pair) { return pair.first; });
  if (!llvm::is_sorted(inResult)) {
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, kept.size()));
    llvm::sort(order, [&](int64_t l, int64_t r) { return inResult[l] < inResult[r]; });
    SmallVector<int64_t> sorted = applyPermutation(ArrayRef(shape), order);
    Value empty = buildEmpty(b, loc, from.clone(sorted));
    view = linalg::TransposeOp::create(b, loc, view, empty, order)->getResult(0);
    llvm::sort(inResult);
  }
  SmallVector<int64_t> added;
  bool onlyUnits = true;
  for (int64_t dim = 0; dim < to.getRank(); ++dim)
    if (!llvm::is_contained(inResult, dim)) {
      added.push_back(dim);
      onlyUnits &= to.getDimSize(dim) == 1;
    }
  if (onlyUnits)
    return SmallVector<Value>{buildReshape(b, loc, view, to.getShape())};
  Value empty = buildEmpty(b, loc, to);
  return SmallVector<Value>{linalg::BroadcastOp::create(b, loc, view, empty, added)->getResult(0)};
}

HloResult fsdp::lowerReshape(OpBuilder &b, Operation *op) {
  if (failed(checkCount(op, "operands", op->getNumOperands(), 1)))
    return failure();
  RankedTensorType from = tensorOf(op->getOperand(0)), to = tensorOf(op->getResult(0));
  if (from.getNumElements() != to.getNumElements() || from.getElementType() != to.getElementType())
    return op->emitError("expected as many elements of the same type, found ")
           << from << " and " << to;
  // If the reshape only splits or joins adjacent dimensions, build a view that keeps the other
  // dimensions.
  Location loc = op->getLoc();
  if (auto groups = getReassociationIndicesForReshape(from, to))
    return SmallVector<Value>{
        from.getRank() > to.getRank()
            ? Value(tensor::CollapseShapeOp::create(b, loc, to, op->getOperand(0), *groups))
            : Value(tensor::ExpandShapeOp::create(b, loc, to, op->getOperand(0), *groups))};
  return SmallVector<Value>{buildReshape(b, loc, op->getOperand(0), to.getShape())};
}

HloResult fsdp::lowerTranspose(OpBuilder &b, Operation *op) {
  if (failed(checkCount(op, "operands", op->getNumOperands(), 1)))
    return failure();
  RankedTensorType from = tensorOf(op->getOperand(0));
  SmallVector<int64_t> order = getInts(op, "permutation");
  if (failed(checkCount(op, "permutation", order.size(), from.getRank())) ||
      failed(checkDims(op, "permutation", order, from.getRank())) ||
      failed(checkShape(op, applyPermutation(from.getShape(), order))))
    return failure();
  Value empty = buildEmpty(b, op->getLoc(), tensorOf(op->getResult(0)));
  return SmallVector<Value>{
      linalg::TransposeOp::create(b, op->getLoc(), op->getOperand(0), empty, order)->getResult(0)};
}

HloResult fsdp::lowerReverse(OpBuilder &b, Operation *op) {
  if (failed(checkCount(op, "operands", op->getNumOperands(), 1)))
    return failure();
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  RankedTensorType type = tensorOf(x);
  SmallVector<int64_t> dims = getInts(op, "dimensions");
  if (failed(checkDims(op, "dimensions", dims, type.getRank())) ||
      failed(checkShape(op, type.getShape())))
    return failure();
  auto read = [&](OpBuilder &b, Location loc) -> Value {
    SmallVector<Value> at;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      Value index = linalg::IndexOp::create(b, loc, dim);
      if (llvm::is_contained(dims, dim)) {
        Value last = arith::ConstantIndexOp::create(b, loc, type.getDimSize(dim) - 1);
        index = arith::SubIOp::create(b, loc, last, index);
      }
      at.push_back(index);
    }
    return tensor::ExtractOp::create(b, loc, x, at);
  };
  return SmallVector<Value>{buildByIndex(b, loc, type, read)};
}

HloResult fsdp::lowerIota(OpBuilder &b, Operation *op) {
  RankedTensorType type = tensorOf(op->getResult(0));
  SmallVector<int64_t> dim = getInts(op, "iota_dimension");
  if (failed(checkCount(op, "iota_dimension", dim.size(), 1)) ||
      failed(checkDims(op, "iota_dimension", dim, type.getRank())))
    return failure();
  auto count = [&](OpBuilder &b, Location loc) -> Value {
    Value index = linalg::IndexOp::create(b, loc, dim[0]);
    Type element = type.getElementType();
    if (!isa<FloatType>(element))
      return arith::IndexCastOp::create(b, loc, element, index);
    Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
    return arith::SIToFPOp::create(b, loc, element, number);
  };
  return SmallVector<Value>{buildByIndex(b, op->getLoc(), type, count)};
}

HloResult fsdp::lowerSlice(OpBuilder &b, Operation *op) {
  if (failed(checkCount(op, "operands", op->getNumOperands(), 1)))
    return failure();
  RankedTensorType from = tensorOf(op->getOperand(0));
  size_t rank = from.getRank();
  SmallVector<int64_t> starts = getInts(op, "start_indices"), limits = getInts(op, "limit_indices"),
                       strides = getInts(op, "strides", SmallVector<int64_t>(rank, 1)), sizes;
  if (failed(checkCount(op, "start_indices", starts.size(), rank)) ||
      failed(checkCount(op, "limit_indices", limits.size(), rank)) ||
      failed(checkCount(op, "strides", strides.size(), rank)))
    return failure();
  for (size_t i = 0; i < rank; ++i) {
    if (starts[i] < 0 || starts[i] > limits[i] || limits[i] > from.getDimSize(i) || strides[i] < 1)
      return op->emitError("expected a range within dimension ")
             << i << " of size " << from.getDimSize(i) << ", found " << starts[i] << ":"
             << limits[i] << ":" << strides[i];
    sizes.push_back(llvm::divideCeil(limits[i] - starts[i], strides[i]));
  }
  if (failed(checkShape(op, sizes)))
    return failure();
  return SmallVector<Value>{tensor::ExtractSliceOp::create(
      b, op->getLoc(), tensorOf(op->getResult(0)), op->getOperand(0), sliceIndices(b, starts),
      sliceIndices(b, sizes), sliceIndices(b, strides))};
}

HloResult fsdp::lowerConcatenate(OpBuilder &b, Operation *op) {
  SmallVector<int64_t> dim = getInts(op, "dimension");
  RankedTensorType to = tensorOf(op->getResult(0));
  if (op->getNumOperands() == 0 || failed(checkCount(op, "dimension", dim.size(), 1)) ||
      failed(checkDims(op, "dimension", dim, to.getRank())))
    return failure();
  SmallVector<int64_t> shape(to.getShape());
  shape[dim[0]] = 0;
  for (Value operand : op->getOperands()) {
    RankedTensorType part = tensorOf(operand);
    if (part.getRank() != to.getRank() || part.getElementType() != to.getElementType())
      return op->emitError("expected operands of the result's rank and element type, found ")
             << part;
    for (int64_t i = 0; i < to.getRank(); ++i)
      if (i != dim[0] && part.getDimSize(i) != to.getDimSize(i))
        return op->emitError("expected operands that differ from the result in dimension ")
               << dim[0] << " only, found " << part;
    shape[dim[0]] += part.getDimSize(dim[0]);
  }
  if (failed(checkShape(op, shape)))
    return failure();
  return SmallVector<Value>{
      tensor::ConcatOp::create(b, op->getLoc(), to, dim[0], op->getOperands())};
}

/// Removes the elements of `x` that negative padding removes, and sets the negative padding to 0.
static Value cropNegative(OpBuilder &b, Location loc, Value x, MutableArrayRef<int64_t> low,
                          MutableArrayRef<int64_t> high) {
  RankedTensorType type = tensorOf(x);
  SmallVector<int64_t> starts, sizes, ones(type.getRank(), 1);
  for (int64_t i = 0; i < type.getRank(); ++i) {
    starts.push_back(std::max<int64_t>(-low[i], 0));
    sizes.push_back(type.getDimSize(i) - starts.back() - std::max<int64_t>(-high[i], 0));
    low[i] = std::max<int64_t>(low[i], 0);
    high[i] = std::max<int64_t>(high[i], 0);
  }
  if (ArrayRef(sizes) == type.getShape())
    return x;
  return tensor::ExtractSliceOp::create(b, loc, type.clone(sizes), x, sliceIndices(b, starts),
                                        sliceIndices(b, sizes), sliceIndices(b, ones));
}

HloResult fsdp::lowerPad(OpBuilder &b, Operation *op) {
  if (failed(checkCount(op, "operands", op->getNumOperands(), 2)))
    return failure();
  Location loc = op->getLoc();
  RankedTensorType from = tensorOf(op->getOperand(0)), to = tensorOf(op->getResult(0));
  size_t rank = from.getRank();
  SmallVector<int64_t> low = getInts(op, "edge_padding_low"),
                       high = getInts(op, "edge_padding_high"),
                       interior = getInts(op, "interior_padding", SmallVector<int64_t>(rank, 0));
  if (failed(checkCount(op, "edge_padding_low", low.size(), rank)) ||
      failed(checkCount(op, "edge_padding_high", high.size(), rank)) ||
      failed(checkCount(op, "interior_padding", interior.size(), rank)))
    return failure();
  if (tensorOf(op->getOperand(1)) != RankedTensorType::get({}, from.getElementType()))
    return op->emitError("expected a scalar of the operand's type as padding value");
  SmallVector<int64_t> shape, spread, strides;
  bool hasInterior = false;
  for (size_t i = 0; i < rank; ++i) {
    int64_t size = from.getDimSize(i), between = interior[i];
    if (between < 0 ||
        std::max({std::abs(low[i]), std::abs(high[i]), between}) > to.getNumElements() + size)
      return op->emitError("expected padding of dimension ") << i << " within the result";
    hasInterior |= between > 0;
    strides.push_back(between + 1);
    spread.push_back(size == 0 ? 0 : size + (size - 1) * between);
    shape.push_back(low[i] + spread.back() + high[i]);
    if (spread.back() + std::min<int64_t>(low[i], 0) + std::min<int64_t>(high[i], 0) < 0)
      return op->emitError("expected dimension ")
             << i << " to keep its elements, found a negative size";
  }
  if (failed(checkShape(op, shape)))
    return failure();
  Value x = op->getOperand(0), scalar = getScalar(b, loc, op->getOperand(1));
  if (hasInterior) {
    Value filled = buildFilled(b, loc, from.clone(spread), scalar);
    SmallVector<int64_t> zeros(rank, 0);
    x = tensor::InsertSliceOp::create(b, loc, x, filled, sliceIndices(b, zeros),
                                      sliceIndices(b, from.getShape()), sliceIndices(b, strides));
  }
  x = cropNegative(b, loc, x, low, high);
  if (tensorOf(x).getShape() == to.getShape())
    return SmallVector<Value>{x};
  return SmallVector<Value>{
      tensor::PadOp::create(b, loc, to, x, sliceIndices(b, low), sliceIndices(b, high), scalar)};
}
