//===- LayoutVerifiers.cpp - Verifiers of meshes, units, layouts *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// (C1), (S1), ... refer to the constraints that the descriptions of the ops list.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdpcommon/ShortText.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult MeshOp::verify() {
  if (getAxes().empty()) // (C1)
    return emitOpError("expected at least one axis, found none");
  llvm::StringSet<> names;
  for (auto axis : getAxes().getAsRange<AxisAttr>()) {
    if (!names.insert(axis.getName()).second) // (C1)
      return emitOpError("expected axes with different names, found two called '")
             << axis.getName() << "'";
    if (!fsdpcommon::isPrintable(axis.getName())) // (C1)
      return emitOpError("expected names of axes in UTF-8 without control characters, found ")
             << StringAttr::get(getContext(), axis.getName());
    if (axis.getName() == contextAxis) // (C1)
      return emitOpError("expected no axis '")
             << contextAxis << "', because 'context N' after the axes gives its size";
    if (axis.getName().contains(':')) // (C1)
      return emitOpError("expected no ':' in the name of axis '")
             << axis.getName() << "': 'axis:N' denotes groups of N neighbours on an axis";
    if (axis.getFactors().empty() ||
        llvm::any_of(axis.getFactors(), [](int64_t f) { return f < 1; })) // (C2)
      return emitOpError("axis '") << axis.getName() << "' expected factors of at least 1, found ["
                                   << axis.getFactors() << "]";
  }
  int64_t shards = getAxisSize("shard");
  if (getContextSize() && (*getContextSize() < 1 || shards % *getContextSize() != 0)) // (C3)
    return emitOpError("expected the size of 'context' to divide the ")
           << shards << " ranks of axis 'shard', found " << *getContextSize();
  return success();
}

/// Describes the parameters of a unit by their number, type and offset.
static std::string describeParams(UnitOp unit) {
  std::string text = describeCount(unit.getNumParams(), "parameter", "parameters");
  llvm::raw_string_ostream out(text);
  if (unit.getNumParams() == 1)
    out << ", '" << unit.getParam(0).getType() << "' at offset " << unit.getParam(0).getOffset();
  return text;
}

/// (C9) Verifies that the names of a unit and of its parameters are printable.
static LogicalResult verifyNames(UnitOp unit) {
  SmallVector<StringRef> names{unit.getSymName()};
  for (auto param : unit.getParams().getAsRange<ParamAttr>())
    names.push_back(param.getName());
  for (StringRef name : names)
    if (!fsdpcommon::isPrintable(name))
      return unit.emitOpError("expected names in UTF-8 without control characters, found ")
             << StringAttr::get(unit.getContext(), name);
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
      return emitOpError("parameter '")
             << param.getName() << "' expected elements of the type of the unit, " << getDtype()
             << ", found " << param.getType();
    if (param.getOffset() < end) // (C2)
      return emitOpError("parameter '")
             << param.getName() << "' expected an offset of at least " << end
             << ", the end of the parameters before it, found " << param.getOffset();
    end = param.getOffset() + param.getType().getNumElements();
    if (!names.insert(param.getName()).second) // (C3)
      return emitOpError("expected parameters with different names, found two called '")
             << param.getName() << "'";
  }
  if (end > getFlatSize()) // (C2)
    return emitOpError("the last parameter ends at element ")
           << end << ", after the end of the flat buffer of " << getFlatSize() << " elements";
  if (getHoisted() && getReshard()) // (C5)
    return emitOpError("expected 'reshard false' with 'hoisted', found 'reshard true'; a hoisted "
                       "unit is gathered once per step, not again in the backward");
  if (std::optional<int64_t> within = getWithin()) { // (C6)
    int64_t shards = getShards();
    if (!getReshard())
      return emitOpError("'within' expected 'reshard true', found 'reshard false'");
    if (!llvm::is_contained(getParameterAxes(), "shard"))
      return emitOpError("'within' expected parameters that are sharded over \"shard\", found "
                         "parameters that every rank stores");
    if (llvm::none_of(llvm::seq<int64_t>(2, shards), [&](int64_t n) { return shards % n == 0; }))
      return emitOpError("'within' expected shards that can be divided into several groups of at "
                         "least 2, found ")
             << describeCount(shards, "shard", "shards");
    if (*within < 2 || *within >= shards || shards % *within != 0)
      return emitOpError("'within' expected a number from 2 to ")
             << shards - 1 << " that divides the number of shards, " << shards << ", found "
             << *within;
  }
  bool trains = llvm::any_of(getParams().getAsRange<ParamAttr>(),
                             [](ParamAttr p) { return p.getTrainable(); });
  if (!isa<FloatType>(getDtype()) && (trains || !isa<IntegerType>(getDtype()))) // (C7)
    return emitOpError("expected ")
           << (trains ? "a float type for trainable parameters" : "a float or integer type")
           << ", found " << getDtype();
  if (getRows()) { // (C8)
    auto table = getNumParams() == 1 ? getParam(0) : ParamAttr();
    if (!table || table.getType().getRank() != 2 || !isa<FloatType>(getDtype()) ||
        table.getOffset() != 0)
      return emitOpError(
                 "with 'rows' expected one parameter, a float tensor of rank 2 at offset 0; found ")
             << describeParams(*this);
    int64_t columns = table.getType().getDimSize(1);
    if (columns == 0 || getShardSize() % columns != 0)
      return emitOpError("with 'rows' expected a shard size that is a multiple of the row length ")
             << columns << ", found " << getShardSize();
  }
  if (std::optional<PlacementAttr> placement = getPlacement()) { // (C4)
    Builder builder(getContext());
    ArrayAttr order = builder.getStrArrayAttr({"shard", "replicate"});
    std::pair<StringRef, ArrayAttr> before("", builder.getArrayAttr({}));
    const std::pair<StringRef, ArrayAttr> states[] = {{"parameters", placement->getParameters()},
                                                      {"gradients", placement->getGradients()},
                                                      {"optimizer", placement->getOptimizer()}};
    for (auto [name, axes] : states) {
      if (axes.size() > order.size() || axes.getValue() != order.getValue().take_front(axes.size()))
        return emitOpError("'placement' expected ")
               << name << " to be [], [\"shard\"] or " << order << ", found " << axes;
      if (axes.size() < before.second.size())
        return emitOpError("'placement' expected ")
               << name << " to have at least the axes of " << before.first << ", " << before.second
               << ", found " << axes;
      before = {name, axes};
    }
  }
  return failed(verifyNames(*this)) ? failure() : verifyTensorSplits(*this);
}

