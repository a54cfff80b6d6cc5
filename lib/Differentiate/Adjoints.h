//===- Adjoints.h - The rules, by family of ops -----------------*- C++ -*-===//
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
// Each reads the cotangents of the op's results and adds to those of its operands.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_ADJOINTS_H
#define FSDP_LIB_DIFFERENTIATE_ADJOINTS_H

#include "Cotangents.h"

namespace mlir::fsdp {

LogicalResult differentiateOp(Operation *op, Cotangents &cotangents);

LogicalResult differentiateStructured(linalg::LinalgOp op, Cotangents &cotangents);

/// Is `op` out[C] += in0[A] · in1[B] and nothing else, conversions aside?
bool isPlainContraction(linalg::GenericOp op);
/// The cotangent of input `index` as a contraction that adds into what is there;
/// false when it reduces nothing and so is no contraction.
bool differentiateContraction(linalg::GenericOp op, Value g, unsigned index,
                              Cotangents &cotangents);

/// Adds `updates` [.., columns] into the rows `ids` [..] of the cotangent of `v`,
/// which is seen as a matrix of that many columns.
void scatterAddRows(Value v, Value updates, Value ids, int64_t columns, Cotangents &cotangents);

/// `updates` [.., columns] as a matrix with a row per id, in which the first of equal `ids` has the
/// sum of their rows, in order, and the others have zeros.
Value addEqualRows(OpBuilder &b, Location loc, Value updates, Value ids);

/// nullopt: not an op of this family.
std::optional<LogicalResult> differentiateTensorOp(Operation *op, Cotangents &cotangents);
std::optional<LogicalResult> differentiateRaisedOp(Operation *op, Cotangents &cotangents);

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_ADJOINTS_H
