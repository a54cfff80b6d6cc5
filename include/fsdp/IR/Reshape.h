//===- Reshape.h - Reshape of a static tensor -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_RESHAPE_H
#define FSDP_IR_RESHAPE_H

#include "mlir/IR/Builders.h"

namespace mlir::fsdp {

/// Builds ops that reshape `v` to `shape`, which must have the same number of elements.
Value buildReshape(OpBuilder &b, Location loc, Value v, ArrayRef<int64_t> shape);

} // namespace mlir::fsdp

#endif // FSDP_IR_RESHAPE_H
