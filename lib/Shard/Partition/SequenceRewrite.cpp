//===- SequenceRewrite.cpp - A part of the sequence per rank ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   own slice      %t = toFront %table            gather     %t = toFront %k
//                  %p = own_piece %t                         %p = all_gather %t
//                  %s = fromFront %p                         %s = fromFront %p
//
// Implements the parts of SplitRewrite.h that only the axis `context` of C ranks needs. toFront
// transposes a tensor so that the split dimension is the first one, and flattens it; fromFront is
// its inverse. Without larger dimensions before the split one, both are views. If the rows of ranks
// are stripes, toFront of a whole value first divides the split dimension n into n/C x C, and the
// first dimension is then C.
//
//  1. A split op reads the rank's own slice of a whole value that has the split dimension.
//  2. Attention has the queries of a rank, and the keys and values of all ranks. The adjoint of the
//     gather adds the cotangents of keys and values over the ranks (reduce-scatter). With a ring,
//     attention has the attribute `ring` instead, and lib/Update/ExpandRing.cpp rewrites it.
//  3. The loss of a cross-entropy is a mean over the rows of a rank. Its weight is 1/C or, with
//     ignored targets, the part of the targets that count. The sum over the ranks is then the mean
//     over all rows.
//
//===----------------------------------------------------------------------===//

#include "SplitRewrite.h"
#include "fsdp/IR/StopGradient.h"

using namespace mlir;
using namespace mlir::fsdp;

static RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Returns [0, rank) with `dim` moved to the front.
static SmallVector<int64_t> getFrontOrder(int64_t rank, int64_t dim) {
  SmallVector<int64_t> order{dim};
  for (int64_t i = 0; i < rank; ++i)
    if (i != dim)
      order.push_back(i);
  return order;
}

/// Transposes a tensor: dimension i of the result is dimension order[i] of `value`.
Value SplitRewrite::transpose(Value value, ArrayRef<int64_t> order) {
  RankedTensorType type = getTensorType(value);
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> exprs(order.size());
  for (auto [i, dim] : llvm::enumerate(order)) {
    shape.push_back(type.getDimSize(dim));
    exprs[dim] = b.getAffineDimExpr(i);
  }
  Location loc = value.getLoc();
  Value empty = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  AffineMap source = AffineMap::get(order.size(), 0, exprs, b.getContext()),
            target = b.getMultiDimIdentityMap(order.size());
  SmallVector<utils::IteratorType> loops(order.size(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, empty.getType(), value, empty, ArrayRef{source, target},
                                   loops,
                                   [](OpBuilder &nested, Location at, ValueRange args) {
                                     linalg::YieldOp::create(nested, at, args[0]);
                                   })
      .getResult(0);
}

/// Returns true if a tensor of this shape has only dimensions of size 1 before `dim`.
static bool isLeading(RankedTensorType type, int64_t dim) {
  return llvm::product_of(type.getShape().take_front(dim)) == 1;
}

static SmallVector<ReassociationIndices> getAllDims(int64_t rank) {
  ReassociationIndices all(rank);
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

/// Moves dimension `dim` to the front, and flattens the tensor. If `isView`, the dimensions before
/// have the size 1, and need no transposition.
Value SplitRewrite::toFront(Value value, int64_t dim, bool isView) {
  if (!isView)
    value = transpose(value, getFrontOrder(getTensorType(value).getRank(), dim));
  if (getTensorType(value).getRank() == 1)
    return value;
  return tensor::CollapseShapeOp::create(b, value.getLoc(), value,
                                         getAllDims(getTensorType(value).getRank()));
}

/// Returns a tensor of `type`. The inverse of toFront.
Value SplitRewrite::fromFront(Value flat, RankedTensorType type, int64_t dim, bool isView) {
  int64_t rank = type.getRank();
  if (rank == 1)
    return flat;
  SmallVector<int64_t> order = getFrontOrder(rank, dim), shape(type.getShape()), back(rank);
  for (auto [i, from] : llvm::enumerate(order)) {
    back[from] = i;
    shape[i] = type.getDimSize(isView ? i : from);
  }
  Value expanded =
      tensor::ExpandShapeOp::create(b, flat.getLoc(), type.clone(shape), flat, getAllDims(rank));
  return isView ? expanded : transpose(expanded, back);
}

/// Returns the reassociation of a tensor of `rank` dimensions, of which `dim` becomes two.
static SmallVector<ReassociationIndices> getDivided(int64_t rank, int64_t dim) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < rank; ++i) {
    groups.push_back({i + (i > dim)});
    if (i == dim)
      groups.back().push_back(i + 1);
  }
  return groups;
}

/// Returns the order of dimensions in which the elements of a rank are neighbours: `dim` + 1 (of
/// size C), then `dim` (of size n/C), then the others.
static SmallVector<int64_t> getStripeOrder(int64_t rank, int64_t dim) {
  SmallVector<int64_t> order{dim + 1, dim};
  for (int64_t i = 0; i < rank; ++i)
    if (i != dim && i != dim + 1)
      order.push_back(i);
  return order;
}

