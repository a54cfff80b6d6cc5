//===- RaisedAdjoint.cpp - Adjoints of softmax and of fsdp ops --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   y = softmax(x)             x̄ = y · (ȳ - Σ ȳ·y)
//   e = gather_rows w[ids]     w̄ = scatter_add_rows ē at ids into w̄
//   loss, lse = cross_entropy  x̄ = cross_entropy_grad (+ lsē · exp(x - lse))
//   o = attention q, k, v      q̄, k̄, v̄, captured.. = attention_grad, score_grad derived here
//   y = all_reduce x, sum      x̄ = ȳ; x is a partial sum, and every rank has the whole ȳ
//   y = reduce_cotangent x     x̄ = all_reduce ȳ, sum; every rank has a part of ȳ
//   y = share_cotangent x      x̄ = ȳ · 1/n; every rank has the whole ȳ
//   y = all_gather x           x̄ = flat_reduce_scatter ȳ, sum; every rank has a part of ȳ
//   y = flat_reduce_scatter x  x̄ = all_gather ȳ, in the type to which ȳ has been rounded
//   y = own_piece x            x̄ = zeros around ȳ; the other ranks have the rest of x̄
//   w.. = unshard s @u         s̄ = reduce_scatter @u avg (w̄..), after the last of them
//
//===----------------------------------------------------------------------===//

#include "Adjoints.h"
#include "ScalarAdjoint.h"
#include "fsdp/IR/StopGradient.h"
#include "fsdp/IR/TensorSplit.h"
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
      b, loc, empty.getType(), ValueRange{g, y, dot}, empty,
      ArrayRef<AffineMap>{all, all, row, all}, loops,
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

/// Adds lsē · softmax(x) to the cotangent of the logits x, if the model uses the log-sum-exp.
static void differentiateLse(CrossEntropyOp op, Cotangents &c) {
  Value g = c.get(op.getLse());
  if (!g)
    return;
  OpBuilder &b = c.b;
  Type element = c.getElementType(op.getLogits()), work = getWorkingType(element);
  AffineMap all = b.getMultiDimIdentityMap(2), row = all.dropResult(1);
  Value empty = tensor::EmptyOp::create(
      b, op.getLoc(), cast<RankedTensorType>(op.getLogits().getType()).getShape(), element);
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  auto x = linalg::GenericOp::create(
      b, op.getLoc(), empty.getType(), ValueRange{op.getLogits(), op.getLse(), g}, empty,
      ArrayRef<AffineMap>{all, row, row, all}, loops,
      [&](OpBuilder &b, Location loc, ValueRange x) {
        Value shifted = arith::SubFOp::create(b, loc, convertFloat(b, loc, x[0], work),
                                              convertFloat(b, loc, x[1], work));
        Value p = math::ExpOp::create(b, loc, shifted);
        Value product = arith::MulFOp::create(b, loc, convertFloat(b, loc, x[2], work), p);
        linalg::YieldOp::create(b, loc, convertFloat(b, loc, product, element));
      });
  c.add(op.getLogits(), x.getResult(0));
}

static LogicalResult differentiate(CrossEntropyOp op, Cotangents &c) {
  if (Value g = c.get(op.getLoss()))
    c.add(op.getLogits(),
          CrossEntropyGradOp::create(c.b, op.getLoc(), c.getType(op.getLogits()), op.getLogits(),
                                     op.getTargets(), op.getLse(), g, op.getCoordinate(),
                                     op.getIgnoreIndexAttr()));
  differentiateLse(op, c);
  return success();
}

/// Derives score_grad from score_mod. Clones the ops of score_mod, and then appends the ops of
/// their reverse sweep. An fsdp.contribute adds to the gradient of an element that score_mod reads.
static LogicalResult deriveScoreGrad(Region &scoreMod, Region &scoreGrad) {
  Block &from = scoreMod.front();
  Block &to = scoreGrad.emplaceBlock();
  Location loc = from.getTerminator()->getLoc();
  Value g = to.addArgument(from.getArgument(0).getType(), loc);
  IRMapping mapping;
  for (BlockArgument argument : from.getArguments())
    mapping.map(argument, to.addArgument(argument.getType(), argument.getLoc()));
  OpBuilder b = OpBuilder::atBlockBegin(&to);
  ScalarAdjoint sweep(b, loc);
  Value score = to.getArgument(1);
  sweep.activate(score);
  SmallVector<Operation *> ops;
  SmallVector<tensor::ExtractOp> reads;
  for (Operation &o : from.without_terminator()) {
    Operation *clone = b.clone(o, mapping);
    auto extract = dyn_cast<tensor::ExtractOp>(clone);
    if (!extract) {
      ops.push_back(clone);
    } else if (isFloat(extract)) {
      sweep.activate(extract);
      reads.push_back(extract);
    }
  }
  sweep.seed(mapping.lookup(from.getTerminator()->getOperand(0)), g);
  if (failed(sweep.run(ops)))
    return failure();
  for (tensor::ExtractOp read : reads)
    if (Value sum = sweep.gradient(read))
      ContributeOp::create(b, read.getLoc(), sum, read.getTensor(), read.getIndices());
  Value result = sweep.gradient(score);
  YieldOp::create(b, loc, result ? result : buildZeros(b, loc, g.getType()));
  return success();
}

