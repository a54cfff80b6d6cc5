//===- MultiplyAdds.h - Multiply-adds and bytes of a kernel -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_MULTIPLYADDS_H
#define FSDP_ANALYSIS_MULTIPLYADDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Number of multiply-adds of the contractions and attention ops in a kernel. `bf16` is the number
/// of multiply-adds whose two factors are bf16. `wide` is the number of all other multiply-adds. A
/// multiply-add of f64 factors counts as two.
struct MultiplyAdds {
  uint64_t wide = 0, bf16 = 0;
};
MultiplyAdds countMultiplyAdds(Operation *kernel);

/// Returns the bytes that a kernel reads and writes. A binding that the kernel updates in place
/// counts twice.
uint64_t countMovedBytes(func::FuncOp kernel);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_MULTIPLYADDS_H
