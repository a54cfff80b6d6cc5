//===- Surroundings.cpp - Products around a value --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Raise/Surroundings.h"
#include "Structure/Structured.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isView(Operation *op) {
  return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

bool fsdp::isElementwise(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  return generic && isParallel(generic);
}

bool fsdp::isMatrixProduct(Operation *op) {
  auto structured = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!structured || !isContraction(structured))
    return false;
  auto init = dyn_cast_or_null<FloatAttr>(uniformConstant(structured.getDpsInits()[0]));
  return init && init.getValue().isZero();
}

bool fsdp::isSumOfProducts(Operation *op) {
  auto structured = dyn_cast_or_null<linalg::LinalgOp>(op);
  return structured && structured.getNumReductionLoops() > 0 &&
         linalg::isaContractionOpInterface(structured);
}

static bool leadsTo(Value value, Operation *target, DenseMap<Value, bool> &known) {
  Operation *op = value.getDefiningOp();
  if (op == target)
    return true;
  bool isSingle = isView(op) || isa_and_nonnull<tensor::ExtractSliceOp>(op);
  if (!isSingle && !isElementwise(op))
    return false;
  auto [it, fresh] = known.try_emplace(value, false);
  if (!fresh)
    return it->second;
  unsigned inputs = isSingle ? 1 : cast<linalg::GenericOp>(op).getNumDpsInputs();
  bool leads = llvm::any_of(op->getOperands().take_front(inputs),
                            [&](Value v) { return leadsTo(v, target, known); });
  return known[value] = leads;
}

bool fsdp::leadsTo(Value value, Operation *target) {
  DenseMap<Value, bool> known;
  return ::leadsTo(value, target, known);
}

/// Returns whether `op` is a slice that keeps most of its source. A small slice, such as one column
/// of a softmax over experts, is not part of attention.
static bool isLargeSlice(Operation *op) {
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  return slice && slice.getType().hasStaticShape() && slice.getSourceType().hasStaticShape() &&
         2 * slice.getType().getNumElements() > slice.getSourceType().getNumElements();
}

using ProductTest = llvm::function_ref<bool(Operation *)>;

/// Collects the ops that read `value`, the weights, directly or through views, elementwise ops and
/// large slices.
static void collectReaders(Value value, Surroundings &around, DenseSet<Value> &seen,
                           ProductTest accepts) {
  if (!seen.insert(value).second)
    return;
  for (Operation *user : value.getUsers()) {
    if (isView(user) || isElementwise(user) || isLargeSlice(user))
      collectReaders(user->getResult(0), around, seen, accepts);
    else if (accepts(user))
      around.products.insert(user);
    else
      around.other = user;
  }
}

/// Collects the products that `value` depends on through views, elementwise ops and concatenations.
static void collectSources(Value value, Surroundings &around, DenseSet<Value> &seen,
                           ProductTest accepts) {
  Operation *op = value.getDefiningOp();
  if (!op || !seen.insert(value).second)
    return;
  if (accepts(op))
    around.sources.insert(op);
  unsigned inputs = isView(op)                  ? 1
                    : isElementwise(op)         ? cast<linalg::GenericOp>(op).getNumDpsInputs()
                    : isa<tensor::ConcatOp>(op) ? op->getNumOperands()
                                                : 0;
  for (Value operand : op->getOperands().take_front(inputs))
    collectSources(operand, around, seen, accepts);
}

Surroundings fsdp::findSurroundings(Value weights, Value scores, ProductTest accepts) {
  Surroundings around;
  DenseSet<Value> seen;
  collectReaders(weights, around, seen, accepts);
  seen.clear();
  collectSources(scores, around, seen, accepts);
  return around;
}

bool fsdp::isBetweenProducts(Value value) {
  Surroundings around = findSurroundings(value, value, isMatrixProduct);
  return !around.products.empty() && !around.sources.empty();
}
