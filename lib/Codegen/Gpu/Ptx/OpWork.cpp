//===- OpWork.cpp - Work of scalar operations on a GPU ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "OpWork.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;

OpWork fsdp::workOf(Operation &op) {
  if (isa<RandomElementOp>(op))
    return {60, 0}; // ten rounds of Philox give four numbers, of which an element uses one
  if (isa<tensor::ExtractOp>(op))
    return {3, 0}; // address and load
  if (isa<math::TanhOp>(op))
    return {6, 2}; // 1 - 2 / (1 + 2^x)
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
