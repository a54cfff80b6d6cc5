//===- Adjoints.h - Adjoint rules by family of ops --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   differentiateOp                  one op of a function: picks the family
//    ├ differentiateStructured       linalg: StructuredAdjoint.cpp
//    │  ├ buildContractionAdjoint    products: ContractionAdjoint.cpp
//    │  └ (scatter)                  tensor.extract in a body: ScatterAdjoint.cpp
//    ├ differentiateTensorOp         views, slices, scalars: TensorAdjoint.cpp
//    └ differentiateRaisedOp         softmax and fsdp ops: RaisedAdjoint.cpp
//
// Each function reads the cotangents of the op's results and adds to the cotangents of its
// operands. A function fails with a diagnostic if an op has no adjoint rule.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_ADJOINTS_H
#define FSDP_LIB_DIFFERENTIATE_ADJOINTS_H

#include "Cotangents.h"

namespace mlir::fsdp {

LogicalResult differentiateOp(Operation *op, Cotangents &cotangents);

LogicalResult differentiateStructured(linalg::LinalgOp op, Cotangents &cotangents);

/// Returns true if `op`, with indexing maps A, B and C, computes only out[C] += in0[A] · in1[B] and
/// conversions.
bool isPlainContraction(linalg::GenericOp op);
/// Adds the cotangent of input `index` as a contraction that accumulates into the cotangent so far.
/// Returns false if this product reduces no loop, because it is no contraction then.
bool differentiateContraction(linalg::GenericOp op, Value g, unsigned index,
                              Cotangents &cotangents);

/// Adds `updates` [.., columns] to the rows `ids` [..] of the cotangent of `v`, viewed as a matrix
/// with `columns` columns.
void scatterAddRows(Value v, Value updates, Value ids, int64_t columns, Cotangents &cotangents);

/// Returns `updates` [.., columns] as a matrix with a row per id. The first row with an id holds
/// the sum of all rows with that id, added in order. Later rows with the id are zero.
Value addEqualRows(OpBuilder &b, Location loc, Value updates, Value ids);

/// Differentiate an op. Return nothing if the function has no rule for `op`.
std::optional<LogicalResult> differentiateTensorOp(Operation *op, Cotangents &cotangents);
std::optional<LogicalResult> differentiateRaisedOp(Operation *op, Cotangents &cotangents);

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_ADJOINTS_H
