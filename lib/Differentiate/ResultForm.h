//===- ResultForm.h - Form of a result of a structured op -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_RESULTFORM_H
#define FSDP_LIB_DIFFERENTIATE_RESULTFORM_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// Describes how the body of a generic computes one result from its `out` argument.
struct ResultForm {
  enum Kind {
    Map,    ///< y = f(...), without reduction loops
    Sum,    ///< y = out ± t1 ± t2 ...
    Extreme ///< y = max(out, t1, ...) or min(...)
  };
  struct Term {
    Value value;
    bool negated;
  };

  unsigned index = 0; ///< index of the result
  Kind kind = Map;
  SmallVector<Term> terms; ///< terms of the result; in Sum and Extreme, they are independent of out
};

/// Classifies result `index`. Fails with a diagnostic if the result has none of the three forms.
FailureOr<ResultForm> classifyResult(linalg::GenericOp op, unsigned index);

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_RESULTFORM_H
