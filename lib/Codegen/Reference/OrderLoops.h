//===- OrderLoops.h - Innermost loops over results --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef FSDP_LIB_CODEGEN_REFERENCE_ORDERLOOPS_H
#define FSDP_LIB_CODEGEN_REFERENCE_ORDERLOOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Orders the loops of all sums of products. Returns the number of iterations of all loop nests.
int64_t orderLoops(func::FuncOp kernel);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_REFERENCE_ORDERLOOPS_H
