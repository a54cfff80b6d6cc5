//===- CollectivePlan.cpp - Buffers of collectives --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels write gradients directly to the flat buffer of a reduce-scatter, and read parameters
// directly from the buffer of a gather. No data is packed or unpacked:
//
//   unshard @u         state -> | w        .| b  . pad |     results: ranges of the gathered buffer
//   reduce_scatter @u           | dw       .| db . pad | -> shard
//                                ^ kernels write here    ^ '.' and pad are filled with zeros
//
// If only a gather reads the result of a kernel, such as the cast of a shard, the kernel writes it
// to this rank's piece of the gathered buffer. After a rank has updated its own piece of a
// parameter, an all-gather in place writes the pieces of the other ranks around it:
//
//   kernel -> | . | own | . |      all_gather in place      | 0 | own | 2 |
//
// A gather among N neighbours reads 1/N of the parameters from each neighbour. For this purpose,
// each rank keeps its part until the backward. In the forward, fsdp.shard copies this part out of
// the gathered buffer:
//
//   shard @u           | . | own |  -> kept        the gathered buffer is free again
//   unshard @u site 1  kept -> | 0 | own |          all_gather over "shard:2"
//
// To find the kernel result that a kernel can write directly to the range of gradient g in the flat
// buffer, follow g backwards over reshapes, results in place and sums that loops carry. The walk
// must end in the block of the reduce-scatter, at a result that would get a new buffer otherwise.
// For each result in place on the walk, Aliasing::mayOverwrite() must allow that it is overwritten.
// If the walk fails, or the range is not aligned, the gradient is copied.
//
//===----------------------------------------------------------------------===//

#include "FunctionPlan.h"
#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/TensorSplit.h"

using namespace mlir;
using namespace mlir::fsdp;

static RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}
static int64_t countAxis(Operation *op, FlatSymbolRefAttr mesh, StringRef axis,
                         SymbolTableCollection &tables) {
  return tables.lookupNearestSymbolFrom<MeshOp>(op, mesh).getAxisSize(axis);
}
static int64_t getWidth(Type element) {
  return getStorageBytes(RankedTensorType::get({1}, element));
}

/// Returns true if the loop may accumulate a sum in the place of the sum's initial value, `init`.
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
    Place flat = addBuffer("gradients of " + unit.getSymName(),
                           isLocal ? Category::gradients : Category::staging,
                           unit.getFlatSize() * width, op.getLoc());
    flatBuffers[op] = flat;
    for (auto [gradient, index] : llvm::zip_equal(op.getGrads(), op.getParams())) {
      AllReduceOp sum = findUnitSum(op, gradient, /*isCast=*/false);
      Value root = traceRoot(op, sum ? sum.getInput() : gradient);
      if (!root || reserved.contains(root))
        continue;
      ParamAttr param = unit.getParam(index);
      Place slot{flat.buffer, param.getOffset() * width, getStorageBytes(getTensorType(root))};
      if (!slot.isAligned())
        continue;
      reserved[root] = slot;
      slotNames[root] = "gradient of " + param.getName().str();
    }
    joinUnitSums(op, flat);
  });
}

void FunctionPlan::fillGaps(ReduceScatterOp op, const Place &flat) {
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  int64_t width = flat.bytes / std::max<int64_t>(1, unit.getFlatSize()), end = 0;
  auto fillTo = [&](int64_t offset) {
    if (offset > end)
      emitFill({flat.buffer, end, offset - end}, op.getLoc(), "padding of " + unit.getSymName());
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
    return op.emitOpError("expected gradients with the element type of the shard, ")
           << element << ", found " << getTensorType(op.getGrads()[0])
           << "; run fsdp-cast-collectives first";
  Place flat = flatBuffers.at(op);
  for (auto [gradient, index] : llvm::zip_equal(op.getGrads(), op.getParams())) {
    Place slot{flat.buffer, unit.getParam(index).getOffset() * getWidth(element),
               getStorageBytes(getTensorType(gradient))};
    if (!(getPlace(gradient) == slot))
      materialise(gradient, slot, op.getLoc());
  }
  fillGaps(op, flat);
  int64_t ranks = getGroupSize(op, tables);
  if (ranks == 1) { // On one rank, the sum over ranks is the gradient itself.
    setPlace(op.getShard(), flat);
    return success();
  }
  FailureOr<std::string> axis = getShardAxis(op, ranks);
  if (failed(axis))
    return failure();
  Place shard = addBuffer("gradient shard of " + unit.getSymName(), Category::gradients,
                          getStorageBytes(getTensorType(op.getShard())), op.getLoc());
  setPlace(op.getShard(), shard);
  emitCollective(op, CollectiveKind::reduce_scatter, flat, shard, element,
                 builder.getStrArrayAttr({*axis}), op.getReduction(), op.getUnitAttr(), 0);
  return success();
}

FailureOr<std::string> FunctionPlan::getShardAxis(Operation *op, int64_t ranks) {
  auto name = function->getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::meshAttr);
  auto mesh = name ? tables.lookupNearestSymbolFrom<MeshOp>(function, name) : MeshOp();
  if (!mesh)
    return op->emitOpError("communicates with other ranks, but @")
           << function.getName() << " has no '" << FSDPDialect::meshAttr << "'";
  // The result of an fsdp.shard is gathered among neighbours. All other shards are gathered over
  // the whole axis.
  auto unshard = dyn_cast<UnshardOp>(op);
  auto keep = unshard ? unshard.getShard().getDefiningOp<ShardOp>() : dyn_cast<ShardOp>(op);
  auto unit = keep ? tables.lookupNearestSymbolFrom<UnitOp>(op, keep.getUnitAttr()) : UnitOp();
  bool isGroup = unit && unit.getWithin() == std::optional<int64_t>(ranks) &&
                 mesh.getAxisSize(shardAxis) % ranks == 0;
  if (mesh.getAxisSize(shardAxis) == ranks || isGroup)
    return mesh.getNeighbours(shardAxis, ranks);
  InFlightDiagnostic diag = op->emitOpError("communicates among ")
                            << describeCount(ranks, "rank", "ranks") << "; expected the "
                            << mesh.getAxisSize(shardAxis) << " ranks of axis '" << shardAxis
                            << "' of " << name;
  diag.attachNote(mesh.getLoc()) << "the mesh is declared here";
  return diag;
}

