//===- Verifiers.cpp - The numbered constraints of the ops ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// (C1), (C2), ... below are the numbers in the ops' descriptions.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/FSDP.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult MeshOp::verify() {
  if (getAxes().empty()) // (C1)
    return emitOpError("expected at least one axis");
  llvm::StringSet<> names;
  for (auto axis : getAxes().getAsRange<AxisAttr>()) {
    if (!names.insert(axis.getName()).second) // (C1)
      return emitOpError("has two axes called '") << axis.getName() << "'";
    if (axis.getFactors().empty() || llvm::any_of(axis.getFactors(), [](int64_t f) { return f < 1; })) // (C2)
      return emitOpError("axis '") << axis.getName() << "' expected factors of at least 1";
  }
  return success();
}

LogicalResult UnitOp::verify() {
  if (getShards() < 1 || getShardSize() < 0)
    return emitOpError("expected at least one shard of non-negative size, found ")
           << getShards() << " x " << getShardSize();
  int64_t end = 0;
  llvm::StringSet<> names;
  for (auto param : getParams().getAsRange<ParamAttr>()) {
    if (param.getType().getElementType() != getDtype()) // (C1)
      return emitOpError("parameter '") << param.getName() << "' has type " << param.getType()
                                        << " in a unit of " << getDtype();
    if (param.getOffset() < end) // (C2)
      return emitOpError("parameter '") << param.getName() << "' at offset " << param.getOffset()
                                        << " overlaps the one before it, which ends at " << end;
    end = param.getOffset() + param.getType().getNumElements();
    if (!names.insert(param.getName()).second) // (C3)
      return emitOpError("has two parameters called '") << param.getName() << "'";
  }
  if (end > getFlatSize()) // (C2)
    return emitOpError("parameters end at ") << end << ", behind the flat buffer of " << getFlatSize();
  if (getHoisted() && getReshard()) // (C5)
    return emitOpError("is hoisted, so it cannot be gathered again in the backward");
  if (std::optional<PlacementAttr> placement = getPlacement()) { // (C4)
    Builder builder(getContext());
    ArrayAttr order = builder.getStrArrayAttr({"shard", "replicate"});
    size_t before = 0;
    for (ArrayAttr axes : {placement->getParameters(), placement->getGradients(), placement->getOptimizer()}) {
      if (axes.size() > order.size() || axes.getValue() != order.getValue().take_front(axes.size()))
        return emitOpError("'placement' expected axes as ") << order << " or a beginning of it, found " << axes;
      if (axes.size() < before)
        return emitOpError("'placement' expected the optimizer in pieces at least as small as the gradients, and "
                           "these as the parameters, found ")
               << axes;
      before = axes.size();
    }
  }
  return success();
}

/// The unit an op names; emits (C1).
static FailureOr<UnitOp> lookUpUnit(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &tables) {
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, name);
  if (!unit)
    return op->emitOpError("expected ") << name << " to be an 'fsdp.unit'";
  return unit;
}

/// `values` are the parameters `indices` of the unit, all of one element type.
static LogicalResult checkParams(Operation *op, UnitOp unit, ValueRange values, ArrayRef<int64_t> indices) {
  Type element;
  for (auto [value, index] : llvm::zip_equal(values, indices)) {
    ParamAttr param = unit.getParam(index);
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getShape() != param.getType().getShape()) {
      InFlightDiagnostic diag = op->emitOpError("expected the shape of parameter '")
                                << param.getName() << "', " << param.getType() << ", found " << type;
      diag.attachNote(unit.getLoc()) << "the unit is declared here";
      return diag;
    }
    if (element && type.getElementType() != element)
      return op->emitOpError("expected one element type, found ") << element << " and " << type.getElementType();
    element = type.getElementType();
  }
  return success();
}

/// The flat buffer is a whole number of shards of this size.
static LogicalResult checkShard(Operation *op, UnitOp unit, Type shard) {
  int64_t size = cast<RankedTensorType>(shard).getDimSize(0);
  if (size == unit.getFlatSize() || (size > 0 && unit.getFlatSize() % size == 0))
    return success();
  InFlightDiagnostic diag = op->emitOpError("a shard of ")
                            << size << " elements does not divide the flat size " << unit.getFlatSize();
  diag.attachNote(unit.getLoc()) << "the unit is declared here";
  return diag;
}

