//===- Kernels.h - Marks of kernels and their bindings ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The attributes of kernel functions (docs/explanation/pipeline.md §6) and how their bindings
// lie in memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_KERNELS_H
#define FSDP_IR_KERNELS_H

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fsdp {

/// On a kernel function: that it is one, and the kind of its dispatch.
inline constexpr StringLiteral kernelAttr = "fsdp.kernel";
inline constexpr StringLiteral kindAttr = "fsdp.kind";
/// On its arguments: the result that is written to it, or over it.
inline constexpr StringLiteral outAttr = "fsdp.out";
inline constexpr StringLiteral inoutAttr = "fsdp.inout";

/// The storage type of an element: what a memref of a binding holds. i1 takes a
/// byte (0 or 1), index 8 bytes; all others stand for themselves.
Type getStorageType(Type element);
/// An integer that memory holds in whole bytes: of 1, 8, 16, 32 or 64 bits, without a sign of its
/// own.
bool isStoredInteger(Type element);
/// Bytes of a tensor or memref of static shape in memory.
int64_t getStorageBytes(ShapedType type);

} // namespace mlir::fsdp

#endif // FSDP_IR_KERNELS_H
