//===- TensorAdjoint.cpp - Adjoints of views, slices and scalars ----------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   expand ↔ collapse            cast ↔ cast
//   extract_slice → pending slice (Cotangents joins them)
//   insert_slice  → slice of ȳ for the source; ȳ with zeros in the slice for the destination
//   concat, pad   → slices of ȳ
//   extract, insert, from_elements, splat, and scalar ops between them   → scalar cotangents
//
// The cotangent of an extracted scalar is added to the cotangent of the tensor as a slice of one
// element.
//
//===----------------------------------------------------------------------===//

#include "Adjoints.h"
#include "ScalarAdjoint.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the tensor type with the shape of `type` and the element type of the cotangent `g`.
static RankedTensorType typeLike(Value g, RankedTensorType type) {
  return cast<RankedTensorType>(withElementType(type, getElementTypeOrSelf(g)));
}

static Value slice(OpBuilder &b, Location loc, Value g, RankedTensorType type,
                   ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  return tensor::ExtractSliceOp::create(b, loc, typeLike(g, type), g,
                                        getAsIndexOpFoldResult(b.getContext(), offsets),
                                        getAsIndexOpFoldResult(b.getContext(), sizes),
                                        getAsIndexOpFoldResult(b.getContext(), strides));
}

static LogicalResult refuseDynamic(Operation *op) {
  return op->emitError("no gradient for '")
         << op->getName() << "' at computed offsets; use constant offsets, or "
         << "gather with a linalg.generic that reads tensor.extract";
}

static LogicalResult differentiate(tensor::ExpandShapeOp op, Value g, Cotangents &c) {
  c.add(op.getSrc(), tensor::CollapseShapeOp::create(c.b, op.getLoc(), typeLike(g, op.getSrcType()),
                                                     g, op.getReassociationIndices()));
  return success();
}

static LogicalResult differentiate(tensor::CollapseShapeOp op, Value g, Cotangents &c) {
  c.add(op.getSrc(), tensor::ExpandShapeOp::create(c.b, op.getLoc(), typeLike(g, op.getSrcType()),
                                                   g, op.getReassociationIndices()));
  return success();
}

static LogicalResult differentiate(tensor::CastOp op, Value g, Cotangents &c) {
  c.add(op.getSource(),
        tensor::CastOp::create(c.b, op.getLoc(),
                               typeLike(g, cast<RankedTensorType>(op.getSource().getType())), g));
  return success();
}

static LogicalResult differentiate(tensor::ExtractSliceOp op, Value g, Cotangents &c) {
  if (!op.getOffsets().empty() || !op.getSizes().empty() || !op.getStrides().empty())
    return refuseDynamic(op);
  c.addSlice(op.getSource(), g, op.getStaticOffsets(), op.getStaticSizes(), op.getStaticStrides());
  return success();
}

static LogicalResult differentiate(tensor::InsertSliceOp op, Value g, Cotangents &c) {
  if (!op.getOffsets().empty() || !op.getSizes().empty() || !op.getStrides().empty())
    return refuseDynamic(op);
  Location loc = op.getLoc();
  if (c.isActive(op.getSource()))
    c.add(op.getSource(), slice(c.b, loc, g, op.getSourceType(), op.getStaticOffsets(),
                                op.getStaticSizes(), op.getStaticStrides()));
  if (c.isActive(op.getDest())) {
    Value hole = buildZeros(c.b, loc, typeLike(g, op.getSourceType()));
    c.add(op.getDest(), tensor::InsertSliceOp::create(c.b, loc, hole, g, op.getMixedOffsets(),
                                                      op.getMixedSizes(), op.getMixedStrides()));
  }
  return success();
}

static LogicalResult differentiate(tensor::ConcatOp op, Value g, Cotangents &c) {
  int64_t at = 0;
  for (Value in : op.getInputs()) {
    auto type = cast<RankedTensorType>(in.getType());
    SmallVector<int64_t> offsets(type.getRank(), 0), ones(type.getRank(), 1);
    offsets[op.getDim()] = at;
    at += type.getDimSize(op.getDim());
    if (c.isActive(in))
      c.add(in, slice(c.b, op.getLoc(), g, type, offsets, type.getShape(), ones));
  }
  return success();
}

static LogicalResult differentiate(tensor::PadOp op, Value g, Cotangents &c) {
  if (!op.getLow().empty() || !op.getHigh().empty())
    return refuseDynamic(op);
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value v : captured)
    if (c.isActive(v)) {
      InFlightDiagnostic diag =
          op.emitError("no gradient for the padding value of 'tensor.pad'; pad with a constant, "
                       "or insert the source into a tensor.splat of the padding value");
      diag.attachNote(v.getLoc()) << "the padding depends on a parameter here";
      return diag;
    }
  auto type = op.getSourceType();
  SmallVector<int64_t> ones(type.getRank(), 1);
  c.add(op.getSource(), slice(c.b, op.getLoc(), g, type, op.getStaticLow(), type.getShape(), ones));
  return success();
}

