//===- Placement.cpp - Places of values and moves between them --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "FunctionPlan.h"
#include "fsdp/IR/Memory.h"

using namespace mlir;
using namespace mlir::fsdp;

void FunctionPlan::setPlace(Value value, const Place &place) {
  places[value] = place;
  residents[BufferOp(place.buffer)].push_back(value);
}

Place FunctionPlan::addBuffer(const Twine &label, Category category, int64_t bytes, Location loc) {
  ++counts.buffers;
  std::string symbol = (program.getSymName() + "." + Twine(nextBuffer++)).str();
  Place place = layout.addBuffer(symbol, label.str(), category, bytes, loc);
  if (Attribute mark = function->getAttr(offloadAttr))
    place.buffer->setAttr(offloadAttr, mark);
  return place;
}

bool FunctionPlan::isFree(const Place &place, Operation *op, ArrayRef<Place> taken) {
  int64_t now = aliasing.getPosition(op);
  bool result = place.stride == 0 && place.isAligned();
  for (Value other : residents[BufferOp(place.buffer)])
    result &= !getPlace(other).overlaps(place) || aliasing.getEnd(other) <= now;
  for (const Place &other : taken)
    result &= !other.overlaps(place);
  return result;
}

Place FunctionPlan::claim(Value value, Operation *op, ArrayRef<Place> taken) {
  Place place = getPlace(value);
  if (isFree(place, op, taken))
    return place;
  std::string name = describe(value);
  Place copy = addBuffer("copy" + (name.empty() ? "" : " of " + name), Category::staging,
                         place.bytes, op->getLoc());
  // A copy of a sum of gradients counts as memory of the category `gradients`.
  if (gradients.contains(value))
    copy.buffer.setCategory(Category::gradients);
  materialise(value, copy, op->getLoc());
  return copy;
}

Place FunctionPlan::align(Value value, Operation *op) {
  Place place = getPlace(value);
  if (place.isAligned())
    return place;
  std::string name = describe(value);
  Place copy = addBuffer("aligned " + (name.empty() ? "view" : name), Category::staging,
                         place.bytes, op->getLoc());
  materialise(value, copy, op->getLoc());
  setPlace(value, copy);
  return copy;
}

void FunctionPlan::materialise(Value value, const Place &target, Location loc) {
  std::string name = describe(value);
  if (zeros.contains(value))
    return emitFill(target, loc, "zero");
  emitCopy(getPlace(value), target, loc, name.empty() ? "value that is read again" : name);
}

void FunctionPlan::moveAll(ArrayRef<std::pair<Value, Place>> moves, Location loc) {
  SmallVector<std::pair<Value, Place>> open;
  llvm::copy_if(moves, std::back_inserter(open),
                [&](auto &move) { return !(getPlace(move.first) == move.second); });
  // If a move overwrites the source of another move, first copy this source to a new buffer.
  SmallVector<std::pair<Place, Place>> direct;
  for (auto &[value, target] : open) {
    Place source = getPlace(value);
    bool isOverwritten =
        llvm::any_of(open, [&](auto &move) { return move.second.overlaps(source); });
    if (isOverwritten) {
      Place detour = addBuffer("copy for an exchange", Category::staging, source.bytes, loc);
      emitCopy(source, detour, loc, "exchange");
      source = detour;
    }
    direct.push_back({source, target});
  }
  for (auto [move, places] : llvm::zip_equal(open, direct)) {
    if (zeros.contains(move.first))
      emitFill(places.second, loc, "zero");
    else
      emitCopy(places.first, places.second, loc, describe(move.first));
  }
}

/// Returns the label as an attribute. Returns null if the label is empty.
static StringAttr getLabel(Builder &builder, const Twine &label) {
  std::string text = label.str();
  return text.empty() ? StringAttr() : builder.getStringAttr(text);
}

void FunctionPlan::emitFill(const Place &target, Location loc, const Twine &label) {
  FillOp::create(builder, loc, target.getSlice(), getLabel(builder, label));
  ++counts.fills;
}

void FunctionPlan::emitCopy(const Place &source, const Place &target, Location loc,
                            const Twine &label) {
  CopyOp::create(builder, loc, source.getSlice(), target.getSlice(), getLabel(builder, label));
  ++counts.copies;
}
