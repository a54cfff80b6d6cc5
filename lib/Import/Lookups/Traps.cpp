//===- Traps.cpp - Integer ops with an undefined result ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Import/Traps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

static std::optional<APInt> getConstant(Value value) {
  APInt constant;
  return matchPattern(value, m_ConstantInt(&constant)) ? std::optional(constant) : std::nullopt;
}

static bool isNeverZero(Value value) {
  if (std::optional<APInt> constant = getConstant(value))
    return !constant->isZero();
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::MaxSIOp, arith::MaxUIOp>(op))
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      std::optional<APInt> constant = getConstant(operand);
      return constant &&
             (isa<arith::MaxSIOp>(op) ? constant->isStrictlyPositive() : !constant->isZero());
    });
  if (isa<arith::ExtSIOp, arith::ExtUIOp>(op))
    return isNeverZero(op->getOperand(0));
  // A cast to index drops no bits.
  if (auto cast = dyn_cast<arith::IndexCastOp>(op))
    return isa<IndexType>(cast.getType()) && isNeverZero(cast.getIn());
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isNeverZero(select.getTrueValue()) && isNeverZero(select.getFalseValue());
  return false;
}

LogicalResult fsdp::refuseTraps(Operation *op) {
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::CeilDivSIOp,
          arith::CeilDivUIOp, arith::FloorDivSIOp>(op)) {
    if (isNeverZero(op->getOperand(1)))
      return success();
    std::optional<APInt> constant = getConstant(op->getOperand(1));
    return op->emitError("'") << op->getName() << "' "
                              << (constant ? "divides by 0" : "has a divisor that may be 0")
                              << "; expected a constant other than 0, or arith.maxsi of it and 1";
  }
  if (isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op)) {
    std::optional<APInt> bits = getConstant(op->getOperand(1));
    unsigned width = op->getResult(0).getType().isIndex()
                         ? 64
                         : op->getResult(0).getType().getIntOrFloatBitWidth();
    if (bits && bits->uge(width))
      return op->emitError("'") << op->getName() << "' shifts " << width << " bits by "
                                << bits->getSExtValue() << "; expected less than " << width;
  }
  return success();
}
