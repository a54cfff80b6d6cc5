//===- Kernels.h - Attributes of kernels, sizes of bindings -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines the attributes of kernel functions (docs/explanation/pipeline.md §6), and the types and
// sizes of their bindings in memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_KERNELS_H
#define FSDP_IR_KERNELS_H

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fsdp {

/// Attributes of functions. `kernelAttr` marks a function as a kernel. `kindAttr` contains the kind
/// of the dispatch op from which the kernel was created.
inline constexpr StringLiteral kernelAttr = "fsdp.kernel";
inline constexpr StringLiteral kindAttr = "fsdp.kind";
/// Attributes of an argument to which the kernel writes a result. Their value is the index of this
/// result. The kernel may read the old contents of an inout argument, but not of an out argument.
inline constexpr StringLiteral outAttr = "fsdp.out";
inline constexpr StringLiteral inoutAttr = "fsdp.inout";

/// Returns the element type of the memref in which a binding stores elements of the type `element`.
/// For i1, this type is i8 (with the values 0 and 1). For index, it is i64. For all other types, it
/// is `element` itself.
Type getStorageType(Type element);
/// Returns whether `element` is an integer type that buffers can store, that is, a signless integer
/// type of 1, 8, 16, 32 or 64 bits.
bool isStoredInteger(Type element);
/// Returns whether buffers can store elements of this type: f64, f32, f16, bf16, or an integer that
/// isStoredInteger() accepts.
bool isStoredElement(Type element);
/// Returns whether kernels can compute with scalars of this type: f64, f32, f16, bf16, integers of
/// at most 64 bits and index.
bool isComputedElement(Type element);
/// Returns the size in bytes of a tensor or memref of static shape.
int64_t getStorageBytes(ShapedType type);

} // namespace mlir::fsdp

#endif // FSDP_IR_KERNELS_H
