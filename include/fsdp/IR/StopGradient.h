//===- StopGradient.h - Ops that Differentiate removes ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares fsdp.stop_gradient and fsdp.reduce_cotangent, and the attributes of the markers that
// Import replaces by fsdp.stop_gradient.
// Only Import, Shard and Differentiate need these declarations, so FSDP.h does not include this
// header.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_STOPGRADIENT_H
#define FSDP_IR_STOPGRADIENT_H

#include "fsdp/IR/FSDP.h"

#define GET_OP_CLASSES
#include "fsdp/IR/FSDPGradientOps.h.inc"

namespace mlir::fsdp {

/// Attribute of a marker. A marker is a function without a body, or a `linalg.generic` that yields
/// its input.
constexpr llvm::StringLiteral stopGradientAttr = "fsdp.stop_gradient";
/// Attribute of the module or of a function. It contains the number of markers that the exporter
/// wrote into the module or the function.
constexpr llvm::StringLiteral numStopGradientsAttr = "fsdp.num_stop_gradients";

/// Returns `value`, or the input of the chain of fsdp.stop_gradient ops that computes `value`.
Value skipStopGradients(Value value);

} // namespace mlir::fsdp

#endif // FSDP_IR_STOPGRADIENT_H
