//===- ForwardPart.cpp - Forward and backward of a function -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ForwardPart.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isGradient(func::FuncOp func, unsigned index) {
  return llvm::any_of(
      ArrayRef({FSDPDialect::gradientAttr, FSDPDialect::unitAttr, FSDPDialect::rowsAttr}),
      [&](StringRef name) { return func.getResultAttr(index, name); });
}

bool fsdp::hasGradients(func::FuncOp func) {
  return llvm::any_of(llvm::seq<unsigned>(0, func.getNumResults()),
                      [&](unsigned i) { return isGradient(func, i); });
}

llvm::SetVector<Value> fsdp::getAllOperands(Operation *op) {
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  if (op->getNumRegions())
    getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

bool fsdp::isFree(Value v) {
  Operation *def = v.getDefiningOp();
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(def))
    return matchPattern(fill.getInputs()[0], m_Constant());
  return def && (isa<tensor::EmptyOp>(def) || def->hasTrait<OpTrait::ConstantLike>());
}

int64_t fsdp::countBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return 0;
  unsigned bits = tensor.getElementType().isIndex() ? 64 : tensor.getElementTypeBitWidth();
  return tensor.getNumElements() * llvm::divideCeil(bits, 8);
}

ForwardPart::ForwardPart(func::FuncOp func) : func(func) {
  Operation *terminator = func.getBody().front().getTerminator();
  SmallVector<Value> worklist;
  for (auto [i, result] : llvm::enumerate(terminator->getOperands()))
    if (!isGradient(func, i))
      worklist.push_back(result);
  while (!worklist.empty()) {
    Operation *def = worklist.pop_back_val().getDefiningOp();
    if (def && ops.insert(def).second)
      llvm::append_range(worklist, getAllOperands(def));
  }
  // An fsdp.shard that RegatherParameters.cpp has added after the forward belongs to the forward.
  for (auto keep : func.getBody().front().getOps<ShardOp>())
    if (llvm::all_of(keep.getParams(), [&](Value v) { return computes(v); }))
      ops.insert(keep);
}

llvm::MapVector<Value, Operation *> ForwardPart::getSaved() const {
  llvm::MapVector<Value, Operation *> saved;
  for (Operation &op : func::FuncOp(func).getBody().front().without_terminator())
    if (!contains(&op))
      for (Value v : getAllOperands(&op))
        if (computes(v) && isa<RankedTensorType>(v.getType()) && !isFree(v))
          saved.insert({v, &op});
  return saved;
}

int64_t ForwardPart::countSavedBytes() const {
  int64_t bytes = 0;
  for (auto [value, reader] : getSaved())
    if (!isa<UnshardOp>(value.getDefiningOp()))
      bytes += countBytes(value.getType());
  return bytes;
}