static LogicalResult differentiate(AttentionOp op, Cotangents &c) {
  if (c.get(op.getLse()))
    return op.emitError("no gradient for result 1 of 'fsdp.attention' (the log-sum-exp): expected "
                        "the loss to depend on result 0 only");
  Value g = c.get(op.getO());
  SmallVector<Type> types{c.getType(op.getQ()), c.getType(op.getK()), c.getType(op.getV())};
  SmallVector<Value> floats = llvm::filter_to_vector(op.getCaptures(), isFloat);
  for (Value capture : floats)
    types.push_back(c.getType(capture));
  g = convertElements(c.b, op.getLoc(), g, getElementTypeOrSelf(op.getO()));
  auto grad = AttentionGradOp::create(c.b, op.getLoc(), types, op.getQ(), op.getK(), op.getV(),
                                      op.getO(), op.getLse(), g, op.getCaptures(),
                                      op.getScaleAttr(), op.getRingAttr(), op.getStripedAttr());
  IRMapping mapping;
  op.getScoreMod().cloneInto(&grad.getScoreMod(), mapping);
  op.getMaskMod().cloneInto(&grad.getMaskMod(), mapping);
  op.getWeightMod().cloneInto(&grad.getWeightMod(), mapping);
  if (!op.getScoreMod().empty() && failed(deriveScoreGrad(grad.getScoreMod(), grad.getScoreGrad())))
    return failure();
  c.add(op.getQ(), grad.getDq());
  c.add(op.getK(), grad.getDk());
  c.add(op.getV(), grad.getDv());
  for (auto [value, gradient] : llvm::zip_equal(floats, grad.getDcaptures()))
    c.add(value, gradient);
  return success();
}

static LogicalResult differentiate(AllReduceOp op, Cotangents &c) {
  if (op.getReduction() != ReductionKind::sum)
    return op.emitError("no gradient for an all_reduce with 'avg'; expected 'sum'");
  c.add(op.getInput(), c.get(op.getResult()));
  return success();
}

static LogicalResult differentiate(ReduceCotangentOp op, Cotangents &c) {
  Value g = c.get(op.getResult());
  auto sum = ReductionKindAttr::get(op.getContext(), ReductionKind::sum);
  c.add(op.getInput(),
        AllReduceOp::create(c.b, op.getLoc(), g.getType(), g, op.getMeshAttr(), op.getAxes(), sum));
  return success();
}

static LogicalResult differentiate(ShareCotangentOp op, Cotangents &c) {
  Value g = c.get(op.getResult());
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, op.getMeshAttr());
  int64_t ranks = 1;
  for (StringRef axis : op.getAxes().getAsValueRange<StringAttr>())
    ranks *= mesh.getAxisSize(axis);
  Type element = getElementTypeOrSelf(g);
  c.add(op.getInput(), buildElementwise(c.b, op.getLoc(), g, element,
                                        [&](OpBuilder &b, Location loc, ValueRange x) -> Value {
                                          Value part = arith::ConstantOp::create(
                                              b, loc, b.getFloatAttr(element, 1.0 / ranks));
                                          return arith::MulFOp::create(b, loc, x[0], part);
                                        }));
  return success();
}

static LogicalResult differentiate(AllGatherOp op, Cotangents &c) {
  Value g = c.get(op.getResult());
  auto type = cast<RankedTensorType>(g.getType());
  auto piece = type.clone(op.getInput().getType().getShape());
  auto sum = ReductionKindAttr::get(op.getContext(), ReductionKind::sum);
  c.add(op.getInput(), FlatReduceScatterOp::create(c.b, op.getLoc(), piece, g, op.getMeshAttr(),
                                                   op.getAxes(), sum));
  return success();
}

/// Returns the tensor whose elements `v` extends to f32, through reshapes. Returns null if `v` is
/// another value.
static Value findNarrow(Value v) {
  while (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(v.getDefiningOp()))
    v = v.getDefiningOp()->getOperand(0);
  auto map = v.getDefiningOp<linalg::GenericOp>();
  if (!map || map.getNumDpsInputs() != 1 || map->getNumResults() != 1 || map.getNumLoops() == 0 ||
      llvm::any_of(map.getIndexingMapsArray(), [](AffineMap m) { return !m.isIdentity(); }))
    return {};
  auto wide = map.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::ExtFOp>();
  return wide && wide.getIn() == map.getBody()->getArgument(0) ? map.getDpsInputs()[0] : Value();
}

