//===- HloGather.cpp - Reads and writes at computed places ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   stablehlo.gather(%table, %ids)   ->   linalg.generic { tensor.extract %ids[..];
//                                                          maxsi 0; minsi (size - slice);
//                                                          tensor.extract %table[..] }
//   stablehlo.dynamic_slice %x, %i   ->   the same with scalars %i
//   stablehlo.scatter, dynamic_update_slice at constant places   ->   tensor.insert_slice
//
//  1. Start indices are clamped so that the slice lies within the operand, as the specification
//     says. Later passes remove the clamp if they prove that the indices are in range.
//  2. A scatter or dynamic_update_slice at computed positions is not lowered, because there would
//     be no lowering of its derivative.
//
//===----------------------------------------------------------------------===//

#include "StableHLO/HloOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// Dimension numbers of a gather, named as in the specification.
struct GatherNumbers {
  SmallVector<int64_t> offsetDims, collapsed, operandBatch, startBatch, startMap, sliceSizes;
  int64_t vectorDim;
};
} // namespace

/// Converts a start index to type `index`, and clamps it to [0, limit].
static Value buildClamped(OpBuilder &b, Location loc, Value start, int64_t limit) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value last = arith::ConstantIndexOp::create(b, loc, limit);
  Value index = arith::IndexCastOp::create(b, loc, b.getIndexType(), start);
  return arith::MinSIOp::create(b, loc, arith::MaxSIOp::create(b, loc, index, zero), last);
}

/// Builds a tensor of `type` whose element at the loop indices is the element of `x` at the indices
/// that `place` returns.
static Value buildReads(OpBuilder &b, Location loc, RankedTensorType type, Value x,
                        function_ref<SmallVector<Value>(OpBuilder &, Location)> place) {
  return buildByIndex(b, loc, type, [&](OpBuilder &b, Location loc) -> Value {
    return tensor::ExtractOp::create(b, loc, x, place(b, loc));
  });
}

/// Verifies the dimension numbers of a gather, and the shape of its result.
static LogicalResult checkGather(Operation *op, const GatherNumbers &n) {
  RankedTensorType x = tensorOf(op->getOperand(0)), starts = tensorOf(op->getOperand(1)),
                   to = tensorOf(op->getResult(0));
  if (!starts.getElementType().isInteger())
    return op->emitError("expected start indices of integers, found ") << starts;
  if (n.vectorDim < 0 || n.vectorDim > starts.getRank())
    return op->emitError("expected 'index_vector_dim' in [0, ")
           << starts.getRank() << "], found " << n.vectorDim;
  int64_t length = n.vectorDim == starts.getRank() ? 1 : starts.getDimSize(n.vectorDim);
  SmallVector<int64_t> removed(n.collapsed);
  llvm::append_range(removed, n.operandBatch);
  if (failed(checkCount(op, "start_index_map", n.startMap.size(), length)) ||
      failed(checkCount(op, "slice_sizes", n.sliceSizes.size(), x.getRank())) ||
      failed(checkDims(op, "start_index_map", n.startMap, x.getRank())) ||
      failed(checkDims(op, "collapsed_slice_dims", removed, x.getRank())) ||
      failed(checkDims(op, "offset_dims", n.offsetDims, to.getRank())) ||
      failed(checkDims(op, "start_indices_batching_dims", n.startBatch, starts.getRank())) ||
      failed(checkCount(op, "start_indices_batching_dims", n.startBatch.size(),
                        n.operandBatch.size())) ||
      failed(checkCount(op, "offset_dims", n.offsetDims.size(), x.getRank() - removed.size())))
    return failure();
  for (auto [dim, size] : llvm::enumerate(n.sliceSizes)) {
    if (size < 0 || size > x.getDimSize(dim))
      return op->emitError("expected the slice size of dimension ")
             << dim << " in [0, " << x.getDimSize(dim) << "], found " << size;
    if (llvm::is_contained(removed, static_cast<int64_t>(dim)) && size != 1)
      return op->emitError("expected slice size 1 of dimension ") << dim << ", found " << size;
  }
  // In the result, the offset dimensions have the sizes of the slice. The batch dimensions have the
  // sizes that they have in the indices.
  SmallVector<int64_t> sizes, batch, shape;
  for (int64_t dim = 0; dim < x.getRank(); ++dim)
    if (!llvm::is_contained(removed, dim))
      sizes.push_back(n.sliceSizes[dim]);
  for (int64_t dim = 0; dim < starts.getRank(); ++dim)
    if (dim != n.vectorDim)
      batch.push_back(starts.getDimSize(dim));
  for (auto [operandDim, startDim] : llvm::zip(n.operandBatch, n.startBatch))
    if (startDim == n.vectorDim || starts.getDimSize(startDim) != x.getDimSize(operandDim))
      return op->emitError("expected batching dimensions of equal size");
  if (failed(checkCount(op, "dimensions of the result", to.getRank(), sizes.size() + batch.size())))
    return failure();
  size_t nextOffset = 0, nextBatch = 0;
  for (int64_t dim = 0; dim < to.getRank(); ++dim)
    shape.push_back(llvm::is_contained(n.offsetDims, dim) ? sizes[nextOffset++]
                                                          : batch[nextBatch++]);
  return checkShape(op, shape);
}

