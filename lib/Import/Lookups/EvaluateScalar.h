//===- EvaluateScalar.h - Arithmetic on known numbers -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_EVALUATESCALAR_H
#define FSDP_LIB_IMPORT_EVALUATESCALAR_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace mlir::fsdp {

/// A number. Integers are sign-extended, except that i1 is 0 or 1. Floats are rounded to their
/// type.
struct Scalar {
  int64_t integer = 0;
  double real = 0;
  bool undefined = false; ///< whether the value is poison, such as a quotient by 0

  static Scalar of(int64_t value) { return {value, 0, false}; }
  static Scalar of(double value) { return {0, value, false}; }
  static Scalar poison() { return {0, 0, true}; }
};

/// Returns the number that an attribute holds: an integer of at most 64 bits, or a float.
std::optional<Scalar> readScalar(Attribute attr);

/// Returns whether evaluateScalar() supports the op with its types.
bool isKnownScalarOp(Operation *op);

/// Returns the result of an op of arith or math on numbers. Ops of math are computed in f64, and
/// the result is rounded once.
Scalar evaluateScalar(Operation *op, ArrayRef<Scalar> operands);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_EVALUATESCALAR_H