/// Verifies that a buffer lies in its arena (C3 of the layout).
static LogicalResult checkOffset(LayoutOp layout, BufferOp buffer) {
  std::optional<int64_t> offset = buffer.getOffset();
  Memory memory = getMemory(buffer);
  int64_t arena = memory == Memory::device ? layout.getArenaBytes()
                  : memory == Memory::host ? layout.getHostBytes()
                                           : getFileBytes(layout);
  int64_t room = arena - static_cast<int64_t>(buffer.getBytes());
  if (!offset)
    return success();
  if (*offset < 0 || *offset % arenaAlignment)
    return buffer.emitOpError("expected an offset that is a non-negative multiple of ")
           << arenaAlignment << ", found " << *offset;
  if (*offset <= room)
    return success();
  return buffer.emitOpError("the buffer of ")
         << buffer.getBytes() << " bytes at offset " << *offset << " ends at "
         << *offset + buffer.getBytes() << ", after the end of the " << getName(memory)
         << (memory == Memory::file ? "" : " arena") << " (" << arena << " bytes)";
}

LogicalResult LayoutOp::verify() {
  llvm::StringSet<> names;
  for (Operation &op : getBody().front()) {
    if (!isa<BufferOp, StateSlotOp, InputSlotOp>(op)) // (C1)
      return op.emitOpError("is not allowed in 'fsdp.layout'; expected only buffers, state slots "
                            "and input slots");
    auto buffer = dyn_cast<BufferOp>(op);
    if (!buffer)
      continue;
    names.insert(buffer.getSymName());
    if (failed(checkOffset(*this, buffer))) // (C3)
      return failure();
  }
  for (FlatSymbolRefAttr name : {getBlockAttr(), getRankAttr()})
    if (name && !names.contains(name.getValue())) // (C2)
      return emitOpError("expected ") << name << " to be a buffer of the layout, found "
                                      << describeSymbol(name, nullptr) << " in it";
  for (auto name : {getArenaBytesAttrName(), getLowerBoundAttrName(), getWorkspaceOffsetAttrName(),
                    getSharedBytesAttrName(), getWorkerBytesAttrName(), getWorkersAttrName(),
                    getHostBytesAttrName()})
    if (auto number = (*this)->getAttrOfType<IntegerAttr>(name);
        number && number.getInt() < 0) // (C4)
      return emitOpError("expected '")
             << name.getValue() << "' to be at least 0, found " << number.getInt();
  if (!getWorkspaceBytes())
    return success();
  if (static_cast<int64_t>(getWorkspaceOffset()) % arenaAlignment) // (C3)
    return emitOpError("expected the workspace at an offset that is a multiple of ")
           << arenaAlignment << ", found " << getWorkspaceOffset();
  if (getWorkspaceOffset() + getWorkspaceBytes() > getArenaBytes()) // (C3)
    return emitOpError("the workspace ('shared_bytes' + 'workers' * 'worker_bytes') of ")
           << getWorkspaceBytes() << " bytes at offset " << getWorkspaceOffset() << " ends at "
           << getWorkspaceOffset() + getWorkspaceBytes() << ", after the end of the device arena ("
           << getArenaBytes() << " bytes)";
  return success();
}

