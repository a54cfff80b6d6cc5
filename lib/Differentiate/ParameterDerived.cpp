//===- ParameterDerived.cpp - Values derived from parameters ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ParameterDerived.h"
#include "ForwardPart.h"
#include "fsdp/IR/FSDP.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isViewOrMap(Operation *op) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
          tensor::InsertSliceOp, tensor::ConcatOp, tensor::PadOp, tensor::CastOp>(op))
    return true;
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return structured && structured.getNumReductionLoops() == 0 &&
         structured.hasPureTensorSemantics();
}

bool ParameterDerived::derive(Operation *def) {
  if (isa<UnshardOp>(def))
    return true;
  if (!isViewOrMap(def))
    return false;
  bool any = false;
  for (Value operand : getAllOperands(def)) {
    if (!isa<RankedTensorType>(operand.getType()) || isFree(operand))
      continue;
    if (!contains(operand))
      return false;
    any = true;
  }
  return any;
}

bool ParameterDerived::contains(Value v) {
  Operation *def = v.getDefiningOp();
  if (!def)
    return false;
  if (auto it = known.find(def); it != known.end())
    return it->second;
  bool result = derive(def);
  return known[def] = result;
}
