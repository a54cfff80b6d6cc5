//===- AttentionKernel.cpp - Kernels that are one attention op --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"
#include "Codegen/Kernel/Lowering.h"
#include "fsdp/IR/Decompositions.h"
#include "fsdp/IR/FSDP.h"

using namespace mlir;
using namespace mlir::fsdp;

static Operation *getOnlyOp(func::FuncOp kernel) {
  Block &body = kernel.front();
  if (body.getOperations().size() != 2 || !isa<AttentionOp, AttentionGradOp>(body.front()))
    return nullptr;
  Operation *op = &body.front();
  auto isPlain = [&](Value v) {
    auto argument = dyn_cast<BlockArgument>(v);
    return argument && !kernel.getArgAttr(argument.getArgNumber(), inoutAttr);
  };
  llvm::SmallPtrSet<Value, 4> seen;
  bool results = llvm::all_of(body.getTerminator()->getOperands(), [&](Value v) {
    return v.getDefiningOp() == op && seen.insert(v).second;
  });
  auto isSupported = [](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    Type element = tensor.getElementType();
    bool isFloat = element.isF16() || element.isBF16() || element.isF32() || element.isF64();
    return tensor.getNumElements() > 0 &&
           (isFloat || element.isInteger(1) || element.isInteger(8) || element.isInteger(16) ||
            element.isInteger(32) || element.isInteger(64));
  };
  return results && llvm::all_of(op->getOperands(), isPlain) &&
                 llvm::all_of(op->getOperandTypes(), isSupported)
             ? op
             : nullptr;
}

bool fsdp::handlesAttentionKernel(func::FuncOp kernel) { return getOnlyOp(kernel) != nullptr; }

void fsdp::decomposeAttention(func::FuncOp kernel) {
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) {
    if (isa<AttentionOp, AttentionGradOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    OpBuilder b(op);
    auto forward = dyn_cast<AttentionOp>(op);
    op->replaceAllUsesWith(forward ? lowerToLinalg(forward, b)
                                   : lowerToLinalg(cast<AttentionGradOp>(op), b));
    op->erase();
  }
}
