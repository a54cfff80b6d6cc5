//===- ConstantElements.cpp - Elements of constant tables -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Follows a tensor and a position back to a constant. A view keeps the row-major index of the
// element. A slice maps the position by its offsets and strides. The body of an elementwise op is
// evaluated at the position. Only one element is computed, so that tables of any size can be read.
//
//===----------------------------------------------------------------------===//

#include "Raise/ConstantElements.h"
#include "Lookups/EvaluateScalar.h"
#include "Structure/Structured.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

/// `value` is a scalar in the body of `op`. Returns the number that `value` has in the iteration
/// with the indices `loops`, or nothing if `value` is not constant.
static std::optional<Scalar> valueAt(linalg::GenericOp op, Value value, ArrayRef<int64_t> loops) {
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return readScalar(constant);
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    OpOperand &operand = op->getOpOperand(arg.getArgNumber());
    if (arg.getOwner() != op.getBody() || !isa<RankedTensorType>(operand.get().getType()))
      return std::nullopt;
    Attribute element = elementAt(operand.get(), op.getMatchingIndexingMap(&operand).compose(loops),
                                  /*throughBodies=*/true);
    return element ? readScalar(element) : std::nullopt;
  }
  Operation *source = value.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(source))
    return Scalar::of(loops[index.getDim()]);
  if (source->getBlock() != op.getBody() || !isKnownScalarOp(source))
    return std::nullopt;
  SmallVector<Scalar> operands;
  for (Value operand : source->getOperands()) {
    std::optional<Scalar> known = valueAt(op, operand, loops);
    if (!known || known->undefined)
      return std::nullopt;
    operands.push_back(*known);
  }
  Scalar result = evaluateScalar(source, operands);
  return result.undefined ? std::nullopt : std::optional(result);
}

/// Returns the element at `at` of the result of `op` if `op` is an elementwise op on constant
/// tables. Returns null otherwise.
static Attribute computedAt(linalg::GenericOp op, ArrayRef<int64_t> at) {
  AffineMap written = op.getIndexingMapsArray().back();
  if (!isParallel(op) || op->getNumResults() != 1 || !written.isPermutation())
    return {};
  SmallVector<int64_t> loops(at.size());
  for (auto [d, index] : llvm::enumerate(at))
    loops[written.getDimPosition(d)] = index;
  std::optional<Scalar> value = valueAt(op, op.getBody()->getTerminator()->getOperand(0), loops);
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (!value)
    return {};
  if (isa<FloatType>(element))
    return FloatAttr::get(element, value->real);
  return IntegerAttr::get(element, value->integer);
}

Attribute fsdp::elementAt(Value table, SmallVector<int64_t> at, bool throughBodies) {
  for (Operation *op = table.getDefiningOp(); op; op = table.getDefiningOp()) {
    DenseElementsAttr elements;
    int64_t flat = 0;
    for (auto [coordinate, extent] :
         llvm::zip_equal(at, cast<RankedTensorType>(table.getType()).getShape())) {
      if (coordinate < 0 || coordinate >= extent)
        return {};
      flat = flat * extent + coordinate;
    }
    if (matchPattern(op, m_Constant(&elements)))
      return elements.getValues<Attribute>()[flat];
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      return throughBodies ? computedAt(generic, at) : Attribute();
    bool isView = isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
    auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
    if (!isView &&
        (!slice ||
         slice.getStaticOffsets().size() != static_cast<size_t>(slice.getSourceType().getRank()) ||
         llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic) ||
         llvm::any_of(slice.getStaticStrides(), ShapedType::isDynamic)))
      return {};
    table = op->getOperand(0);
    ArrayRef<int64_t> shape = cast<RankedTensorType>(table.getType()).getShape();
    SmallVector<int64_t> source(shape.size());
    if (isView)
      for (unsigned d = shape.size(); d-- > 0; flat /= shape[d])
        source[d] = flat % shape[d];
    for (unsigned d = 0, next = 0; slice && d < shape.size(); ++d)
      source[d] = slice.getStaticOffsets()[d] +
                  (slice.getDroppedDims().test(d) ? 0 : at[next++] * slice.getStaticStrides()[d]);
    at = source;
  }
  return {};
}