/// Adds the scalar `g` to the element `at` of the cotangent of `v`.
static void addElement(Value v, Value g, ArrayRef<int64_t> at, Cotangents &c) {
  SmallVector<int64_t> ones(at.size(), 1);
  g = convertFloat(c.b, g.getLoc(), g, c.getElementType(v));
  auto type = RankedTensorType::get({}, g.getType());
  Value element = tensor::FromElementsOp::create(c.b, g.getLoc(), type, g);
  if (at.empty())
    c.add(v, element);
  else
    c.addSlice(v, element, at, ones, ones);
}

static std::optional<SmallVector<int64_t>> getConstantIndices(ValueRange indices) {
  SmallVector<int64_t> constants;
  for (Value index : indices) {
    APInt value;
    if (!matchPattern(index, m_ConstantInt(&value)))
      return std::nullopt;
    constants.push_back(value.getSExtValue());
  }
  return constants;
}

static LogicalResult differentiate(tensor::ExtractOp op, Value g, Cotangents &c) {
  std::optional<SmallVector<int64_t>> at = getConstantIndices(op.getIndices());
  if (!at)
    return refuseDynamic(op);
  addElement(op.getTensor(), g, *at, c);
  return success();
}

static LogicalResult differentiate(tensor::InsertOp op, Value g, Cotangents &c) {
  Location loc = op.getLoc();
  if (c.isActive(op.getScalar()))
    c.add(op.getScalar(), tensor::ExtractOp::create(c.b, loc, g, op.getIndices()));
  if (c.isActive(op.getDest()))
    c.add(op.getDest(),
          tensor::InsertOp::create(c.b, loc, buildZeros(c.b, loc, getElementTypeOrSelf(g)), g,
                                   op.getIndices()));
  return success();
}

static LogicalResult differentiate(tensor::FromElementsOp op, Value g, Cotangents &c) {
  Location loc = op.getLoc();
  SmallVector<int64_t> strides = computeStrides(op.getType().getShape());
  for (auto [n, element] : llvm::enumerate(op.getElements())) {
    if (!c.isActive(element))
      continue;
    SmallVector<Value> at;
    for (int64_t i : delinearize(n, strides))
      at.push_back(arith::ConstantIndexOp::create(c.b, loc, i));
    c.add(element, tensor::ExtractOp::create(c.b, loc, g, at));
  }
  return success();
}

static LogicalResult differentiate(tensor::SplatOp op, Value g, Cotangents &c) {
  Location loc = op.getLoc();
  unsigned rank = cast<RankedTensorType>(g.getType()).getRank();
  Value zero =
      buildZeros(c.b, loc, RankedTensorType::get({}, getWorkingType(getElementTypeOrSelf(g))));
  Value total = buildSum(c.b, loc, g, c.b.getMultiDimIdentityMap(rank), zero,
                         AffineMap::get(rank, 0, c.b.getContext()),
                         [](OpBuilder &, Location, ValueRange x) { return x[0]; });
  c.add(op.getInput(), tensor::ExtractOp::create(c.b, loc, total, ValueRange{}));
  return success();
}

/// Applies the rules of ScalarAdjoint to an arith or math op on scalars that is not in the body of
/// a linalg op.
static LogicalResult differentiateScalar(Operation *op, Value g, Cotangents &c) {
  ScalarAdjoint sweep(c.b, op->getLoc());
  llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
  for (Value operand : operands)
    if (c.isActive(operand))
      sweep.activate(operand);
  sweep.seed(op->getResult(0), g);
  if (failed(sweep.run(op)))
    return failure();
  for (Value operand : operands)
    if (Value gradient = sweep.gradient(operand); gradient && c.isActive(operand))
      c.add(operand, gradient);
  return success();
}

std::optional<LogicalResult> fsdp::differentiateTensorOp(Operation *op, Cotangents &c) {
  if (op->getNumResults() != 1)
    return std::nullopt;
  Value g = c.get(op->getResult(0));
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp, tensor::ExtractSliceOp,
            tensor::InsertSliceOp, tensor::ConcatOp, tensor::PadOp, tensor::ExtractOp,
            tensor::InsertOp, tensor::FromElementsOp, tensor::SplatOp>(
          [&](auto known) { return differentiate(known, g, c); })
      .Default([&](Operation *) -> std::optional<LogicalResult> {
        bool scalar = isa<FloatType>(op->getResult(0).getType()) && op->getNumRegions() == 0;
        if (!scalar)
          return std::nullopt;
        return differentiateScalar(op, g, c);
      });
}
