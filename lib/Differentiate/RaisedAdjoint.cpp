//===- RaisedAdjoint.cpp - Adjoints of softmax and of fsdp ops --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   y = softmax(x)             x̄ = y · (ȳ - Σ ȳ·y)
//   e = gather_rows w[ids]     w̄ = scatter_add_rows ē at ids into w̄
//   loss, lse = cross_entropy  x̄ = cross_entropy_grad (+ lsē · exp(x - lse))
//   w.. = unshard s @u         s̄ = reduce_scatter @u avg (w̄..), behind the last of them
//
//===----------------------------------------------------------------------===//

#include "Adjoints.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

static LogicalResult differentiate(linalg::SoftmaxOp op, Cotangents &c) {
  OpBuilder &b = c.b;
  Location loc = op.getLoc();
  Value y = op->getResult(0), g = c.get(y);
  auto type = cast<RankedTensorType>(y.getType());
  Type element = c.getElementType(op.getInput()), work = getWorkingType(type.getElementType());
  unsigned rank = type.getRank(), dim = op.getDimension();
  AffineMap all = b.getMultiDimIdentityMap(rank), row = all.dropResult(dim);
  auto rows = RankedTensorType(RankedTensorType::Builder(type).dropDim(dim).setElementType(work));
  Value dot = buildSum(b, loc, {g, y}, {all, all}, buildZeros(b, loc, rows), row,
                       [&](OpBuilder &b, Location loc, ValueRange x) -> Value {
                         return arith::MulFOp::create(b, loc, convertFloat(b, loc, x[0], work),
                                                      convertFloat(b, loc, x[1], work));
                       });
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), element);
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  auto x = linalg::GenericOp::create(
      b, loc, empty.getType(), ValueRange{g, y, dot}, empty, ArrayRef<AffineMap>{all, all, row, all}, loops,
      [&](OpBuilder &b, Location loc, ValueRange x) {
        Value centred = arith::SubFOp::create(b, loc, convertFloat(b, loc, x[0], work), x[2]);
        Value product = arith::MulFOp::create(b, loc, convertFloat(b, loc, x[1], work), centred);
        linalg::YieldOp::create(b, loc, convertFloat(b, loc, product, element));
      });
  c.add(op.getInput(), x.getResult(0));
  return success();
}

static LogicalResult differentiate(GatherRowsOp op, Cotangents &c) {
  int64_t columns = cast<RankedTensorType>(op.getTable().getType()).getDimSize(1);
  scatterAddRows(op.getTable(), c.get(op.getResult()), op.getIds(), columns, c);
  return success();
}

/// lsē · softmax, where a model uses the log-sum-exp beside the loss.
static void differentiateLse(CrossEntropyOp op, Cotangents &c) {
  Value g = c.get(op.getLse());
  if (!g)
    return;
  OpBuilder &b = c.b;
  Type element = c.getElementType(op.getLogits()), work = getWorkingType(element);
  AffineMap all = b.getMultiDimIdentityMap(2), row = all.dropResult(1);
  Value empty = tensor::EmptyOp::create(b, op.getLoc(), cast<RankedTensorType>(op.getLogits().getType()).getShape(),
                                        element);
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  auto x = linalg::GenericOp::create(
      b, op.getLoc(), empty.getType(), ValueRange{op.getLogits(), op.getLse(), g}, empty,
      ArrayRef<AffineMap>{all, row, row, all}, loops, [&](OpBuilder &b, Location loc, ValueRange x) {
        Value shifted = arith::SubFOp::create(b, loc, convertFloat(b, loc, x[0], work), convertFloat(b, loc, x[1], work));
        Value p = math::ExpOp::create(b, loc, shifted);
        Value product = arith::MulFOp::create(b, loc, convertFloat(b, loc, x[2], work), p);
        linalg::YieldOp::create(b, loc, convertFloat(b, loc, product, element));
      });
  c.add(op.getLogits(), x.getResult(0));
}

static LogicalResult differentiate(CrossEntropyOp op, Cotangents &c) {
  if (Value g = c.get(op.getLoss()))
    c.add(op.getLogits(), CrossEntropyGradOp::create(c.b, op.getLoc(), c.getType(op.getLogits()), op.getLogits(),
                                                     op.getTargets(), op.getLse(), g, op.getIgnoreIndexAttr()));
  differentiateLse(op, c);
  return success();
}

std::optional<LogicalResult> fsdp::differentiateRaisedOp(Operation *op, Cotangents &cotangents) {
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<linalg::SoftmaxOp, GatherRowsOp, CrossEntropyOp>(
          [&](auto known) { return differentiate(known, cotangents); })
      .Default(std::nullopt);
}

LogicalResult fsdp::differentiateOp(Operation *op, Cotangents &cotangents) {
  for (Type type : op->getResultTypes())
    if (auto shaped = dyn_cast<ShapedType>(type); shaped && !shaped.hasStaticShape())
      return op->emitError("no gradient for dynamic shapes: expected static ones, found ") << type;
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return differentiateStructured(structured, cotangents);
  if (std::optional<LogicalResult> done = differentiateRaisedOp(op, cotangents))
    return *done;
  if (std::optional<LogicalResult> done = differentiateTensorOp(op, cotangents))
    return *done;
  InFlightDiagnostic diag = op->emitError("no gradient for '") << op->getName() << "'";
  if (op->getNumRegions())
    return diag << ": control flow is not differentiated; unroll the loop or write the choice with arith.select";
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) && op->hasTrait<OpTrait::Elementwise>())
    return diag << " on tensors; run --convert-elementwise-to-linalg before it";
  return diag << "; rewrite it with ops of the model contract (docs/Pipeline.md)";
}
