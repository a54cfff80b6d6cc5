//===- Attention.h - What functions of attention hold -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_ATTENTION_H
#define FSDP_IR_ATTENTION_H

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fsdp {

/// What functions of attention compute with: index, integers of at most 64 bits, f16, bf16, f32,
/// f64.
bool isAttentionScalar(Type type);

} // namespace mlir::fsdp

#endif // FSDP_IR_ATTENTION_H
