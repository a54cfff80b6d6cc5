//===- HeadLayout.cpp - Tensors of heads inside other tensors ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Follows moves with the distances of each dimension in memory:
//
//   %s = extract_slice %qkv[0, 768] [8192, 768]     offset 768, distances 2304, 1
//   %e = expand_shape %s     [8, 1024, 12, 64]      1024 · 2304, 2304, 64, 1
//   %k = permute %e          [8, 12, 1024, 64]      1024 · 2304, 64, 2304, 1
//
// findSource() follows such ops from the source to the result. findPieces() follows them from the
// result to the sources, so an expansion divides distances there where a collapse does here. A
// collapse is possible only if its dimensions are contiguous. Takes O(ops²) time for a chain of
// insertions, because their boxes must be disjoint.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/HeadLayout.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The place of a tensor in memory, in elements.
struct View {
  SmallVector<int64_t> sizes, strides;
  int64_t offset = 0;

  explicit View(ArrayRef<int64_t> shape) : sizes(shape), strides(shape.size(), 1) {
    for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
      strides[i] = strides[i + 1] * shape[i + 1];
  }
  View() = default;
};
} // namespace

/// Returns the generic as a copy that only permutes dimensions, or null.
static linalg::GenericOp asPermutation(Operation *op) {
  auto copy = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!copy || copy.getNumDpsInputs() != 1 || copy->getNumResults() != 1 ||
      copy.getNumReductionLoops() != 0 || !llvm::hasSingleElement(*copy.getBody()) ||
      copy.getBody()->getTerminator()->getOperand(0) != copy.getBody()->getArgument(0) ||
      !llvm::all_of(copy.getIndexingMapsArray(), [](AffineMap map) { return map.isPermutation(); }))
    return nullptr;
  return copy;
}

template <typename SliceOp>
static bool isStatic(SliceOp slice) {
  return ShapedType::isStaticShape(slice.getStaticOffsets()) &&
         ShapedType::isStaticShape(slice.getStaticSizes()) && slice.hasUnitStride();
}

bool fsdp::isMoveOfElements(Operation *op) {
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return isStatic(slice);
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
    return isStatic(slice);
  return isa<tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ConcatOp>(
             op) ||
         asPermutation(op);
}

static View permute(const View &view, AffineMap from, AffineMap to) {
  View result = view;
  for (auto [i, expr] : llvm::enumerate(to.getResults())) {
    unsigned source = *from.getResultPosition(expr);
    result.sizes[i] = view.sizes[source];
    result.strides[i] = view.strides[source];
  }
  return result;
}

template <typename SliceOp>
static View sliceOf(const View &view, SliceOp op) {
  View result;
  result.offset = view.offset;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (auto [i, stride] : llvm::enumerate(view.strides)) {
    result.offset += op.getStaticOffsets()[i] * stride;
    if (dropped[i])
      continue;
    result.sizes.push_back(op.getStaticSizes()[i]);
    result.strides.push_back(stride);
  }
  return result;
}

static View split(const View &view, ArrayRef<ReassociationIndices> groups,
                  ArrayRef<int64_t> shape) {
  View result(shape);
  result.offset = view.offset;
  for (auto [group, stride] : llvm::zip_equal(groups, view.strides)) {
    int64_t distance = stride;
    for (int64_t dim : llvm::reverse(group)) {
      result.strides[dim] = distance;
      distance *= shape[dim];
    }
  }
  return result;
}

static std::optional<View> merge(const View &view, ArrayRef<ReassociationIndices> groups) {
  View result;
  result.offset = view.offset;
  for (const ReassociationIndices &group : groups) {
    int64_t size = 1, stride = 1;
    for (int64_t dim : llvm::reverse(group)) {
      if (view.sizes[dim] == 1)
        continue;
      if (size == 1)
        stride = view.strides[dim];
      else if (view.strides[dim] != stride * size)
        return std::nullopt;
      size *= view.sizes[dim];
    }
    result.sizes.push_back(size);
    result.strides.push_back(stride);
  }
  return result;
}