HloResult fsdp::lowerGather(OpBuilder &b, Operation *op) {
  auto dict = dyn_cast_or_null<DictionaryAttr>(op->getAttr("dimension_numbers"));
  if (!dict || op->getNumOperands() != 2)
    return op->emitError("expected two operands and the attribute 'dimension_numbers'");
  auto get = [&](StringRef name) { return getInts(op, name, {}, dict); };
  SmallVector<int64_t> vectorDim = getInts(op, "index_vector_dim", {0}, dict);
  GatherNumbers n{get("offset_dims"),
                  get("collapsed_slice_dims"),
                  get("operand_batching_dims"),
                  get("start_indices_batching_dims"),
                  get("start_index_map"),
                  getInts(op, "slice_sizes"),
                  vectorDim.size() == 1 ? vectorDim[0] : -1};
  if (failed(checkGather(op, n)))
    return failure();
  Value x = op->getOperand(0), starts = op->getOperand(1);
  RankedTensorType from = tensorOf(x), startType = tensorOf(starts),
                   to = tensorOf(op->getResult(0));
  auto place = [&](OpBuilder &b, Location loc) {
    SmallVector<Value> offsets, batch; // loop indices of the result's batch dimensions, in order
    for (int64_t dim = 0; dim < to.getRank(); ++dim)
      (llvm::is_contained(n.offsetDims, dim) ? offsets : batch)
          .push_back(linalg::IndexOp::create(b, loc, dim));
    // Returns the position of component `k` of the start vector in the tensor of start indices.
    auto startAt = [&](int64_t k) {
      SmallVector<Value> at(batch);
      if (n.vectorDim < startType.getRank())
        at.insert(at.begin() + n.vectorDim, arith::ConstantIndexOp::create(b, loc, k));
      return at;
    };
    SmallVector<Value> at;
    size_t nextOffset = 0;
    for (int64_t dim = 0; dim < from.getRank(); ++dim) {
      Value index;
      if (auto it = llvm::find(n.startMap, dim); it != n.startMap.end()) {
        Value start = tensor::ExtractOp::create(b, loc, starts, startAt(it - n.startMap.begin()));
        index = buildClamped(b, loc, start, from.getDimSize(dim) - n.sliceSizes[dim]);
      }
      if (auto it = llvm::find(n.operandBatch, dim); it != n.operandBatch.end()) {
        int64_t startDim = n.startBatch[it - n.operandBatch.begin()];
        index = batch[startDim - (startDim > n.vectorDim)];
      } else if (!llvm::is_contained(n.collapsed, dim)) {
        Value offset = offsets[nextOffset++];
        // If the slice covers the whole dimension, its start is 0.
        bool isWhole = n.sliceSizes[dim] == from.getDimSize(dim);
        index = index && !isWhole ? Value(arith::AddIOp::create(b, loc, index, offset)) : offset;
      } else if (!index) {
        index = arith::ConstantIndexOp::create(b, loc, 0);
      }
      at.push_back(index);
    }
    return at;
  };
  return SmallVector<Value>{buildReads(b, op->getLoc(), to, x, place)};
}