/// Gathers the pieces `g` of a cotangent in the type that they have been rounded to.
static Value gatherPieces(Operation *op, FlatSymbolRefAttr mesh, ArrayAttr axes, Value input,
                          Value g, Cotangents &c) {
  auto type = cast<RankedTensorType>(g.getType()),
       whole = type.clone(cast<RankedTensorType>(input.getType()).getShape());
  Value narrow = findNarrow(g);
  Location loc = op->getLoc();
  if (!narrow)
    return AllGatherOp::create(c.b, loc, whole, g, mesh, axes);
  Type element = getElementTypeOrSelf(narrow);
  ReassociationIndices dims(cast<RankedTensorType>(narrow.getType()).getRank());
  std::iota(dims.begin(), dims.end(), 0);
  if (dims.size() > 1)
    narrow =
        tensor::CollapseShapeOp::create(c.b, loc, narrow, SmallVector<ReassociationIndices>{dims});
  Value gathered = AllGatherOp::create(c.b, loc, whole.clone(element), narrow, mesh, axes);
  return buildElementwise(c.b, loc, gathered, type.getElementType(),
                          [&](OpBuilder &b, Location at, ValueRange x) -> Value {
                            return convertFloat(b, at, x[0], type.getElementType());
                          });
}

static LogicalResult differentiate(FlatReduceScatterOp op, Cotangents &c) {
  if (op.getReduction() != ReductionKind::sum)
    return op.emitError("no gradient for a flat_reduce_scatter with 'avg'; expected 'sum'");
  c.add(op.getInput(),
        gatherPieces(op, op.getMeshAttr(), op.getAxes(), op.getInput(), c.get(op.getResult()), c));
  return success();
}

static LogicalResult differentiate(OwnPieceOp op, Cotangents &c) {
  Value g = c.get(op.getResult()), coordinate = findCoordinate(op, contextAxis);
  if (isOverTensor(op.getAxes()) && findCoordinate(op, tensorAxis)) {
    c.add(op.getInput(), gatherPieces(op, op.getMeshAttr(), op.getAxes(), op.getInput(), g, c));
    return success();
  }
  if (!coordinate || op.getAxes().size() != 1 ||
      cast<StringAttr>(op.getAxes()[0]).getValue() != contextAxis)
    return op.emitError(
               "no gradient for an own_piece over other axes than 'context' or 'tensor', or "
               "without an argument with '")
           << FSDPDialect::keyAttr << "' equal to the axis";
  OpBuilder &b = c.b;
  Location loc = op.getLoc();
  int64_t size = op.getResult().getType().getDimSize(0),
          pieces = op.getInput().getType().getDimSize(0) / size;
  Type element = c.getElementType(op.getInput());
  Value empty = tensor::EmptyOp::create(b, loc, {pieces, size}, element);
  MLIRContext *context = b.getContext();
  AffineMap all = b.getMultiDimIdentityMap(2), piece = all.dropResult(0),
            scalar = AffineMap::get(2, 0, context);
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  auto placed = linalg::GenericOp::create(
      b, loc, empty.getType(), ValueRange{g, coordinate}, empty,
      ArrayRef<AffineMap>{piece, scalar, all}, loops,
      [&](OpBuilder &b, Location loc, ValueRange x) {
        Value number =
            arith::IndexCastOp::create(b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, 0));
        Value isOwn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, x[1]);
        Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
        Value own = convertFloat(b, loc, x[0], element);
        Value chosen = arith::SelectOp::create(b, loc, isOwn, own, zero);
        linalg::YieldOp::create(b, loc, chosen);
      });
  c.add(op.getInput(), tensor::CollapseShapeOp::create(b, loc, placed.getResult(0),
                                                       ArrayRef<ReassociationIndices>{{0, 1}}));
  return success();
}

std::optional<LogicalResult> fsdp::differentiateRaisedOp(Operation *op, Cotangents &cotangents) {
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<linalg::SoftmaxOp, GatherRowsOp, CrossEntropyOp, AttentionOp, AllReduceOp,
            ReduceCotangentOp, ShareCotangentOp, AllGatherOp, FlatReduceScatterOp, OwnPieceOp>(
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
    return diag << ": control flow is not differentiated; unroll the loop or write the choice with "
                   "arith.select";
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) &&
      op->hasTrait<OpTrait::Elementwise>())
    return diag << " on tensors; run --convert-elementwise-to-linalg before --fsdp-add-backward";
  return diag << "; rewrite it with ops of the model contract (docs/explanation/pipeline.md)";
}
