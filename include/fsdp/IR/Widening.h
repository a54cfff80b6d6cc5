//===- Widening.h - Extension to a wider float type -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_WIDENING_H
#define FSDP_IR_WIDENING_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// Returns whether `op` has one input and its body only extends an element of this input to a wider
/// float type (`extf`). The indexing maps may be arbitrary. An extension is exact, so an op that
/// reads the result may instead read the input and extend its elements.
bool isWidening(linalg::GenericOp op);
/// Returns whether isWidening(op) holds and all indexing maps are identities.
bool isWideningInPlace(linalg::GenericOp op);

} // namespace mlir::fsdp

#endif // FSDP_IR_WIDENING_H
