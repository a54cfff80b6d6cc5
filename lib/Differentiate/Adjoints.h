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
// Each function computes terms from the cotangents of the results of an op, and adds these terms to
// the cotangents of the operands. A function fails with a diagnostic if the op has no gradient.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_ADJOINTS_H
#define FSDP_LIB_DIFFERENTIATE_ADJOINTS_H

#include "Cotangents.h"

namespace mlir::fsdp {

LogicalResult differentiateOp(Operation *op, Cotangents &cotangents);

LogicalResult differentiateStructured(linalg::LinalgOp op, Cotangents &cotangents);

/// Returns true if `op` computes only out[C] += in0[A] · in1[B] and conversions, where A, B and C
/// are its indexing maps.
bool isPlainContraction(linalg::GenericOp op);
/// Emits a contraction that adds to the cotangent of input `index`. A product without a reduction
/// loop is not a contraction. For such a product, the function changes nothing and returns false.
bool differentiateContraction(linalg::GenericOp op, Value g, unsigned index,
                              Cotangents &cotangents);

/// Treats the cotangent of `v` as a matrix with `columns` columns. Each element of `ids` [..] is
/// the number of a row of this matrix. Adds the corresponding row of `updates` [.., columns] to
/// this row.
void scatterAddRows(Value v, Value updates, Value ids, int64_t columns, Cotangents &cotangents);

/// Returns a matrix with one row per element of `ids`. At the first occurrence of an id, the row is
/// the sum of all rows of `updates` [.., columns] with this id, added in their order. At later
/// occurrences of the id, the row is zero.
Value addEqualRows(OpBuilder &b, Location loc, Value updates, Value ids);

/// Differentiate `op`. Return nothing if the function is not responsible for this kind of op.
std::optional<LogicalResult> differentiateTensorOp(Operation *op, Cotangents &cotangents);
std::optional<LogicalResult> differentiateRaisedOp(Operation *op, Cotangents &cotangents);

/// Replaces the ops of `module` that only determine cotangents.
void dropMarkers(ModuleOp module);

/// Returns true if `axes` is the axis `tensor` alone.
bool isOverTensor(ArrayAttr axes);

/// Returns the argument of the function of `op` that contains the coordinate of the rank on `axis`,
/// or null.
BlockArgument findCoordinate(Operation *op, StringRef axis);

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_ADJOINTS_H