/// Flattens a whole tensor so that the elements of each rank are neighbours.
Value SplitRewrite::stripesToFront(Value value, int64_t dim) {
  RankedTensorType type = getTensorType(value);
  auto shape = llvm::to_vector(type.getShape());
  shape[dim] /= axis.ranks;
  shape.insert(shape.begin() + dim + 1, axis.ranks);
  Value divided = tensor::ExpandShapeOp::create(b, value.getLoc(), type.clone(shape), value,
                                                getDivided(type.getRank(), dim));
  Value front = transpose(divided, getStripeOrder(shape.size(), dim));
  return tensor::CollapseShapeOp::create(b, value.getLoc(), front, getAllDims(shape.size()));
}

/// Returns a whole tensor of `type`. The inverse of stripesToFront.
Value SplitRewrite::stripesFromFront(Value flat, RankedTensorType type, int64_t dim) {
  int64_t rank = type.getRank() + 1;
  SmallVector<int64_t> order = getStripeOrder(rank, dim), shape(rank), back(rank);
  for (auto [i, from] : llvm::enumerate(order)) {
    back[from] = i;
    shape[i] = from == dim + 1 ? axis.ranks : type.getDimSize(from - (from > dim));
  }
  shape[1] /= axis.ranks;
  Value expanded =
      tensor::ExpandShapeOp::create(b, flat.getLoc(), type.clone(shape), flat, getAllDims(rank));
  return tensor::CollapseShapeOp::create(b, flat.getLoc(), transpose(expanded, back),
                                         getDivided(type.getRank(), dim));
}

/// Gives each block of the split dimension of a value an index of its own dimension. `shape` is the
/// shape of the value or, to join the blocks again, of a slice.
static SmallVector<ReassociationIndices> divideBlocks(const TensorSplit &split,
                                                      SmallVector<int64_t> &shape) {
  int64_t count = split.blocks.size();
  SmallVector<ReassociationIndices> groups;
  SmallVector<int64_t> divided;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    groups.push_back({int64_t(divided.size())});
    if (int64_t(dim) == split.dim && count > 1) {
      groups.back().push_back(divided.size() + 1);
      divided.append({count, size / count});
    } else {
      divided.push_back(size);
    }
  }
  shape = divided;
  return groups;
}

/// Returns the rank's slice of a whole value. `cut` returns the rank's piece, of the given type, of
/// a flat tensor in which the elements of each rank are neighbours.
Value SplitRewrite::cut(Value value, const TensorSplit &split,
                        function_ref<Value(RankedTensorType, Value)> cut) {
  Location loc = value.getLoc();
  RankedTensorType type = getTensorType(value);
  auto shape = llvm::to_vector(type.getShape());
  SmallVector<ReassociationIndices> groups = divideBlocks(split, shape);
  bool isDivided = split.blocks.size() > 1;
  int64_t dim = split.dim + isDivided;
  Value source = value;
  if (isDivided)
    source = tensor::ExpandShapeOp::create(b, loc, type.clone(shape), value, groups);
  shape[dim] /= axis.ranks;
  bool isView = isLeading(getTensorType(source), dim);
  Value flat = axis.striped ? stripesToFront(source, dim) : toFront(source, dim, isView);
  auto piece = getTensorType(flat).clone({getTensorType(flat).getDimSize(0) / axis.ranks});
  Value own = fromFront(cut(piece, flat), type.clone(shape), dim, isView);
  return isDivided ? Value(tensor::CollapseShapeOp::create(b, loc, own, groups)) : own;
}

/// Returns the rank's own slice of a whole value.
Value SplitRewrite::slice(Value value, const TensorSplit &split) {
  std::pair<Value, Attribute> key{value, split.toAttribute(b.getContext())};
  if (Value known = slices.lookup(key))
    return known;
  OpBuilder::InsertionGuard guard(b);
  // The cotangent of a slice over this axis is a sum over another axis, as that of the whole value.
  if (auto entry = value.getDefiningOp<ReduceCotangentOp>()) {
    Value own = slice(entry.getInput(), split);
    b.setInsertionPointAfterValue(own);
    return slices[key] = ReduceCotangentOp::create(b, entry.getLoc(), own.getType(), own,
                                                   entry.getMeshAttr(), entry.getAxesAttr());
  }
  b.setInsertionPointAfterValue(value);
  return slices[key] = cut(value, split, [&](RankedTensorType piece, Value flat) -> Value {
           return OwnPieceOp::create(b, value.getLoc(), piece, flat, getMesh(), getAxes());
         });
}

/// Gathers a split value from all ranks. `type` is the type of the whole value. `isView` tells that
/// dimensions before have the size 1.
Value SplitRewrite::gather(Value value, RankedTensorType type, int64_t dim, bool isView) {
  Value flat = toFront(value, dim, isView);
  auto whole = getTensorType(flat).clone({type.getNumElements()});
  Value all = AllGatherOp::create(b, value.getLoc(), whole, flat, getMesh(), getAxes());
  return axis.striped ? stripesFromFront(all, type, dim) : fromFront(all, type, dim, isView);
}

