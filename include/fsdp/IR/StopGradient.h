//===- StopGradient.h - The op fsdp.stop_gradient ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The op fsdp.stop_gradient, and the attributes of the markers that Import turns into it. Only
// Import, Shard and Differentiate see them, so FSDP.h does not include this header.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_STOPGRADIENT_H
#define FSDP_IR_STOPGRADIENT_H

#include "fsdp/IR/FSDP.h"

#define GET_OP_CLASSES
#include "fsdp/IR/FSDPGradientOps.h.inc"

namespace mlir::fsdp {

/// Marks a function without a body, or a `linalg.generic` that yields its input.
constexpr llvm::StringLiteral stopGradientAttr = "fsdp.stop_gradient";
/// The number of markers that the exporter wrote, on the module or on a function.
constexpr llvm::StringLiteral numStopGradientsAttr = "fsdp.num_stop_gradients";

/// Returns the first value before `value` that is not the result of an fsdp.stop_gradient.
Value skipStopGradients(Value value);

} // namespace mlir::fsdp

#endif // FSDP_IR_STOPGRADIENT_H
