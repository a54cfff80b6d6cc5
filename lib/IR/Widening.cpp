//===- Widening.cpp - Extension to a wider float type -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/Widening.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isWidening(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op->getNumResults() != 1)
    return false;
  Block &body = *op.getBody();
  auto extension = dyn_cast<arith::ExtFOp>(body.front());
  return extension && extension.getIn() == body.getArgument(0) &&
         extension->getNextNode() == body.getTerminator() &&
         body.getTerminator()->getOperand(0) == extension;
}

bool fsdp::isWideningInPlace(linalg::GenericOp op) {
  return isWidening(op) &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); });
}
