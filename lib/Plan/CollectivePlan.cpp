//===- CollectivePlan.cpp - Buffers around collectives ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Nothing is packed before a reduce-scatter or unpacked behind a gather:
//
//   unshard @u         state -> | w        .| b  . pad |     results are ranges of the gathered buffer
//   reduce_scatter @u           | dw       .| db . pad | -> shard
//                                 ^ kernels write here    ^ '.' and pad are filled with zero
//
// Which kernel result becomes the slot of gradient g of the flat buffer: follow g
// backwards over reshapes, results in place and sums of loops. The walk
// must end at a result with a buffer of its own in the block of the
// reduce-scatter, and each step back over a write in place must be free
// (Aliasing::mayOverwrite). Otherwise, and where the slot is not aligned, the gradient is copied.
//
//===----------------------------------------------------------------------===//

#include "FunctionPlan.h"

using namespace mlir;
using namespace mlir::fsdp;

static RankedTensorType getTensorType(Value value) { return cast<RankedTensorType>(value.getType()); }
static int64_t getWidth(Type element) { return getStorageBytes(RankedTensorType::get({1}, element)); }

//===----------------------------------------------------------------------===//
// Flat gradient buffers
//===----------------------------------------------------------------------===//

/// Whether the loop may keep its sum where `init` lies.
static bool mayCarry(scf::ForOp loop, unsigned index, Aliasing &aliasing) {
  Value init = loop.getInitArgs()[index];
  if (aliasing.getEnd(init) > aliasing.getPosition(loop))
    return false;
  for (auto [other, value] : llvm::enumerate(loop.getInitArgs()))
    if (other != index && aliasing.getBase(value) == aliasing.getBase(init))
      return false;
  return true;
}

Value FunctionPlan::traceRoot(ReduceScatterOp reduce, Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
      value = op->getOperand(0);
    } else if (auto call = dyn_cast<KernelCallOp>(op)) {
      int64_t operand = call.getInplace()[cast<OpResult>(value).getResultNumber()];
      if (operand < 0)
        return op->getBlock() == reduce->getBlock() ? value : Value();
      if (!aliasing.mayOverwrite(call, operand))
        return {};
      value = call.getInputs()[operand];
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      unsigned index = cast<OpResult>(value).getResultNumber();
      if (!mayCarry(loop, index, aliasing))
        return {};
      value = loop.getInitArgs()[index];
    } else {
      return {};
    }
  }
  return {};
}

void FunctionPlan::reserveFlatBuffers() {
  function.walk([&](ReduceScatterOp op) {
    auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
    int64_t width = getWidth(getTensorType(op.getShard()).getElementType());
    bool isLocal = getGroupSize(op, tables) == 1;
    Place flat = addBuffer("gradients of " + unit.getSymName(), isLocal ? Category::gradients : Category::staging,
                           unit.getFlatSize() * width, op.getLoc());
    flatBuffers[op] = flat;
    for (auto [gradient, index] : llvm::zip_equal(op.getGrads(), op.getParams())) {
      Value root = traceRoot(op, gradient);
      if (!root || reserved.contains(root))
        continue;
      ParamAttr param = unit.getParam(index);
      Place slot{flat.buffer, param.getOffset() * width, getStorageBytes(getTensorType(root)), 0};
      if (!slot.isAligned())
        continue;
      reserved[root] = slot;
      slotNames[root] = "gradient of " + param.getName().str();
    }
  });
}

void FunctionPlan::fillGaps(ReduceScatterOp op, const Place &flat) {
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  int64_t width = flat.bytes / std::max<int64_t>(1, unit.getFlatSize()), end = 0;
  auto fillTo = [&](int64_t offset) {
    if (offset > end)
      emitFill({flat.buffer, end, offset - end, 0}, op.getLoc(), "padding of " + unit.getSymName());
  };
  for (int64_t index : op.getParams()) {
    ParamAttr param = unit.getParam(index);
    fillTo(param.getOffset() * width);
    end = (param.getOffset() + param.getType().getNumElements()) * width;
  }
  fillTo(flat.bytes);
}