/// A buffer has an incomplete range if it has only some of the attributes 'in', 'from' and 'to'.
/// Returns a text that names the attributes of the buffer, such as "'in' and 'from'".
static std::string describeRange(BufferOp buffer) {
  std::string text;
  for (auto [name, has] : {std::pair("'in'", buffer.getProgram().has_value()),
                           std::pair("'from'", buffer.getFirst().has_value()),
                           std::pair("'to'", buffer.getLast().has_value())})
    if (has)
      text += (text.empty() ? "" : " and ") + std::string(name);
  return text;
}

LogicalResult BufferOp::verify() {
  if (static_cast<int64_t>(getBytes()) < 0) // (C1)
    return emitOpError("expected a size of at least 0, found ") << static_cast<int64_t>(getBytes());
  if (getMemory(*this) == Memory::file && (getHost() || !isPersistent())) // (C3)
    return emitOpError("expected no 'in' and no 'host' on a buffer with 'fsdp.file', found ")
           << (getHost() ? "'host'" : "'in'");
  bool range = getFirst() && getLast();
  if (range != getProgram().has_value() || getFirst().has_value() != getLast().has_value()) // (C2)
    return emitOpError("expected all of 'in', 'from' and 'to', or none of them, found only ")
           << describeRange(*this);
  if (range && (static_cast<int64_t>(*getFirst()) < 0 || *getLast() < *getFirst())) // (C2)
    return emitOpError("expected 0 ≤ 'from' ≤ 'to', found 'from' ")
           << static_cast<int64_t>(*getFirst()) << " and 'to' " << static_cast<int64_t>(*getLast());
  return success();
}

/// Verifies that the buffer `name` of a slot is a persistent buffer of the layout, and has the size
/// of a tensor of type `type`.
static LogicalResult checkSlot(Operation *op, FlatSymbolRefAttr name, Type type,
                               SymbolTableCollection &tables) {
  auto buffer = tables.lookupSymbolIn<BufferOp>(op->getParentOp(), name);
  if (!buffer || !buffer.isPersistent())
    return op->emitOpError("expected ")
           << name << " to be a persistent buffer of the layout (without 'in'), found "
           << (buffer ? "a buffer with 'in'" : describeSymbol(name, nullptr) + " in it");
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return op->emitOpError("expected a tensor type of static shape, found ") << type;
  if (static_cast<int64_t>(buffer.getBytes()) != getStorageBytes(tensor))
    return op->emitOpError("expected a buffer of ")
           << getStorageBytes(tensor) << " bytes for " << type << ", found " << name << " of "
           << buffer.getBytes() << " bytes";
  return success();
}

LogicalResult StateSlotOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto unit =
      tables.lookupNearestSymbolFrom<UnitOp>((*this)->getParentOp()->getParentOp(), getUnitAttr());
  if (!unit) // (C1)
    return emitWrongSymbol(*this, getUnitAttr(), "an 'fsdp.unit'", tables,
                           (*this)->getParentOp()->getParentOp());
  if (failed(checkSlot(*this, getBufferAttr(), getType(), tables))) // (C2)
    return failure();
  int64_t elements = getTensorType().getNumElements(), flat = unit.getFlatSize();
  auto mesh = tables.lookupNearestSymbolFrom<MeshOp>((*this)->getParentOp()->getParentOp(),
                                                     StringAttr::get(getContext(), "mesh"));
  bool hasSlices =
      unit->hasAttr(tensorSplitAttr) && mesh && elements == mesh.getAxisSize(tensorAxis) * flat;
  if (elements != flat && !hasSlices && (elements == 0 || flat % elements)) // (C1)
    return emitOpError("expected a state whose size divides the ")
           << unit.getFlatSize() << " elements of the flat buffer of " << getUnitAttr()
           << ", found " << elements << " elements";
  return success();
}

LogicalResult InputSlotOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (failed(checkSlot(*this, getBufferAttr(), getType(), tables))) // (C1)
    return failure();
  RankedTensorType type = getTensorType();
  if (getMicroBatches() > 1 &&
      (type.getRank() == 0 ||
       type.getDimSize(0) != static_cast<int64_t>(getMicroBatches()))) // (C2)
    return emitOpError("expected the first dimension to have the size of 'micro_batches', ")
           << getMicroBatches() << ", found " << type;
  int64_t limit = getLimit();
  for (int64_t id : getExtraIds().value_or(ArrayRef<int64_t>())) { // (C3)
    if (limit <= 0)
      return emitOpError("with extra ids expected a 'limit' of at least 1, found ") << limit;
    if (id >= 0 && id < limit)
      return emitOpError("'or' contains id ")
             << id << ", which 'limit " << limit
             << "' already allows; expected ids that are negative or at least " << limit;
  }
  return success();
}
