//===- OpWork.cpp - Work of scalar operations on a GPU ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "OpWork.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isInGelu(math::TanhOp tanh) {
  auto isFromOne = [](Operation *op) {
    return isa<arith::SubFOp>(op) && matchPattern(op->getOperand(0), m_OneFloat());
  };
  return tanh.getType().isF32() && !tanh->use_empty() &&
         llvm::all_of(tanh->getUsers(), [&](Operation *user) {
           if (isa<arith::AddFOp>(user))
             return llvm::any_of(user->getOperands(),
                                 [](Value value) { return matchPattern(value, m_OneFloat()); });
           return isa<arith::MulFOp>(user) && user->getOperand(0) == user->getOperand(1) &&
                  llvm::all_of(user->getUsers(), isFromOne);
         });
}

OpWork fsdp::workOf(Operation &op) {
  if (isa<RandomElementOp>(op))
    return {60, 0}; // ten rounds of Philox give four numbers, of which an element uses one
  if (isa<tensor::ExtractOp>(op))
    return {3, 0}; // address and load
  if (auto tanh = dyn_cast<math::TanhOp>(op))
    return isInGelu(tanh) ? OpWork{5, 2} : OpWork{15, 2}; // 1 / (1 + 2^x); two forms, selected
  if (isa<math::ExpOp>(op))
    return {8, 1};
  if (isa<math::Exp2Op, math::RsqrtOp, math::SqrtOp, arith::DivFOp>(op))
    return {2, 1};
  if (isa<math::ErfOp, math::ErfcOp>(op))
    return {30, 1};
  if (isa<math::FmaOp, math::AbsFOp>(op))
    return {1, 0};
  if (isa<math::MathDialect>(op.getDialect()))
    return {80, 0}; // in f64
  bool isFree = isa<arith::ConstantOp, arith::IndexCastOp, arith::IndexCastUIOp>(op);
  return {isa<arith::ArithDialect>(op.getDialect()) && !isFree ? 1.0 : 0.0, 0};
}
