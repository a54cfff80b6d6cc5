//===- BatchPlace.cpp - Where the samples lie in a tensor -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Propagates the place of the batch through indexing maps, views, slices and elementwise ops. The
// place in the result of any other op is `Unknown`. The place is also `Unknown` if the places in
// two operands differ.
//
//===----------------------------------------------------------------------===//

#include "Interface/BatchPlace.h"
#include "fsdp/IR/StopGradient.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns whether all extents are static and positive, so that code may divide by their product.
static bool hasElements(ArrayRef<int64_t> shape) {
  return llvm::all_of(shape, [](int64_t extent) { return extent > 0; });
}

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Returns the place of the batch in the result of an op. `a` and `b` are the places in the
/// operands of the op.
static BatchPlace join(BatchPlace a, BatchPlace b) {
  if (a.kind == BatchPlace::None || a == b)
    return b;
  return b.kind == BatchPlace::None ? a : BatchPlace::unknown();
}

BatchPlaces::BatchPlaces(func::FuncOp func, ArrayRef<BlockArgument> inputs, int64_t batch)
    : batch(batch) {
  for (BlockArgument input : inputs) {
    auto type = dyn_cast<RankedTensorType>(input.getType());
    bool holdsBatch = type && type.getRank() > 0 && type.getDimSize(0) == batch;
    places[input] = holdsBatch ? BatchPlace::inside(0) : BatchPlace::unknown();
  }
  for (Operation &op : func.getBody().front())
    for (OpResult result : op.getResults())
      places[result] = compute(result);
}

BatchPlace BatchPlaces::joinOperands(Operation *op) const {
  BatchPlace place;
  for (Value operand : op->getOperands())
    place = join(place, get(operand));
  return place;
}

/// Returns the place of the batch in an operand of `op`. The member `dim` of the result is not the
/// number of a dimension of the operand, but the number of the loop of `op` over this dimension.
BatchPlace BatchPlaces::loopOf(linalg::LinalgOp op, OpOperand &operand) const {
  BatchPlace place = get(operand.get());
  if (place.kind != BatchPlace::Inside)
    return place;
  auto loop = dyn_cast<AffineDimExpr>(op.getMatchingIndexingMap(&operand).getResult(place.dim));
  return loop ? BatchPlace::inside(loop.getPosition(), place.outer) : BatchPlace::unknown();
}

/// Returns the place of the batch in a tensor that the body of `op` reads by `lookup`. The member
/// `dim` of the result is a loop of `op`.
BatchPlace BatchPlaces::loopOf(linalg::LinalgOp op, tensor::ExtractOp lookup) const {
  BatchPlace place = get(lookup.getTensor());
  if (place.kind != BatchPlace::Inside)
    return place;
  auto index = lookup.getIndices()[place.dim].getDefiningOp<linalg::IndexOp>();
  bool covers = index && index->getParentOp() == op &&
                op.getStaticLoopRanges()[index.getDim()] == shapeOf(lookup.getTensor())[place.dim];
  return covers ? BatchPlace::inside(index.getDim(), place.outer) : BatchPlace::unknown();
}

BatchPlace BatchPlaces::ofStructured(linalg::LinalgOp op, OpResult result) const {
  BatchPlace place;
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()))
      place = join(place, loopOf(op, operand));
    else
      place = join(place, get(operand.get()));
  op->walk([&](Operation *inner) {
    if (auto lookup = dyn_cast<tensor::ExtractOp>(inner))
      place = join(place, loopOf(op, lookup));
    // An op in the body may also read a scalar that is defined outside the body.
    for (Value operand : inner->getOperands())
      if (inner != op && operand.getParentBlock() == op->getBlock() &&
          !isa<RankedTensorType>(operand.getType()))
        place = join(place, get(operand));
  });
  if (place.kind != BatchPlace::Inside)
    return place;
  AffineMap written = op.getIndexingMapMatchingResult(result);
  for (auto [dim, expr] : llvm::enumerate(written.getResults()))
    if (auto loop = dyn_cast<AffineDimExpr>(expr);
        loop && static_cast<int64_t>(loop.getPosition()) == place.dim)
      return BatchPlace::inside(dim, place.outer);
  // The result has no place, because the op reduces the loop over the batch.
  return {};
}

