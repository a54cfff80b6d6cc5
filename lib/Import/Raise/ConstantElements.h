//===- ConstantElements.h - Elements of constant tables ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_CONSTANTELEMENTS_H
#define FSDP_LIB_IMPORT_CONSTANTELEMENTS_H

#include "mlir/IR/Value.h"

namespace mlir::fsdp {

/// Returns element `at` of a table. The table must be a constant, or views and static slices must
/// compute the table from a constant. With `throughBodies`, elementwise ops may also be among the
/// ops that compute the table. Returns null for other tables.
Attribute elementAt(Value table, SmallVector<int64_t> at, bool throughBodies = false);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_CONSTANTELEMENTS_H
