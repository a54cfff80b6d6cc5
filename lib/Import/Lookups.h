//===- Lookups.h - Positions that depend on data ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_LOOKUPS_H
#define FSDP_LIB_IMPORT_LOOKUPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// A tensor of ids and its map over the loops of a generic.
struct Ids {
  Value tensor;
  AffineMap map;
};

/// The ids behind a position that a body computes from data: an operand when the
/// position is one, otherwise the result of a new generic before this one.
FailureOr<Ids> findIds(linalg::GenericOp generic, Value position, OpBuilder &b);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_LOOKUPS_H