Value SplitRewrite::gatherRows(Value rows, const TensorSplit &split) {
  b.setInsertionPointAfterValue(rows);
  RankedTensorType type = getTensorType(rows);
  auto shape = llvm::to_vector(type.getShape());
  SmallVector<ReassociationIndices> groups = divideBlocks(split, shape);
  bool isDivided = split.blocks.size() > 1;
  int64_t dim = split.dim + isDivided;
  if (isDivided)
    rows = tensor::ExpandShapeOp::create(b, rows.getLoc(), type.clone(shape), rows, groups);
  shape[dim] *= axis.ranks;
  Value all = gather(rows, type.clone(shape), dim, isLeading(getTensorType(rows), dim));
  return isDivided ? Value(tensor::CollapseShapeOp::create(b, rows.getLoc(), all, groups)) : all;
}

/// Lets attention read the keys and values of all ranks.
void SplitRewrite::readKeys(AttentionOp op) {
  b.setInsertionPoint(op);
  if (hasRing) {
    op.setRing(axis.ranks);
    op.setStriped(axis.striped);
    return shiftIndices(op, 2);
  }
  for (unsigned i : {1, 2}) {
    OpOperand &operand = op->getOpOperand(i);
    auto shape = llvm::to_vector(getTensorType(operand.get()).getShape());
    shape[2] *= axis.ranks;
    // The dimensions before may have the size 1 because the axis `tensor` splits them, so that a
    // view would lose which one.
    operand.set(gather(operand.get(), getTensorType(operand.get()).clone(shape), 2,
                       /*isView=*/false));
  }
  shiftIndices(op, 2);
}

/// Counts the targets that are not `ignored`, as an f64.
Value SplitRewrite::countTargets(Location loc, Value targets, int64_t ignored) {
  auto type = RankedTensorType::get({}, b.getF64Type());
  auto constant = [&](OpBuilder &at, double value) -> Value {
    return arith::ConstantOp::create(at, loc, at.getF64FloatAttr(value));
  };
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  Value zero = linalg::FillOp::create(b, loc, constant(b, 0), empty).getResult(0);
  AffineMap rows = b.getMultiDimIdentityMap(1), scalar = AffineMap::get(1, 0, b.getContext());
  return linalg::GenericOp::create(
             b, loc, type, targets, zero, ArrayRef{rows, scalar}, utils::IteratorType::reduction,
             [&](OpBuilder &at, Location, ValueRange args) {
               Value skipped = arith::ConstantOp::create(
                   at, loc, at.getIntegerAttr(args[0].getType(), ignored));
               Value counts =
                   arith::CmpIOp::create(at, loc, arith::CmpIPredicate::ne, args[0], skipped);
               Value term =
                   arith::SelectOp::create(at, loc, counts, constant(at, 1), constant(at, 0));
               Value sum = arith::AddFOp::create(at, loc, args[1], term);
               linalg::YieldOp::create(at, loc, sum);
             })
      .getResult(0);
}

/// Multiplies the loss of a cross-entropy by the part that its rows are of all rows.
void SplitRewrite::weighLoss(CrossEntropyOp op, Value allTargets) {
  Location loc = op.getLoc();
  Value loss = op.getLoss();
  SmallVector<Value> ins{loss};
  b.setInsertionPointAfter(op);
  if (std::optional<int64_t> ignored = op.getIgnoreIndex())
    ins.append(
        {countTargets(loc, op.getTargets(), *ignored), countTargets(loc, allTargets, *ignored)});
  Type element = getTensorType(loss).getElementType();
  Value empty = tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>(), element);
  SmallVector<AffineMap> maps(ins.size() + 1, AffineMap::get(0, 0, b.getContext()));
  auto weighed = linalg::GenericOp::create(
      b, loc, empty.getType(), ins, empty, maps, ArrayRef<utils::IteratorType>(),
      [&](OpBuilder &at, Location, ValueRange args) {
        Value weight =
            arith::ConstantOp::create(at, loc, at.getFloatAttr(element, 1.0 / double(axis.ranks)));
        if (ins.size() > 1) {
          Value one = arith::ConstantOp::create(at, loc, at.getF64FloatAttr(1));
          // If all targets are ignored, all losses are 0.
          Value all = arith::MaximumFOp::create(at, loc, args[2], one);
          weight = arith::DivFOp::create(at, loc, args[1], all);
          if (element != weight.getType())
            weight = arith::TruncFOp::create(at, loc, element, weight);
        }
        Value product = arith::MulFOp::create(at, loc, args[0], weight);
        linalg::YieldOp::create(at, loc, product);
      });
  loss.replaceAllUsesExcept(weighed.getResult(0), weighed);
}
