//===- DispatchKernel.h - From a dispatch to a kernel -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_DISPATCHKERNEL_H
#define FSDP_IR_DISPATCHKERNEL_H

#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Attribute `kind` of a dispatch: map, row, column, contract, ...
inline constexpr StringLiteral dispatchKindAttr = "kind";

/// Moves the body of the dispatch into a new function `k` that is in no module. Its arguments are
/// the operands of the dispatch, and a destination for each result that overwrites no operand.
func::FuncOp buildKernel(DispatchOp dispatch);

} // namespace mlir::fsdp

#endif // FSDP_IR_DISPATCHKERNEL_H