BatchPlace BatchPlaces::ofCollapse(tensor::CollapseShapeOp op) const {
  BatchPlace place = get(op.getSrc());
  if (place.kind != BatchPlace::Inside)
    return place;
  if (!hasElements(shapeOf(op.getSrc())))
    return BatchPlace::unknown();
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    int64_t outer = place.outer;
    for (int64_t member : group) {
      if (member == place.dim)
        return BatchPlace::inside(dim, outer);
      outer *= shapeOf(op.getSrc())[member];
    }
  }
  return BatchPlace::unknown();
}

BatchPlace BatchPlaces::ofExpand(tensor::ExpandShapeOp op) const {
  BatchPlace place = get(op.getSrc());
  if (place.kind != BatchPlace::Inside)
    return place;
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  if (!hasElements(shape))
    return BatchPlace::unknown();
  // Copy the group, because the method returns a temporary vector.
  ReassociationIndices group = op.getReassociationIndices()[place.dim];
  int64_t before = 1; // product of the extents of all dimensions of the group before `member`
  SmallVector<ReassociationIndices> groups = op.getReassociationIndices();
  for (int64_t member : groups[place.dim]) {
    int64_t outer = place.outer / before;
    if (place.outer % before == 0 && shape[member] % (outer * batch) == 0)
      return BatchPlace::inside(member, outer);
    before *= shape[member];
  }
  return BatchPlace::unknown();
}

BatchPlace BatchPlaces::ofSlice(tensor::ExtractSliceOp op) const {
  BatchPlace place = get(op.getSource());
  if (place.kind != BatchPlace::Inside)
    return place;
  if (op.getStaticSizes()[place.dim] != shapeOf(op.getSource())[place.dim])
    return BatchPlace::unknown();
  llvm::SmallBitVector dropped = op.getDroppedDims();
  int64_t dim = place.dim;
  for (int64_t i = 0; i < place.dim; ++i)
    dim -= dropped.test(i);
  return dropped.test(place.dim) ? BatchPlace::unknown() : BatchPlace::inside(dim, place.outer);
}

BatchPlace BatchPlaces::compute(OpResult result) const {
  Operation *op = result.getOwner();
  // Returns `Unknown` if `keeps` is false for the dimension of the batch, and else `place`.
  auto keeping = [](BatchPlace place, auto keeps) {
    return place.kind != BatchPlace::Inside || keeps(place.dim) ? place : BatchPlace::unknown();
  };
  return llvm::TypeSwitch<Operation *, BatchPlace>(op)
      .Case([&](linalg::LinalgOp structured) { return ofStructured(structured, result); })
      .Case([&](tensor::CollapseShapeOp view) { return ofCollapse(view); })
      .Case([&](tensor::ExpandShapeOp view) { return ofExpand(view); })
      .Case([&](tensor::ExtractSliceOp slice) { return ofSlice(slice); })
      .Case([&](tensor::CastOp cast) { return get(cast.getSource()); })
      .Case([&](tensor::ConcatOp concat) {
        return keeping(joinOperands(op),
                       [&](int64_t dim) { return dim != static_cast<int64_t>(concat.getDim()); });
      })
      .Case([&](tensor::InsertSliceOp insert) {
        return keeping(joinOperands(op), [&](int64_t dim) {
          return shapeOf(insert.getSource()).size() == shapeOf(result).size() &&
                 shapeOf(insert.getSource())[dim] == shapeOf(result)[dim];
        });
      })
      .Case([&](tensor::PadOp pad) {
        return keeping(get(pad.getSource()), [&](int64_t dim) {
          return shapeOf(pad.getSource())[dim] == shapeOf(result)[dim];
        });
      })
      .Case([&](GatherRowsOp gather) {
        bool isShared = get(gather.getTable()).kind == BatchPlace::None;
        return isShared ? get(gather.getIds()) : BatchPlace::unknown();
      })
      .Default([&](Operation *) {
        BatchPlace place = joinOperands(op);
        bool elementwise = llvm::all_of(op->getOperands(), [&](Value operand) {
          return get(operand).kind == BatchPlace::None ||
                 (isa<RankedTensorType>(operand.getType()) &&
                  isa<RankedTensorType>(result.getType()) && shapeOf(operand) == shapeOf(result));
        });
        bool isMap = OpTrait::hasElementwiseMappableTraits(op) ||
                     isa<func::CallOp, linalg::SoftmaxOp, StopGradientOp>(op);
        return place.kind == BatchPlace::None || (elementwise && isMap) ? place
                                                                        : BatchPlace::unknown();
      });
}