LogicalResult FunctionPlan::planReduceScatter(ReduceScatterOp op) {
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  Type element = getTensorType(op.getShard()).getElementType();
  if (!op.getGrads().empty() && getTensorType(op.getGrads()[0]).getElementType() != element)
    return op.emitOpError("changes the element type; run fsdp-cast-collectives first");
  Place flat = flatBuffers.at(op);
  for (auto [gradient, index] : llvm::zip_equal(op.getGrads(), op.getParams())) {
    Place slot{flat.buffer, unit.getParam(index).getOffset() * getWidth(element),
               getStorageBytes(getTensorType(gradient)), 0};
    if (!(getPlace(gradient) == slot))
      materialise(gradient, slot, op.getLoc());
  }
  fillGaps(op, flat);
  int64_t ranks = getGroupSize(op, tables);
  if (ranks == 1) { // The sum over one rank is the gradient itself.
    setPlace(op.getShard(), flat);
    return success();
  }
  if (failed(checkShardAxis(op, ranks)))
    return failure();
  Place shard = addBuffer("gradient shard of " + unit.getSymName(), Category::gradients,
                          getStorageBytes(getTensorType(op.getShard())), op.getLoc());
  setPlace(op.getShard(), shard);
  emitCollective(op, CollectiveKind::reduce_scatter, flat, shard, element, builder.getStrArrayAttr({shardAxis}),
                 op.getReduction(), op.getUnitAttr(), 0);
  return success();
}

//===----------------------------------------------------------------------===//
// Gathers and the rest
//===----------------------------------------------------------------------===//

LogicalResult FunctionPlan::checkShardAxis(Operation *op, int64_t ranks) {
  auto name = function->getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::meshAttr);
  auto mesh = name ? tables.lookupNearestSymbolFrom<MeshOp>(function, name) : MeshOp();
  if (!mesh)
    return op->emitOpError("leaves the rank, but @")
           << function.getName() << " has no '" << FSDPDialect::meshAttr << "'";
  if (mesh.getAxisSize(shardAxis) == ranks)
    return success();
  InFlightDiagnostic diag = op->emitOpError("is over ") << ranks << " ranks, but axis '" << shardAxis << "' of " << name
                                                        << " has " << mesh.getAxisSize(shardAxis);
  diag.attachNote(mesh.getLoc()) << "the mesh is declared here";
  return diag;
}

LogicalResult FunctionPlan::planUnshard(UnshardOp op) {
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  int64_t ranks = getGroupSize(op, tables);
  if (failed(checkShardAxis(op, ranks)))
    return failure();
  Type element = getTensorType(op.getShard()).getElementType();
  Place gathered = addBuffer("gathered " + unit.getSymName(), Category::gathered,
                             unit.getFlatSize() * getWidth(element), op.getLoc());
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    if (getTensorType(result).getElementType() != element)
      return op.emitOpError("changes the element type; run fsdp-cast-collectives first");
    setPlace(result, {gathered.buffer, unit.getParam(index).getOffset() * getWidth(element),
                      getStorageBytes(getTensorType(result)), 0});
  }
  emitCollective(op, CollectiveKind::all_gather, getPlace(op.getShard()), gathered, element,
                 builder.getStrArrayAttr({shardAxis}), std::nullopt, op.getUnitAttr(), 0);
  return success();
}

LogicalResult FunctionPlan::planCollective(Operation *op, CollectiveKind kind, ArrayAttr axes,
                                           std::optional<ReductionKind> reduction, int64_t root) {
  RankedTensorType type = getTensorType(op->getResult(0));
  Category category = gradients.contains(op->getResult(0)) ? Category::gradients : Category::control;
  Place target = addBuffer(stringifyCollectiveKind(kind), category, getStorageBytes(type), op->getLoc());
  setPlace(op->getResult(0), target);
  emitCollective(op, kind, getPlace(op->getOperand(0)), target, type.getElementType(), axes, reduction, {}, root);
  return success();
}

void FunctionPlan::emitCollective(Operation *op, CollectiveKind kind, const Place &source, const Place &target,
                                  Type element, ArrayAttr axes, std::optional<ReductionKind> reduction,
                                  FlatSymbolRefAttr unit, int64_t root) {
  int64_t count = std::min(source.bytes, target.bytes) / getWidth(element);
  auto reductionAttr = reduction ? ReductionKindAttr::get(op->getContext(), *reduction) : ReductionKindAttr();
  StringAttr label = unit ? unit.getAttr() : StringAttr();
  CollectiveOp::create(builder, op->getLoc(), nextId++, kind, source.getSlice(), target.getSlice(), count, element,
                       axes, reductionAttr, /*channel=*/0, unit, root, label);
}