/// Verifies the scalar start indices of a dynamic slice, which are operand `first` and all later
/// operands.
static LogicalResult checkStarts(Operation *op, unsigned first) {
  RankedTensorType x = tensorOf(op->getOperand(0));
  if (failed(checkCount(op, "operands", op->getNumOperands(), first + x.getRank())))
    return failure();
  for (Value start : op->getOperands().drop_front(first))
    if (tensorOf(start).getRank() != 0 || !tensorOf(start).getElementType().isInteger())
      return op->emitError("expected start indices that are integer scalars, found ")
             << start.getType();
  return success();
}

HloResult fsdp::lowerDynamicSlice(OpBuilder &b, Operation *op) {
  if (op->getNumOperands() == 0)
    return op->emitError("expected an operand");
  if (failed(checkStarts(op, 1)))
    return failure();
  Value x = op->getOperand(0);
  RankedTensorType from = tensorOf(x), to = tensorOf(op->getResult(0));
  SmallVector<int64_t> sizes = getInts(op, "slice_sizes");
  if (failed(checkCount(op, "slice_sizes", sizes.size(), from.getRank())) ||
      failed(checkShape(op, sizes)))
    return failure();
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (size > from.getDimSize(dim))
      return op->emitError("expected a slice within dimension ") << dim << " of " << from;
  auto place = [&](OpBuilder &b, Location loc) {
    SmallVector<Value> at;
    for (int64_t dim = 0; dim < to.getRank(); ++dim) {
      Value index = linalg::IndexOp::create(b, loc, dim);
      if (int64_t limit = from.getDimSize(dim) - to.getDimSize(dim); limit > 0) {
        Value start = getScalar(b, loc, op->getOperand(1 + dim));
        index = arith::AddIOp::create(b, loc, buildClamped(b, loc, start, limit), index);
      }
      at.push_back(index);
    }
    return at;
  };
  return SmallVector<Value>{buildReads(b, op->getLoc(), to, x, place)};
}

/// If `value` is an integer constant whose elements are all equal, returns this element.
static std::optional<int64_t> constantOf(Value value) {
  DenseIntElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)) || !constant.isSplat())
    return std::nullopt;
  return constant.getSplatValue<APInt>().getSExtValue();
}

/// Writes `update` into `x` at constant offsets.
static HloResult insert(OpBuilder &b, Operation *op, Value x, Value update,
                        ArrayRef<int64_t> offsets) {
  RankedTensorType whole = tensorOf(x), part = tensorOf(update);
  SmallVector<int64_t> ones(whole.getRank(), 1);
  if (failed(checkShape(op, whole.getShape())))
    return failure();
  return SmallVector<Value>{
      tensor::InsertSliceOp::create(b, op->getLoc(), update, x, sliceIndices(b, offsets),
                                    sliceIndices(b, part.getShape()), sliceIndices(b, ones))};
}

