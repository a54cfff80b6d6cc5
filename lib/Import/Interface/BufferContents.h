//===- BufferContents.h - Values given for a buffer -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_BUFFERCONTENTS_H
#define FSDP_LIB_IMPORT_BUFFERCONTENTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fsdp {

/// How a causal buffer is written.
enum class CausalForm {
  Allowed,  // true or 1 where column ≤ row
  Masked,   // true or 1 where column > row
  Additive, // 0 where column ≤ row, -inf elsewhere
};

/// A generic that computes a causal buffer from its last two loop indices.
Value buildCausal(OpBuilder &b, Location loc, RankedTensorType type, CausalForm form);

/// A constant with the same value, 0 or 1, everywhere.
Value buildSplat(OpBuilder &b, Location loc, RankedTensorType type, int64_t value);

/// A constant with the contents of a file: `.npy` with the type's shape and
/// element type, or as many little-endian elements. Errors are emitted at `loc`.
FailureOr<Value> buildFromFile(OpBuilder &b, Location loc, RankedTensorType type, StringRef path);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_BUFFERCONTENTS_H