static std::optional<HeadLayout> toLayout(const View &view) {
  if (view.strides.size() != 4 || (view.sizes[3] != 1 && view.strides[3] != 1))
    return std::nullopt;
  return HeadLayout{view.offset, view.strides[0], view.strides[1], view.strides[2]};
}

static ArrayRef<int64_t> shapeOf(Value v) { return cast<RankedTensorType>(v.getType()).getShape(); }

/// Returns the place of `v` in `source`, which becomes the tensor from which moves read `v`.
static std::optional<View> viewOf(Value v, Value &source) {
  Operation *op = v.getDefiningOp();
  auto of = [&](Value read) { return viewOf(read, source); };
  if (linalg::GenericOp copy = asPermutation(op)) {
    std::optional<View> view = of(copy.getInputs()[0]);
    SmallVector<AffineMap> maps = copy.getIndexingMapsArray();
    return view ? std::optional(permute(*view, maps[0], maps[1])) : std::nullopt;
  }
  if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op); slice && isStatic(slice)) {
    std::optional<View> view = of(slice.getSource());
    return view ? std::optional(sliceOf(*view, slice)) : std::nullopt;
  }
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op)) {
    std::optional<View> view = of(expand.getSrc());
    return view ? std::optional(split(*view, expand.getReassociationIndices(), shapeOf(v)))
                : std::nullopt;
  }
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op)) {
    std::optional<View> view = of(collapse.getSrc());
    return view ? merge(*view, collapse.getReassociationIndices()) : std::nullopt;
  }
  source = v;
  return View(shapeOf(v));
}

std::optional<PlacedHeads> fsdp::findSource(Value heads) {
  Value source;
  std::optional<View> view = viewOf(heads, source);
  std::optional<HeadLayout> layout = view ? toLayout(*view) : std::nullopt;
  return layout ? std::optional(PlacedHeads{heads, source, *layout}) : std::nullopt;
}

/// Returns true if the boxes of two insertions into one tensor have a common element.
static bool overlap(tensor::InsertSliceOp a, tensor::InsertSliceOp b) {
  for (size_t i = 0; i < a.getStaticOffsets().size(); ++i)
    if (a.getStaticOffsets()[i] + a.getStaticSizes()[i] <= b.getStaticOffsets()[i] ||
        b.getStaticOffsets()[i] + b.getStaticSizes()[i] <= a.getStaticOffsets()[i])
      return false;
  return true;
}

namespace {
/// Follows moves from a result to their sources.
class PieceFinder {
public:
  explicit PieceFinder(Value result) : result(result) {}
  LogicalResult follow(Value v, const View &view);
  SmallVector<PlacedHeads> pieces;

private:
  LogicalResult followInsertions(tensor::InsertSliceOp last, const View &view);
  LogicalResult followConcatenation(tensor::ConcatOp op, const View &view);
  Value result;
};
} // namespace

LogicalResult PieceFinder::followInsertions(tensor::InsertSliceOp last, const View &view) {
  SmallVector<tensor::InsertSliceOp> all;
  Value into = last.getResult();
  for (; auto insert = into.getDefiningOp<tensor::InsertSliceOp>(); into = insert.getDest()) {
    if (!isStatic(insert) ||
        llvm::any_of(all, [&](auto later) { return overlap(insert, later); }) ||
        failed(follow(insert.getSource(), sliceOf(view, insert))))
      return failure();
    all.push_back(insert);
  }
  return success(into.getDefiningOp<tensor::EmptyOp>() != nullptr);
}

LogicalResult PieceFinder::followConcatenation(tensor::ConcatOp op, const View &view) {
  int64_t dim = static_cast<int64_t>(op.getDim());
  View piece = view;
  for (Value input : op.getInputs()) {
    piece.sizes[dim] = shapeOf(input)[dim];
    if (failed(follow(input, piece)))
      return failure();
    piece.offset += piece.sizes[dim] * view.strides[dim];
  }
  return success();
}