HloResult fsdp::lowerDynamicUpdateSlice(OpBuilder &b, Operation *op) {
  if (op->getNumOperands() < 2)
    return op->emitError("expected an operand and an update");
  if (failed(checkStarts(op, 2)))
    return failure();
  Value x = op->getOperand(0), update = op->getOperand(1);
  RankedTensorType whole = tensorOf(x), part = tensorOf(update);
  if (part.getRank() != whole.getRank() || part.getElementType() != whole.getElementType())
    return op->emitError("expected an update of the operand's rank and type, found ") << part;
  SmallVector<int64_t> offsets;
  for (int64_t dim = 0; dim < whole.getRank(); ++dim) {
    int64_t limit = whole.getDimSize(dim) - part.getDimSize(dim);
    std::optional<int64_t> start = constantOf(op->getOperand(2 + dim));
    if (limit < 0)
      return op->emitError("expected an update within the operand, found ") << part;
    if (!start && limit > 0)
      return op->emitError("'")
             << op->getName()
             << "' at a computed index is not supported; select with jnp.where on the positions";
    offsets.push_back(std::clamp<int64_t>(start.value_or(0), 0, limit));
  }
  return insert(b, op, x, update, offsets);
}

/// Returns whether the region of a scatter returns its second argument, the update.
static bool replaces(Operation *op) {
  if (op->getNumRegions() != 1 || !op->getRegion(0).hasOneBlock())
    return false;
  Block &body = op->getRegion(0).front();
  return body.getNumArguments() == 2 && llvm::hasSingleElement(body.getOperations()) &&
         body.front().getNumOperands() == 1 && body.front().getOperand(0) == body.getArgument(1);
}

HloResult fsdp::lowerScatter(OpBuilder &b, Operation *op) {
  auto dict = dyn_cast_or_null<DictionaryAttr>(op->getAttr("scatter_dimension_numbers"));
  if (!dict || op->getNumOperands() != 3)
    return op->emitError("expected three operands and the attribute 'scatter_dimension_numbers'");
  Value x = op->getOperand(0), update = op->getOperand(2);
  RankedTensorType whole = tensorOf(x), starts = tensorOf(op->getOperand(1)),
                   part = tensorOf(update);
  SmallVector<int64_t> map = getInts(op, "scatter_dims_to_operand_dims", {}, dict);
  SmallVector<int64_t> inserted = getInts(op, "inserted_window_dims", {}, dict);
  SmallVector<int64_t> window = getInts(op, "update_window_dims", {}, dict);
  DenseIntElementsAttr places;
  bool isOneWindow = starts.getNumElements() == static_cast<int64_t>(map.size()) &&
                     window.size() == static_cast<size_t>(part.getRank()) &&
                     getInts(op, "input_batching_dims", {}, dict).empty();
  if (!isOneWindow || !replaces(op) || !matchPattern(op->getOperand(1), m_Constant(&places)))
    return op->emitError("'") << op->getName()
                              << "' that adds or has computed indices is not supported; write the "
                                 "update with jnp.where or a product with jax.nn.one_hot";
  if (failed(checkDims(op, "scatter_dims_to_operand_dims", map, whole.getRank())) ||
      failed(checkDims(op, "inserted_window_dims", inserted, whole.getRank())) ||
      failed(
          checkCount(op, "update_window_dims", window.size() + inserted.size(), whole.getRank())))
    return failure();
  SmallVector<int64_t> offsets(whole.getRank(), 0), shape;
  for (auto [k, place] : llvm::enumerate(places.getValues<APInt>()))
    offsets[map[k]] = place.getSExtValue();
  size_t next = 0;
  for (int64_t dim = 0; dim < whole.getRank(); ++dim) {
    shape.push_back(llvm::is_contained(inserted, dim) ? 1 : part.getDimSize(next++));
    // According to the specification, an update that is not within the operand is dropped.
    if (offsets[dim] < 0 || offsets[dim] + shape.back() > whole.getDimSize(dim))
      return SmallVector<Value>{x};
  }
  auto type = RankedTensorType::get(shape, part.getElementType());
  if (part.getElementType() != whole.getElementType())
    return op->emitError("expected an update of the operand's type, found ") << part;
  if (type != part) {
    auto groups = getReassociationIndicesForReshape(part, type);
    if (!groups)
      return op->emitError("expected an update that is a view of the operand's window");
    update = tensor::ExpandShapeOp::create(b, op->getLoc(), type, update, *groups);
  }
  return insert(b, op, x, update, offsets);
}