LogicalResult UnshardOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<UnitOp> unit = lookUpUnit(*this, getUnitAttr(), tables); // (C1)
  if (failed(unit))
    return failure();
  if (getNumResults() != unit->getNumParams()) // (C2)
    return emitOpError("expected ") << unit->getNumParams() << " results, found " << getNumResults();
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, getNumResults()));
  if (failed(checkParams(*this, *unit, getResults(), all))) // (C2)
    return failure();
  return checkShard(*this, *unit, getShard().getType()); // (C3)
}

LogicalResult ShardOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<UnitOp> unit = lookUpUnit(*this, getUnitAttr(), tables); // (C1)
  if (failed(unit))
    return failure();
  if (getNumOperands() != unit->getNumParams()) // (C2)
    return emitOpError("expected ") << unit->getNumParams() << " operands, found " << getNumOperands();
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, getNumOperands()));
  if (failed(checkParams(*this, *unit, getParams(), all))) // (C2)
    return failure();
  return checkShard(*this, *unit, getShard().getType()); // (C3)
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<UnitOp> unit = lookUpUnit(*this, getUnitAttr(), tables); // (C1)
  if (failed(unit))
    return failure();
  if (getParams().size() != getGrads().size()) // (C2)
    return emitOpError("expected one operand per entry of 'params', found ")
           << getGrads().size() << " and " << getParams().size();
  int64_t last = -1;
  for (int64_t index : getParams()) {
    if (index <= last || index >= unit->getNumParams()) // (C2)
      return emitOpError("'params' expected increasing indices below ")
             << unit->getNumParams() << ", found " << index << " behind " << last;
    last = index;
  }
  if (failed(checkParams(*this, *unit, getGrads(), getParams()))) // (C3)
    return failure();
  return checkShard(*this, *unit, getShard().getType()); // (C4)
}

/// (C1) and (C2) of collectives; the number of ranks in the group.
static FailureOr<int64_t> checkGroup(Operation *op, FlatSymbolRefAttr name, ArrayAttr axes,
                                     SymbolTableCollection &tables) {
  auto mesh = tables.lookupNearestSymbolFrom<MeshOp>(op, name);
  if (!mesh) // (C1)
    return op->emitOpError("expected ") << name << " to be an 'fsdp.mesh'";
  llvm::StringSet<> seen;
  int64_t ranks = 1;
  for (auto axis : axes.getAsRange<StringAttr>()) {
    bool known = llvm::any_of(mesh.getAxes().getAsRange<AxisAttr>(),
                              [&](AxisAttr a) { return a.getName() == axis.getValue(); });
    if (!known || !seen.insert(axis.getValue()).second) { // (C2)
      InFlightDiagnostic diag = op->emitOpError("expected distinct axes of ") << name << ", found " << axis;
      diag.attachNote(mesh.getLoc()) << "the mesh is declared here";
      return diag;
    }
    ranks *= mesh.getAxisSize(axis.getValue());
  }
  return ranks;
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkGroup(*this, getMeshAttr(), getAxes(), tables);
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = checkGroup(*this, getMeshAttr(), getAxes(), tables);
  if (failed(ranks))
    return failure();
  auto in = cast<RankedTensorType>(getInput().getType()), out = cast<RankedTensorType>(getResult().getType());
  if (out.getDimSize(0) != in.getDimSize(0) * *ranks || in.getElementType() != out.getElementType()) // (C3)
    return emitOpError("expected ") << in.getDimSize(0) * *ranks << " elements of " << in.getElementType()
                                    << " for " << *ranks << " ranks, found " << out;
  return success();
}

/// (C3) of collectives between a whole and its pieces.
static LogicalResult checkPieces(Operation *op, Value whole, Value piece, FailureOr<int64_t> ranks) {
  if (failed(ranks))
    return failure();
  auto from = cast<RankedTensorType>(whole.getType()), to = cast<RankedTensorType>(piece.getType());
  if (from.getDimSize(0) != to.getDimSize(0) * *ranks || from.getElementType() != to.getElementType())
    return op->emitOpError("expected one of ") << *ranks << " equal pieces of " << from << ", found " << to;
  return success();
}