LogicalResult PieceFinder::follow(Value v, const View &view) {
  Operation *op = v.getDefiningOp();
  if (linalg::GenericOp copy = asPermutation(op)) {
    SmallVector<AffineMap> maps = copy.getIndexingMapsArray();
    return follow(copy.getInputs()[0], permute(view, maps[1], maps[0]));
  }
  if (auto insert = dyn_cast_or_null<tensor::InsertSliceOp>(op))
    return followInsertions(insert, view);
  if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(op))
    return followConcatenation(concat, view);
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op))
    return follow(collapse.getSrc(),
                  split(view, collapse.getReassociationIndices(), shapeOf(collapse.getSrc())));
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op)) {
    std::optional<View> merged = merge(view, expand.getReassociationIndices());
    return merged ? follow(expand.getSrc(), *merged) : failure();
  }
  std::optional<HeadLayout> layout = toLayout(view);
  if (!layout && v != result)
    return failure();
  pieces.push_back({v, result, layout.value_or(HeadLayout{})});
  return success();
}

std::optional<SmallVector<PlacedHeads>> fsdp::findPieces(Value result) {
  PieceFinder finder(result);
  if (failed(finder.follow(result, View(shapeOf(result)))))
    return std::nullopt;
  return finder.pieces;
}

bool HeadLayout::isContiguous(RankedTensorType type) const {
  View view(type.getShape());
  auto equal = [&](int64_t dim, int64_t distance) {
    return type.getDimSize(dim) == 1 || view.strides[dim] == distance;
  };
  return offset == 0 && equal(0, batch) && equal(1, head) && equal(2, row);
}

bool HeadLayout::isAligned(RankedTensorType type, int64_t bytes) const {
  int64_t elementBytes = type.getElementTypeBitWidth() / 8;
  return llvm::all_of(ArrayRef<int64_t>{offset, batch, head, row},
                      [&](int64_t distance) { return distance * elementBytes % bytes == 0; });
}

bool HeadLayout::operator==(const HeadLayout &other) const {
  return offset == other.offset && batch == other.batch && head == other.head && row == other.row;
}

SmallVector<OpOperand *> fsdp::getHeadOperands(Operation *attention) {
  if (auto forward = dyn_cast<AttentionOp>(attention))
    return {&forward.getQMutable(), &forward.getKMutable(), &forward.getVMutable()};
  auto gradient = cast<AttentionGradOp>(attention);
  return {&gradient.getQMutable(), &gradient.getKMutable(), &gradient.getVMutable(),
          &gradient.getOMutable(), &gradient.getDoutMutable()};
}

std::optional<SmallVector<PlacedHeads>> fsdp::findHeads(Operation *attention, int64_t bytes) {
  Block *block = attention->getBlock();
  if (!llvm::all_of(block->without_terminator(),
                    [&](Operation &op) { return &op == attention || isMoveOfElements(&op); }))
    return std::nullopt;
  auto isSupported = [&](const PlacedHeads &placed) {
    auto type = cast<RankedTensorType>(placed.heads.getType());
    return placed.layout.isContiguous(type) || placed.layout.isAligned(type, bytes);
  };
  SmallVector<OpOperand *> heads = getHeadOperands(attention);
  SmallVector<PlacedHeads> all;
  for (OpOperand &operand : attention->getOpOperands()) {
    std::optional<PlacedHeads> source;
    if (llvm::is_contained(heads, &operand))
      source = findSource(operand.get());
    if (!isa<BlockArgument>(source ? source->in : operand.get()) ||
        (source && !isSupported(*source)))
      return std::nullopt;
    if (source)
      all.push_back(*source);
  }
  llvm::SmallPtrSet<Value, 8> seen;
  size_t results = isa<AttentionOp>(attention) ? 1 : 3; // O, or dQ, dK and dV
  for (Value yielded : block->getTerminator()->getOperands()) {
    std::optional<SmallVector<PlacedHeads>> pieces = findPieces(yielded);
    if (!pieces || !llvm::all_of(*pieces, [&](const PlacedHeads &piece) {
          return piece.heads.getDefiningOp() == attention && seen.insert(piece.heads).second &&
                 (piece.heads == yielded ||
                  (cast<OpResult>(piece.heads).getResultNumber() < results && isSupported(piece)));
        }))
      return std::nullopt;
    llvm::append_range(all, *pieces);
  }
  return all;
}
