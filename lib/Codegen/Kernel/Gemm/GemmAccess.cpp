//===- GemmAccess.cpp - From tensors to bindings ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Follows an operand of a contraction through reshapes, static slices and unary elementwise ops
// (casts, scales, permutations, broadcasts) to a kernel argument, then computes the operand's
// strides:
//
//   argument    tensor<4x8x16xbf16>     strides 128, 16, 1
//   transpose   tensor<8x4x16xbf16>             16, 128, 1
//   extf        tensor<8x4x16xf32>              16, 128, 1   maps = {extf}
//
// Refuses a reshape that merges dimensions if no single stride describes the merged dimension.
// Takes time linear in the number of ops.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Kernel/Lowering.h"
#include "GemmProblem.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

bool gemm::hasVectorBody(linalg::LinalgOp op) {
  return llvm::all_of(op.getBlock()->without_terminator(), [&](Operation &inner) {
    if (isa<arith::ConstantOp, linalg::IndexOp>(inner))
      return true;
    if (!OpTrait::hasElementwiseMappableTraits(&inner) || inner.getNumResults() != 1)
      return false;
    return llvm::all_of(inner.getOperands(), [&](Value v) {
      return v.getParentBlock() == op.getBlock() || matchPattern(v, m_Constant());
    });
  });
}

static SmallVector<int64_t> rowMajor(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t d = int64_t(shape.size()) - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * shape[d + 1];
  return strides;
}

static Access splatAccess(TypedAttr value, RankedTensorType type) {
  Access access;
  access.splat = value;
  access.elementType = type.getElementType();
  access.dimStrides.assign(type.getRank(), 0);
  return access;
}

static FailureOr<Access> traceExpand(tensor::ExpandShapeOp op) {
  FailureOr<Access> access = traceAccess(op.getSrc());
  if (failed(access))
    return failure();
  ArrayRef<int64_t> shape = op.getResultType().getShape();
  SmallVector<int64_t> strides(shape.size(), 0);
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    int64_t stride = access->dimStrides[dim];
    for (int64_t d : llvm::reverse(group)) {
      strides[d] = stride;
      stride *= shape[d];
    }
  }
  access->dimStrides = strides;
  return access;
}

static FailureOr<Access> traceCollapse(tensor::CollapseShapeOp op) {
  FailureOr<Access> access = traceAccess(op.getSrc());
  if (failed(access))
    return failure();
  ArrayRef<int64_t> shape = op.getSrcType().getShape();
  SmallVector<int64_t> strides;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    // The visited dimensions of the group together form one dimension. `stride` is the stride of
    // this dimension, and `span` is its size.
    int64_t stride = 0, span = 0;
    for (int64_t d : llvm::reverse(group)) {
      if (shape[d] == 1)
        continue;
      if (span == 0)
        stride = access->dimStrides[d];
      else if (access->dimStrides[d] != stride * span)
        return failure();
      span = (span == 0 ? 1 : span) * shape[d];
    }
    strides.push_back(stride);
  }
  access->dimStrides = strides;
  return access;
}

static FailureOr<Access> traceSlice(tensor::ExtractSliceOp op) {
  FailureOr<Access> access = traceAccess(op.getSource());
  if (failed(access) || ShapedType::isDynamicShape(op.getStaticOffsets()) ||
      ShapedType::isDynamicShape(op.getStaticSizes()) ||
      ShapedType::isDynamicShape(op.getStaticStrides()))
    return failure();
  SmallVector<int64_t> strides;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (auto [d, stride] : llvm::enumerate(access->dimStrides)) {
    access->offset += op.getStaticOffset(d) * stride;
    if (!dropped.test(d))
      strides.push_back(stride * op.getStaticStride(d));
  }
  access->dimStrides = strides;
  return access;
}

/// Follows a fill, or an elementwise op that has one tensor input and does not read its output
/// operand.
static FailureOr<Access> traceMap(linalg::LinalgOp op, OpResult result) {
  if (op.getNumDpsInits() != 1 || op.getNumParallelLoops() != op.getNumLoops())
    return failure();
  if (auto fill = dyn_cast<linalg::FillOp>(op.getOperation())) {
    TypedAttr value;
    if (!matchPattern(fill.getInputs()[0], m_Constant(&value)) ||
        value.getType() != getElementTypeOrSelf(result.getType()))
      return failure();
    return splatAccess(value, cast<RankedTensorType>(result.getType()));
  }
  OpOperand *in = op.getDpsInputOperand(0);
  if (op.getNumDpsInputs() != 1 || !isa<RankedTensorType>(in->get().getType()) ||
      op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)) || op.hasIndexSemantics() ||
      !hasVectorBody(op))
    return failure();
  AffineMap inMap = op.getMatchingIndexingMap(in), outMap = op.getIndexingMapMatchingResult(result);
  if (!inMap.isProjectedPermutation() || !outMap.isPermutation())
    return failure();
  FailureOr<Access> access = traceAccess(in->get());
  if (failed(access))
    return failure();
  SmallVector<int64_t> strides(outMap.getNumResults(), 0);
  for (unsigned d = 0; d < strides.size(); ++d)
    if (auto source = inMap.getResultPosition(outMap.getResult(d)))
      strides[d] = access->dimStrides[*source];
  access->dimStrides = strides;
  access->maps.push_back(op);
  return access;
}

FailureOr<Access> gemm::traceAccess(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape())
    return failure();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (!isa<func::FuncOp>(argument.getOwner()->getParentOp()))
      return failure();
    Access access;
    access.binding = argument.getArgNumber();
    access.elementType = type.getElementType();
    access.dimStrides = rowMajor(type.getShape());
    return access;
  }
  return llvm::TypeSwitch<Operation *, FailureOr<Access>>(value.getDefiningOp())
      .Case([](tensor::ExpandShapeOp op) { return traceExpand(op); })
      .Case([](tensor::CollapseShapeOp op) { return traceCollapse(op); })
      .Case([](tensor::ExtractSliceOp op) { return traceSlice(op); })
      .Case([&](linalg::LinalgOp op) { return traceMap(op, cast<OpResult>(value)); })
      .Case([&](arith::ConstantOp op) -> FailureOr<Access> {
        auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
        if (!splat)
          return failure();
        return splatAccess(cast<TypedAttr>(splat.getSplatValue<Attribute>()), type);
      })
      .Default([](Operation *) { return failure(); });
}