LogicalResult FlatReduceScatterOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkPieces(*this, getInput(), getResult(), checkGroup(*this, getMeshAttr(), getAxes(), tables)); // (C3)
}

LogicalResult OwnPieceOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkPieces(*this, getInput(), getResult(), checkGroup(*this, getMeshAttr(), getAxes(), tables)); // (C3)
}

LogicalResult BroadcastOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = checkGroup(*this, getMeshAttr(), getAxes(), tables);
  if (failed(ranks))
    return failure();
  if (getRoot() >= static_cast<uint64_t>(*ranks)) // (C3)
    return emitOpError("expected a root in [0, ") << *ranks << "), found " << getRoot();
  return success();
}

/// rows has the shape of ids with the table's columns appended, and its type.
static LogicalResult checkRows(Operation *op, Value table, Value ids, Value rows) {
  auto tableType = cast<RankedTensorType>(table.getType()), rowsType = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> shape(cast<RankedTensorType>(ids.getType()).getShape());
  shape.push_back(tableType.getDimSize(1));
  auto expected = RankedTensorType::get(shape, tableType.getElementType());
  if (rowsType != expected)
    return op->emitOpError("expected rows of type ") << expected << ", found " << rowsType;
  return success();
}

LogicalResult GatherRowsOp::verify() {
  return checkRows(*this, getTable(), getIds(), getResult()); // (C2), (C3)
}

LogicalResult ScatterAddRowsOp::verify() {
  if (getInit() && getInit().getType() != getResult().getType()) // (C3)
    return emitOpError("expected init of type ") << getResult().getType() << ", found " << getInit().getType();
  return checkRows(*this, getResult(), getIds(), getUpdates()); // (C2)
}

/// (C1) of the cross-entropy ops.
static LogicalResult checkRowCounts(Operation *op, Value logits, Value targets, Value lse) {
  int64_t rows = cast<RankedTensorType>(logits.getType()).getDimSize(0);
  for (Value v : {targets, lse})
    if (int64_t found = cast<RankedTensorType>(v.getType()).getDimSize(0); found != rows)
      return op->emitOpError("expected ") << rows << " rows as in the logits, found " << found;
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  return checkRowCounts(*this, getLogits(), getTargets(), getLse());
}

LogicalResult CrossEntropyGradOp::verify() {
  if (cast<RankedTensorType>(getResult().getType()).getShape() !=
      cast<RankedTensorType>(getLogits().getType()).getShape()) // (C4)
    return emitOpError("expected the shape of the logits, ") << getLogits().getType() << ", found "
                                                             << getResult().getType();
  return checkRowCounts(*this, getLogits(), getTargets(), getLse());
}

LogicalResult DispatchOp::verify() {
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getOperandTypes()) // (C1)
    return emitOpError("expected block arguments of the operands' types");
  if (auto yield = dyn_cast<YieldOp>(body.getTerminator()); !yield || yield.getOperandTypes() != getResultTypes()) // (C2)
    return emitOpError("expected 'fsdp.yield' of the results' types");
  if (getInplace().size() != getNumResults()) // (C3)
    return emitOpError("'inplace' expected ") << getNumResults() << " entries, found " << getInplace().size();
  llvm::SmallDenseSet<int64_t> taken;
  for (auto [result, operand] : llvm::zip_equal(getResults(), getInplace())) {
    if (operand == -1)
      continue;
    if (operand < 0 || operand >= getNumOperands() || !taken.insert(operand).second) // (C3)
      return emitOpError("'inplace' expected -1 or distinct operand indices, found ") << operand;
    if (getOperand(operand).getType() != result.getType()) // (C3)
      return emitOpError("result of type ") << result.getType() << " cannot be written over operand " << operand
                                            << " of type " << getOperand(operand).getType();
  }
  for (Type type : llvm::concat<const Type>(getOperandTypes(), getResultTypes()))
    if (!cast<RankedTensorType>(type).hasStaticShape()) // (C4)
      return emitOpError("expected static shapes, found ") << type;
  return success();
}