LogicalResult FunctionPlan::planOwnPiece(OwnPieceOp op) {
  Place place = getPlace(op.getInput());
  for (StringRef axis : op.getAxes().getAsValueRange<StringAttr>()) {
    int64_t ranks = countAxis(op, op.getMeshAttr(), axis, tables);
    if (ranks == 1)
      continue;
    if (axis == tensorAxis)
      return op.emitOpError("takes the piece of a rank of axis 'tensor'; expected axes among "
                            "'replicate', 'shard' and 'context', of which slices of an artifact "
                            "can have pieces");
    std::optional<Place> part = place.getPiece(axis, ranks);
    if (!part)
      return op.emitOpError(
          "takes a piece of a piece whose parts are not contiguous; expected a piece of a whole "
          "tensor");
    place = *part;
  }
  setPlace(op.getResult(), place);
  return success();
}

/// If only a gather reads a kernel's result, lets the kernel write to the gathered buffer.
void FunctionPlan::reserveGathered() {
  function.walk([&](UnshardOp op) {
    auto call = op.getShard().getDefiningOp<KernelCallOp>();
    int64_t ranks = getGroupSize(op, tables);
    bool isPrivate = call && ranks > 1 && op.getShard().hasOneUse() &&
                     call->getBlock() == op->getBlock() &&
                     call.getInplace()[cast<OpResult>(op.getShard()).getResultNumber()] < 0 &&
                     !reserved.contains(op.getShard());
    if (!isPrivate)
      return;
    Place gathered = planGathered(op);
    FailureOr<std::string> axis = getShardAxis(op, ranks);
    if (failed(axis))
      return;
    std::optional<Place> own = gathered.getPiece(*axis, ranks);
    if (!own->isAligned())
      return;
    gatheredBuffers[op] = gathered;
    reserved[op.getShard()] = *own;
  });
}

Place FunctionPlan::planGathered(Operation *op) {
  auto unshard = cast<UnshardOp>(op);
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, unshard.getUnitAttr());
  int64_t width = getWidth(getTensorType(unshard.getShard()).getElementType());
  return addBuffer("gathered " + unit.getSymName(), Category::gathered, unit.getFlatSize() * width,
                   op->getLoc());
}

LogicalResult FunctionPlan::planUnshard(UnshardOp op) {
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  FailureOr<std::string> axis = getShardAxis(op, getGroupSize(op, tables));
  if (failed(axis))
    return failure();
  Type element = getTensorType(op.getShard()).getElementType();
  auto planned = gatheredBuffers.find(op);
  Place gathered = planned != gatheredBuffers.end() ? planned->second : planGathered(op);
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    if (getTensorType(result).getElementType() != element)
      return op.emitOpError("expected results with the element type of the shard, ")
             << element << ", found " << result.getType() << "; run fsdp-cast-collectives first";
    setPlace(result, {gathered.buffer, unit.getParam(index).getOffset() * getWidth(element),
                      getStorageBytes(getTensorType(result))});
  }
  emitCollective(op, CollectiveKind::all_gather, getPlace(op.getShard()), gathered, element,
                 builder.getStrArrayAttr({*axis}), std::nullopt, op.getUnitAttr(), 0);
  return success();
}

