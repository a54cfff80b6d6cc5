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

Operation *fsdp::findAttention(func::FuncOp kernel, int64_t bytes) {
  Block &body = kernel.front();
  auto found =
      llvm::find_if(body, [](Operation &op) { return isa<AttentionOp, AttentionGradOp>(op); });
  if (found == body.end() || !findHeads(&*found, bytes))
    return nullptr;
  auto isSupported = [&](BlockArgument argument) {
    auto tensor = cast<RankedTensorType>(argument.getType());
    Type element = tensor.getElementType();
    bool isFloat = element.isF16() || element.isBF16() || element.isF32() || element.isF64();
    return tensor.getNumElements() > 0 && !kernel.getArgAttr(argument.getArgNumber(), inoutAttr) &&
           (isFloat || element.isInteger(1) || element.isInteger(8) || element.isInteger(16) ||
            element.isInteger(32) || element.isInteger(64));
  };
  auto isRead = [](BlockArgument argument) { return !argument.use_empty(); };
  return llvm::all_of(llvm::make_filter_range(kernel.getArguments(), isRead), isSupported)
             ? &*found
             : nullptr;
}

std::optional<PlacedHeads> fsdp::placeHeads(func::FuncOp kernel, Value heads) {
  if (!isa_and_present<AttentionOp, AttentionGradOp>(heads.getDefiningOp()))
    return findSource(heads);
  for (OpOperand &operand : kernel.front().getTerminator()->getOpOperands()) {
    std::optional<SmallVector<PlacedHeads>> pieces = findPieces(operand.get());
    for (PlacedHeads &piece : *pieces)
      if (piece.heads == heads) {
        piece.in = getDestination(kernel, operand.getOperandNumber());
        return piece;
      }
  }
  return std::nullopt;
}

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
