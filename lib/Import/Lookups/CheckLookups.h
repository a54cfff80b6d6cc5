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

/// Adds a result to the function. This result is an id of the lookup that is out of range, or 0 if
/// all ids are in range. Returns the clamped ids. `lookup.ids` is a tensor of integers. Emits a
/// remark.
Value checkLookup(func::FuncOp func, const RowLookup &lookup, OpBuilder &b);

/// Returns whether result `index` was added by checkLookup().
bool isLookupCheck(func::FuncOp func, unsigned index);

/// Returns whether `ids` is a constant or a view of a constant.
bool isConstantIds(Value ids);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_CHECKLOOKUPS_H
