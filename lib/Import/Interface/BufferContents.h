//===- BufferContents.h - Contents of buffers from --buffer -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_BUFFERCONTENTS_H
#define FSDP_LIB_IMPORT_BUFFERCONTENTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fsdp {

/// The values of the elements (row, column) of a causal buffer.
enum class CausalForm {
  Allowed,  // true or 1 where column ≤ row
  Masked,   // true or 1 where column > row
  Additive, // 0 where column ≤ row, -inf elsewhere
};

/// Builds a generic that computes a causal buffer. The last two loop indices are row and column.
Value buildCausal(OpBuilder &b, Location loc, RankedTensorType type, CausalForm form);

Value buildSplat(OpBuilder &b, Location loc, RankedTensorType type, int64_t value);

/// Builds a constant of type `type` from a file. The file is an `.npy` file with the same shape and
/// element type, or contains raw little-endian elements. Emits errors at `loc`.
FailureOr<Value> buildFromFile(OpBuilder &b, Location loc, RankedTensorType type, StringRef path);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_BUFFERCONTENTS_H
