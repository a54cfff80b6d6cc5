//===- Attention.h - Scalar types in attention functions --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_ATTENTION_H
#define FSDP_IR_ATTENTION_H

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fsdp {

/// Returns whether values in score_mod, mask_mod, weight_mod and score_grad may have the type
/// `type`: index, an integer of at most 64 bits, f16, bf16, f32 or f64.
bool isAttentionScalar(Type type);

} // namespace mlir::fsdp

#endif // FSDP_IR_ATTENTION_H
