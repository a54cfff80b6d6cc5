//===- GemmShared.h - Target-independent parts of contraction kernels --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares functions that do not depend on how a target tiles a contraction: the check for
// supported kernels, the choice of rows and columns, digits of an index, and the elementwise ops
// after the contraction.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMSHARED_H
#define FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMSHARED_H

#include "Codegen/Kernel/CodeBuilder.h"
#include "GemmProblem.h"

namespace mlir::fsdp::gemm {

/// Analyses a kernel that can be computed tile by tile. Removes extensions of the factors, because
/// extensions are exact. Fails without a diagnostic if the kernel is unsupported.
FailureOr<Problem> analyseTileable(func::FuncOp kernel);

/// Returns the element type of an access after its maps.
Type getValueType(const Access &access);

/// Returns the product of the sizes of `digits`.
int64_t product(const Problem &problem, ArrayRef<int> digits);

/// Chooses which side of the product becomes the columns (n): the side that is contiguous in the
/// tensors stored and loaded after the contraction. If both sides or neither are contiguous,
/// chooses a side with more than one element.
void orient(Problem &problem);

/// Values of all digits at one element, of one integer type; null means 0.
using Position = SmallVector<Value>;

/// Sets `digits` in `position` from `flat`, an index in the row-major index space of `digits`.
void setDigits(CodeBuilder &b, const Problem &problem, Position &position, Value flat,
               ArrayRef<int> digits);
/// Emits Σ position · strides, in 64 bits.
Value emitOffset(CodeBuilder &b, ArrayRef<int64_t> strides, const Position &position);

/// Emits the elementwise ops after the contraction on vectors of `lanes` elements, or on scalars if
/// `lanes` is 0. Returns the value of each computed tensor. `sums` has the accumulator's type.
/// `load` returns the element of an operand in problem.loads, and `index` the loop index of an op
/// in problem.maps.
DenseMap<Value, Value> emitMaps(CodeBuilder &b, const Problem &problem, Value sums, int64_t lanes,
                                function_ref<Value(unsigned load)> load,
                                function_ref<Value(unsigned map, unsigned loop)> index);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMSHARED_H
