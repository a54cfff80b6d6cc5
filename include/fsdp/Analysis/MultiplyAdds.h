//===- MultiplyAdds.h - Arithmetic of a kernel's products -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_MULTIPLYADDS_H
#define FSDP_ANALYSIS_MULTIPLYADDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Multiply-adds of the contractions and of the attention in a kernel; `bf16`: those of two bf16
/// values, the others are in `wide`, where one of f64 counts as two.
struct MultiplyAdds {
  uint64_t wide = 0, bf16 = 0;
};
MultiplyAdds countMultiplyAdds(Operation *kernel);

/// Bytes that a kernel reads and writes: each binding once, and what it updates in place twice.
uint64_t countMovedBytes(func::FuncOp kernel);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_MULTIPLYADDS_H
