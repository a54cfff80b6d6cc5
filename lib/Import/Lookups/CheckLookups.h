//===- CheckLookups.h - Lookups that are checked at run time ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_CHECKLOOKUPS_H
#define FSDP_LIB_IMPORT_CHECKLOOKUPS_H

#include "Lookups/Lookups.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Adds a result to the function that says whether an index of the lookup is out of range, and a
/// remark. Returns the ids, clamped. `lookup.ids` is a tensor of integers; the new ops are put at
/// `b`.
Value checkLookup(func::FuncOp func, const RowLookup &lookup, OpBuilder &b);

/// Returns true if result `index` is that of a checked lookup.
bool isLookupCheck(func::FuncOp func, unsigned index);

/// Returns true if ids are a constant, or a view of one.
bool isConstantIds(Value ids);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_CHECKLOOKUPS_H