/// The operands of an fsdp.shard must be the results of one fsdp.unshard of the same unit, in
/// order. If an operand breaks this rule, returns a description of the operand.
static std::string describeOperands(ShardOp op) {
  if (op.getParams().empty())
    return "no operands";
  auto first = op.getParams()[0].getDefiningOp<UnshardOp>();
  for (auto [index, value] : llvm::enumerate(op.getParams())) {
    std::string position = (" as operand " + Twine(index)).str();
    Operation *def = value.getDefiningOp();
    if (!def || def != first.getOperation())
      return describeValue(value) + position;
    if (first.getUnit() != op.getUnit())
      return ("a result of an 'fsdp.unshard' of @" + first.getUnit() + position).str();
    if (unsigned result = cast<OpResult>(value).getResultNumber(); result != index)
      return ("result " + Twine(result) + " of the 'fsdp.unshard'" + position).str();
  }
  return (Twine(op.getParams().size()) + " of " + Twine(first.getNumResults()) + " results").str();
}

LogicalResult FunctionPlan::planShard(ShardOp op) {
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  Type element = getTensorType(op.getShard()).getElementType();
  int64_t width = getWidth(element), ranks = getGroupSize(op, tables);
  FailureOr<std::string> axis = getShardAxis(op, ranks);
  if (failed(axis))
    return failure();
  auto unshard =
      op.getParams().empty() ? UnshardOp() : op.getParams()[0].getDefiningOp<UnshardOp>();
  if (!unshard || unshard.getUnit() != op.getUnit() ||
      ValueRange(unshard.getParams()) != ValueRange(op.getParams()))
    return op.emitOpError("expected the results of one 'fsdp.unshard' of the unit as operands, in "
                          "order, found ")
           << describeOperands(op);
  // Compute the place of the whole flat buffer from the place of parameter 0.
  Place whole = getPlace(op.getParams()[0]);
  whole.offset -= unit.getParam(0).getOffset() * width;
  whole.bytes = unit.getFlatSize() * width;
  std::optional<Place> own = whole.getPiece(*axis, ranks);
  Place kept =
      addBuffer("kept part of " + unit.getSymName(), Category::gathered, own->bytes, op.getLoc());
  setPlace(op.getShard(), kept);
  emitCopy(*own, kept, op.getLoc(), unit.getSymName());
  return success();
}

/// Returns true if a collective over `axes` adds or gathers activations or their cotangents, and
/// not a few numbers per unit or row.
static bool addsActivations(CollectiveKind kind, ArrayAttr axes, RankedTensorType type) {
  if (axes.size() != 1)
    return false;
  StringRef axis = cast<StringAttr>(axes[0]).getValue();
  // Gathers of keys and of rows have the rank 1, as a sum of losses has the rank 0.
  return (axis == tensorAxis && (type.getRank() > 1 || kind != CollectiveKind::all_reduce)) ||
         (axis == contextAxis && type.getRank() > 0);
}

LogicalResult FunctionPlan::planCollective(Operation *op, CollectiveKind kind, ArrayAttr axes,
                                           std::optional<ReductionKind> reduction, int64_t root) {
  RankedTensorType type = getTensorType(op->getResult(0));
  auto rows = op->getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::rowsAttr);
  Category category = gradients.contains(op->getResult(0))     ? Category::gradients
                      : addsActivations(kind, axes, type)      ? Category::activations
                      : !rows                                  ? Category::control
                      : kind == CollectiveKind::reduce_scatter ? Category::activations
                                                               : Category::staging;
  std::string label;
  if (rows)
    label =
        (isa<FloatType>(type.getElementType()) ? "rows of " : "ids of ") + rows.getValue().str();
  Place source = getPlace(op->getOperand(0));
  // If nothing reads the operand later, the result is computed in place. An all-reduce of a
  // gradient overwrites its operand. A gather writes the pieces of the other ranks around its
  // operand.
  std::optional<Place> home;
  if (kind == CollectiveKind::all_reduce && category == Category::gradients)
    home = source;
  else if (kind == CollectiveKind::all_gather && axes.size() == 1)
    home = source.getWhole(cast<StringAttr>(axes[0]).getValue(), getGroupSize(op, tables));
  if (home && (home->piece != 0 || !isFree(*home, op)))
    home.reset();
  Place target = home ? *home
                      : addBuffer(label.empty() ? stringifyCollectiveKind(kind) : StringRef(label),
                                  category, getStorageBytes(type), op->getLoc());
  setPlace(op->getResult(0), target);
  emitCollective(op, kind, source, target, type.getElementType(), axes, reduction, rows, root,
                 label);
  return success();
}

void FunctionPlan::emitCollective(Operation *op, CollectiveKind kind, const Place &source,
                                  const Place &target, Type element, ArrayAttr axes,
                                  std::optional<ReductionKind> reduction, FlatSymbolRefAttr unit,
                                  int64_t root, StringRef rows) {
  int64_t count = std::min(source.bytes, target.bytes) / getWidth(element);
  auto reductionAttr =
      reduction ? ReductionKindAttr::get(op->getContext(), *reduction) : ReductionKindAttr();
  StringAttr label = !rows.empty() ? builder.getStringAttr(rows)
                     : unit        ? unit.getAttr()
                                   : StringAttr();
  CollectiveOp::create(builder, op->getLoc(), nextId++, kind, source.getSlice(), target.getSlice(),
                       count, element, axes, reductionAttr, /*channel=*/0, unit, !rows.empty(),
                       root, label);
}
