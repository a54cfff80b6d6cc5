//===- Widening.h - A tensor in a wider float type --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_WIDENING_H
#define FSDP_IR_WIDENING_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// `extf` of the one input and nothing else, wherever its elements go: exact, so that readers may
/// as well widen what they read.
bool isWidening(linalg::GenericOp op);
/// The same where each element stays at its place.
bool isWideningInPlace(linalg::GenericOp op);

} // namespace mlir::fsdp

#endif // FSDP_IR_WIDENING_H
