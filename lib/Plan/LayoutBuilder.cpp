//===- LayoutBuilder.cpp - Buffers of an arena ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Finds buffers of states and inputs by name, so that all programs over a layout use the same
// buffer for the same state or input.
//
//===----------------------------------------------------------------------===//

#include "LayoutBuilder.h"

using namespace mlir;
using namespace mlir::fsdp;

std::optional<Place> Place::getPiece(StringRef axis, int64_t ranks) const {
  if (piece && piece != bytes)
    return std::nullopt;
  Place part = *this;
  Builder builder(BufferOp(buffer).getContext());
  SmallVector<StringRef> names;
  if (axes)
    llvm::append_range(names, axes.getAsValueRange<StringAttr>());
  names.push_back(axis);
  part.axes = builder.getStrArrayAttr(names);
  part.bytes = part.piece = bytes / ranks;
  part.pieces = pieces * ranks;
  return part;
}

std::optional<Place> Place::getWhole(StringRef axis, int64_t ranks) const {
  if (!axes || axes.empty() || piece != bytes ||
      cast<StringAttr>(axes.getValue().back()).getValue() != axis)
    return std::nullopt;
  Place whole = *this;
  Builder builder(BufferOp(buffer).getContext());
  ArrayAttr outer = builder.getArrayAttr(axes.getValue().drop_back());
  whole.bytes = bytes * ranks;
  whole.axes = outer.empty() ? ArrayAttr() : outer;
  whole.piece = outer.empty() ? 0 : whole.bytes;
  whole.pieces = pieces / ranks;
  return whole;
}

LayoutBuilder::LayoutBuilder(ModuleOp module, StringRef name) : builder(module.getContext()) {
  builder.setInsertionPointToEnd(module.getBody());
  layout = LayoutOp::create(builder, module.getLoc(), name, /*arena_bytes=*/0, FlatSymbolRefAttr(),
                            FlatSymbolRefAttr());
  builder.createBlock(&layout.getBody());
}

Place LayoutBuilder::addBuffer(StringRef symbol, StringRef label, Category category, int64_t bytes,
                               Location loc) {
  auto buffer = BufferOp::create(builder, loc, symbol, label, category, bytes, IntegerAttr(),
                                 nullptr, IntegerAttr(), IntegerAttr(), /*host=*/false);
  return {buffer, 0, bytes, 0};
}

Place LayoutBuilder::addPersistent(StringRef symbol, const Twine &label, Category category,
                                   RankedTensorType type, Location loc) {
  return addBuffer(symbol, label.str(), category, getStorageBytes(type), loc);
}

static Place getWhole(LayoutOp layout, FlatSymbolRefAttr name) {
  auto buffer = cast<BufferOp>(SymbolTable::lookupSymbolIn(layout, name.getAttr()));
  return {buffer, 0, static_cast<int64_t>(buffer.getBytes()), 0};
}

InFlightDiagnostic LayoutBuilder::emitClash(func::FuncOp function, unsigned index, Type found,
                                            StringRef buffer, Location other) {
  InFlightDiagnostic diag = emitError(function.getArgument(index).getLoc())
                            << "argument " << index << " of @" << function.getName() << " has type "
                            << function.getArgumentTypes()[index] << ", expected " << found
                            << " as in @" << firstUsers.lookup(buffer);
  diag.attachNote(other) << "the first use is here";
  return diag;
}

FailureOr<Place> LayoutBuilder::getState(func::FuncOp function, unsigned index) {
  auto unit = function.getArgAttrOfType<FlatSymbolRefAttr>(index, FSDPDialect::unitAttr);
  auto name = function.getArgAttrOfType<StringAttr>(index, FSDPDialect::stateAttr);
  Location loc = function.getArgument(index).getLoc();
  std::optional<StateRole> role = name ? symbolizeStateRole(name.getValue()) : std::nullopt;
  if (!role) {
    InFlightDiagnostic diag =
        emitError(loc) << "argument " << index << " of @" << function.getName() << ": expected '"
                       << FSDPDialect::stateAttr
                       << "' to be parameter, first_moment, second_moment, momentum or master, "
                          "found ";
    if (Attribute found = function.getArgAttr(index, FSDPDialect::stateAttr))
      return diag << found;
    return diag << "no '" << FSDPDialect::stateAttr << "'";
  }
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
  for (auto slot : layout.getOps<StateSlotOp>()) {
    if (slot.getUnitAttr() != unit || slot.getRole() != *role)
      continue;
    if (slot.getType() != type)
      return emitClash(function, index, slot.getType(), slot.getBuffer(), slot.getLoc());
    return getWhole(layout, slot.getBufferAttr());
  }
  Category category = *role == StateRole::parameter ? Category::parameters : Category::optimizer;
  Place place = addPersistent(("state." + Twine(numStates++)).str(),
                              unit.getValue() + " " + name.getValue(), category, type, loc);
  StateSlotOp::create(builder, loc, unit, StateRoleAttr::get(builder.getContext(), *role),
                      FlatSymbolRefAttr::get(place.buffer.getSymNameAttr()), TypeAttr::get(type));
  return place;
}

