//===- Cotangents.cpp - Activity and cotangents of values -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The cotangent of a value is joined from the cotangents of slices of the value. Slices that do not
// overlap need neither zeros nor additions:
//
//   %q, %k, %v = slices of %qkv     qkv̄ = insert v̄ into (insert k̄ into (insert q̄ into empty))
//
// 1. Partition the slices into layers of pairwise disjoint slices.
// 2. For each layer, insert the cotangents of its slices into one tensor. Begin with an empty
//    tensor if the slices cover the whole value, and else with a tensor of zeros.
// 3. Add the tensors of the layers. The time is O(slices²) per value.
//
//===----------------------------------------------------------------------===//

#include "Cotangents.h"
#include "fsdp/IR/StopGradient.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fsdp;

void Cotangents::activateParameter(Value v) {
  active.insert(v);
  wide.insert(v);
}

void Cotangents::propagateActivity(Block &block) {
  for (Operation &op : block) {
    if (isa<StopGradientOp>(op))
      // The result of fsdp.stop_gradient has no gradient and is therefore never active.
      continue;
    bool any = llvm::any_of(op.getOperands(), [&](Value v) { return isActive(v); });
    if (!any && op.getNumRegions()) {
      llvm::SetVector<Value> captured;
      getUsedValuesDefinedAbove(op.getRegions(), captured);
      any = llvm::any_of(captured, [&](Value v) { return isActive(v); });
    }
    if (!any)
      continue;
    bool view = isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
                    tensor::CastOp, ReduceCotangentOp>(op) &&
                wide.contains(op.getOperand(0));
    for (Value result : op.getResults()) {
      if (isFloat(result))
        active.insert(result);
      if (view)
        wide.insert(result);
    }
  }
}

Type Cotangents::getElementType(Value v) const {
  Type element = getElementTypeOrSelf(v);
  return wide.contains(v) ? getWorkingType(element) : element;
}

Value Cotangents::get(Value v) {
  joinSlices(v);
  return cotangents.lookup(v);
}

Value Cotangents::take(Value v) {
  Value g = get(v);
  cotangents.erase(v);
  return g;
}

void Cotangents::add(Value v, Value g) {
  if (!isActive(v))
    return;
  Location loc = g.getLoc();
  Type element = getElementType(v), work = getWorkingType(element);
  Value &slot = cotangents[v];
  if (!slot) {
    slot = convertElements(b, loc, g, element);
    return;
  }
  auto sum = [&](OpBuilder &b, Location loc, ValueRange x) -> Value {
    Value total = arith::AddFOp::create(b, loc, convertFloat(b, loc, x[0], work),
                                        convertFloat(b, loc, x[1], work));
    return convertFloat(b, loc, total, element);
  };
  slot = isa<RankedTensorType>(v.getType()) ? buildElementwise(b, loc, {slot, g}, element, sum)
                                            : sum(b, loc, {slot, g});
}

void Cotangents::addSlice(Value v, Value g, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
                          ArrayRef<int64_t> strides) {
  if (!isActive(v))
    return;
  g = convertElements(b, g.getLoc(), g, getElementType(v));
  slices[v].push_back(
      {g, llvm::to_vector(offsets), llvm::to_vector(sizes), llvm::to_vector(strides)});
}

/// Returns true if there is a dimension in which the ranges of the slices are disjoint. May return
/// false for slices that are disjoint only because of their strides.
bool Cotangents::areDisjoint(const Slice &l, const Slice &r) {
  for (unsigned d = 0; d < l.offsets.size(); ++d) {
    int64_t lastOfL = l.offsets[d] + (l.sizes[d] - 1) * l.strides[d];
    int64_t lastOfR = r.offsets[d] + (r.sizes[d] - 1) * r.strides[d];
    if (lastOfL < r.offsets[d] || lastOfR < l.offsets[d])
      return true;
  }
  return false;
}

Value Cotangents::joinLayer(RankedTensorType type, ArrayRef<Slice> layer) {
  Location loc = layer.front().g.getLoc();
  int64_t covered = 0;
  for (const Slice &s : layer)
    covered += ShapedType::getNumElements(s.sizes);
  Value whole =
      covered == type.getNumElements()
          ? tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType()).getResult()
          : buildZeros(b, loc, type);
  for (const Slice &s : layer)
    whole = tensor::InsertSliceOp::create(b, loc, s.g, whole,
                                          getAsIndexOpFoldResult(b.getContext(), s.offsets),
                                          getAsIndexOpFoldResult(b.getContext(), s.sizes),
                                          getAsIndexOpFoldResult(b.getContext(), s.strides));
  return whole;
}

void Cotangents::joinSlices(Value v) {
  auto it = slices.find(v);
  if (it == slices.end())
    return;
  SmallVector<Slice> pending = std::move(it->second);
  slices.erase(it);
  // Restore program order: the walk of the backward appended the slices from last to first.
  std::reverse(pending.begin(), pending.end());
  while (!pending.empty()) {
    SmallVector<Slice> layer, rest;
    for (Slice &s : pending) {
      bool fits = llvm::all_of(layer, [&](const Slice &other) { return areDisjoint(s, other); });
      (fits ? layer : rest).push_back(std::move(s));
    }
    add(v, joinLayer(cast<RankedTensorType>(getType(v)), layer));
    pending = std::move(rest);
  }
}
