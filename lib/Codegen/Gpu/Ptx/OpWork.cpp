//===- OpWork.cpp - Work of scalar operations on a GPU ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "OpWork.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isLogistic(Value x, Value y) {
  auto sum = y.getDefiningOp<arith::AddFOp>();
  auto isPower = [](Value value) {
    if (auto call = value.getDefiningOp<LLVM::CallIntrinsicOp>())
      return call.getIntrin() == "llvm.nvvm.ex2.approx.ftz";
    return value.getDefiningOp<math::Exp2Op>() != nullptr;
  };
  return sum && sum.getType().isF32() && matchPattern(x, m_OneFloat()) &&
         matchPattern(sum.getRhs(), m_OneFloat()) && isPower(sum.getLhs());
}

OpWork fsdp::workOf(Operation &op) {
  if (isa<RandomElementOp>(op))
    return {60, 0}; // ten rounds of Philox give four numbers, of which an element uses one
  if (isa<tensor::ExtractOp>(op))
    return {3, 0}; // address and load
  if (isa<math::TanhOp>(op))
    return {15, 2}; // two forms, selected
  if (isa<arith::DivFOp>(op) && isLogistic(op.getOperand(0), op.getOperand(1)))
    return {1, 1};
  if (isa<math::ExpOp>(op))
    return {10, 1};
  if (isa<math::Exp2Op, math::RsqrtOp, math::FloorOp>(op))
    return {1, 1};
  if (isa<arith::DivFOp>(op) && matchPattern(op.getOperand(1), m_Constant()))
    return {1, 0}; // a product
  if (isa<arith::DivFOp>(op))
    return {8, 1}; // scales operands whose quotient could be denormal
  if (isa<math::SqrtOp>(op))
    return {10, 1}; // the correctly rounded root of a number that is not denormal
  if (isa<math::ErfOp>(op))
    return {47, 0};
  if (isa<math::FmaOp, math::AbsFOp>(op))
    return {1, 0};
  if (isa<math::MathDialect>(op.getDialect()))
    return {80, 0}; // in f64
  bool isFree = isa<arith::ConstantOp, arith::IndexCastOp, arith::IndexCastUIOp>(op);
  return {isa<arith::ArithDialect>(op.getDialect()) && !isFree ? 1.0 : 0.0, 0};
}
