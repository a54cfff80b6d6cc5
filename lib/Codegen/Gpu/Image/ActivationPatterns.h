//===- ActivationPatterns.h - Ops of GELU and SiLU ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_IMAGE_ACTIVATIONPATTERNS_H
#define FSDP_LIB_CODEGEN_GPU_IMAGE_ACTIVATIONPATTERNS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace mlir::fsdp {

/// The ops of 1 + exp(min(x, limit)).
struct LogisticOps {
  math::ExpOp exp;
  Value exponent;                    ///< x
  SmallVector<Operation *> compares; ///< x < limit
};

/// Collects the uses of `tanh` as 1 + tanh and 1 - tanh². Returns false if there are others.
bool findTanhUses(math::TanhOp tanh, SmallVectorImpl<Operation *> &sums,
                  SmallVectorImpl<Operation *> &slopes);
/// Returns the ops of 1 + exp if it only divides, and the exponential is otherwise a factor of its
/// quotients.
std::optional<LogisticOps> findLogistic(arith::AddFOp sum);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_IMAGE_ACTIVATIONPATTERNS_H
