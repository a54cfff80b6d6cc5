//===- LayoutVerifiers.cpp - Verifiers of meshes and units ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// (C1), (S1), ... refer to the constraints that the descriptions of the ops list.
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
    if (axis.getName().contains(':')) // (C1)
      return emitOpError("expected no ':' in the name of axis '")
             << axis.getName() << "': 'axis:N' denotes groups of N neighbours on an axis";
    if (axis.getFactors().empty() ||
        llvm::any_of(axis.getFactors(), [](int64_t f) { return f < 1; })) // (C2)
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
    return emitOpError("parameters end at ")
           << end << ", after the end of the flat buffer of " << getFlatSize();
  if (getHoisted() && getReshard()) // (C5)
    return emitOpError("expected 'reshard false' with 'hoisted': a hoisted unit is gathered once "
                       "per step, not again in the backward");
  if (std::optional<int64_t> within = getWithin()) { // (C6)
    int64_t shards = getShards();
    if (!getReshard() || !llvm::is_contained(getParameterAxes(), "shard"))
      return emitOpError(
          "'within' expected 'reshard true' and parameters that are sharded over \"shard\"");
    if (*within < 2 || *within >= shards || shards % *within != 0)
      return emitOpError("'within' expected a number from 2 to ")
             << shards - 1 << " that divides the " << shards << " shards, found " << *within;
  }
  bool trains = llvm::any_of(getParams().getAsRange<ParamAttr>(),
                             [](ParamAttr p) { return p.getTrainable(); });
  if (!isa<FloatType>(getDtype()) && (trains || !isa<IntegerType>(getDtype()))) // (C7)
    return emitOpError("expected floats")
           << (trains ? " for trainable parameters" : " or integers") << ", found " << getDtype();
  if (getRows()) { // (C8)
    auto table = getNumParams() == 1 ? getParam(0) : ParamAttr();
    if (!table || table.getType().getRank() != 2 || !isa<FloatType>(getDtype()) ||
        table.getOffset() != 0)
      return emitOpError(
          "with 'rows' expected one parameter, of floats, of rank 2 and at offset 0");
    int64_t columns = table.getType().getDimSize(1);
    if (columns == 0 || getShardSize() % columns != 0)
      return emitOpError("with 'rows' expected a shard size that is a multiple of the row length ")
             << columns << ", found " << getShardSize();
  }
  if (std::optional<PlacementAttr> placement = getPlacement()) { // (C4)
    Builder builder(getContext());
    ArrayAttr order = builder.getStrArrayAttr({"shard", "replicate"});
    size_t before = 0;
    for (ArrayAttr axes :
         {placement->getParameters(), placement->getGradients(), placement->getOptimizer()}) {
      if (axes.size() > order.size() || axes.getValue() != order.getValue().take_front(axes.size()))
        return emitOpError("'placement' expected a prefix of ") << order << ", found " << axes;
      if (axes.size() < before)
        return emitOpError("'placement' expected the optimizer state to be sharded over at least "
                           "the axes of the gradients, and the gradients over at least those of "
                           "the parameters, found ")
               << axes;
      before = axes.size();
    }
  }
  return success();
}