FailureOr<Place> LayoutBuilder::getInput(func::FuncOp function, unsigned index) {
  auto name = function.getArgAttrOfType<StringAttr>(index, FSDPDialect::batchAttr);
  auto limit = function.getArgAttrOfType<IntegerAttr>(index, FSDPDialect::limitAttr);
  auto extra = function.getArgAttrOfType<DenseI64ArrayAttr>(index, FSDPDialect::extraIdsAttr);
  auto count = function->getAttrOfType<IntegerAttr>(FSDPDialect::microBatchesAttr);
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
  for (auto slot : layout.getOps<InputSlotOp>()) {
    if (slot.getNameAttr() != name)
      continue;
    Place place = getWhole(layout, slot.getBufferAttr());
    RankedTensorType known = slot.getTensorType();
    if (known == type)
      return place;
    // If another program reads several micro-batches of this input and this program reads only one,
    // this program reads the first micro-batch.
    if (slot.getMicroBatches() > 1 && known.getElementType() == type.getElementType() &&
        known.getShape().drop_front() == type.getShape()) {
      place.bytes = getStorageBytes(type);
      return place;
    }
    return emitClash(function, index, known, slot.getBuffer(), slot.getLoc());
  }
  int64_t microBatches = count ? count.getInt() : 1;
  if (microBatches > 1 && (type.getRank() == 0 || type.getDimSize(0) != microBatches))
    return emitError(function.getArgument(index).getLoc())
           << "batch argument " << name << " of @" << function.getName()
           << ": expected a leading dimension of " << microBatches << " micro-batches, found "
           << type;
  Location loc = function.getArgument(index).getLoc();
  Place place = addPersistent(("input." + Twine(numInputs++)).str(), name.getValue(),
                              Category::inputs, type, loc);
  InputSlotOp::create(builder, loc, name, FlatSymbolRefAttr::get(place.buffer.getSymNameAttr()),
                      TypeAttr::get(type), builder.getI64IntegerAttr(limit ? limit.getInt() : 0),
                      extra, builder.getI64IntegerAttr(microBatches));
  return place;
}

Place LayoutBuilder::getControl(FlatSymbolRefAttr name, StringRef symbol, StringRef label,
                                BlockArgument argument) {
  if (name)
    return getWhole(layout, name);
  return addPersistent(symbol, label, Category::control, cast<RankedTensorType>(argument.getType()),
                       argument.getLoc());
}

FailureOr<Place> LayoutBuilder::getArgument(func::FuncOp function, unsigned index) {
  FailureOr<Place> place = findArgument(function, index);
  if (succeeded(place))
    firstUsers.try_emplace(place->buffer.getSymName(), function.getName().str());
  return place;
}

FailureOr<Place> LayoutBuilder::findArgument(func::FuncOp function, unsigned index) {
  BlockArgument argument = function.getArgument(index);
  if (function.getArgAttr(index, FSDPDialect::unitAttr))
    return getState(function, index);
  if (function.getArgAttr(index, FSDPDialect::batchAttr))
    return getInput(function, index);
  Place place;
  if (function.getArgAttr(index, FSDPDialect::blockAttr)) {
    place = getControl(layout.getBlockAttr(), "block", "step block", argument);
    layout.setBlockAttr(FlatSymbolRefAttr::get(place.buffer.getSymNameAttr()));
  } else if (function.getArgAttr(index, FSDPDialect::rankAttr)) {
    place = getControl(layout.getRankAttr(), "rank", "rank block", argument);
    layout.setRankAttr(FlatSymbolRefAttr::get(place.buffer.getSymNameAttr()));
  } else {
    return emitError(argument.getLoc())
           << "argument " << index << " of @" << function.getName() << ": expected one of '"
           << FSDPDialect::unitAttr << "' (a state), '" << FSDPDialect::batchAttr
           << "' (an input), '" << FSDPDialect::blockAttr << "' and '" << FSDPDialect::rankAttr
           << "', found none of them";
  }
  if (auto type = cast<RankedTensorType>(argument.getType()); place.bytes != getStorageBytes(type))
    return emitClash(function, index, type, place.buffer.getSymName(), place.buffer.getLoc());
  return place;
}
