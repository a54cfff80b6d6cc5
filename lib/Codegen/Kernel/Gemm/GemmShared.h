//===- GemmShared.h - Target-independent parts of contraction kernels --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares functions that do not depend on how a target tiles a contraction. The functions check
// whether a kernel is supported, choose the rows and columns, compute the digits of an index, and
// emit the elementwise ops after the contraction.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMSHARED_H
#define FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMSHARED_H

#include "Codegen/Kernel/CodeBuilder.h"
#include "GemmProblem.h"

namespace mlir::fsdp::gemm {

/// Converts a kernel into its canonical form. Removes the float extensions of the factors, because
/// extensions are exact. Fails without a diagnostic if the kernel is unsupported or cannot be
/// computed tile by tile, or if it has a sum of a factor and `allowsFactorSum` is false.
FailureOr<Problem> analyseTileable(func::FuncOp kernel, bool allowsFactorSum = false);

/// Returns the element type of the values of an access after its maps were applied.
Type getValueType(const Access &access);

/// Returns the product of the sizes of `digits`.
int64_t product(const Problem &problem, ArrayRef<int> digits);

/// Chooses which side of the product becomes the columns (n), and exchanges lhs and rhs if
/// necessary. For each side, counts the tensors that are stored or loaded after the contraction and
/// in which this side is contiguous. A store counts twice. Prefers the side with the larger count.
/// If the counts are equal, prefers a side with more than one element.
void orient(Problem &problem);

/// The values of all digits at one element. All values have the same integer type, and a null value
/// stands for 0.
using Position = SmallVector<Value>;

/// Sets the values of `digits` in `position`. Computes these values from `flat`, an index in the
/// row-major index space that `digits` forms.
void setDigits(CodeBuilder &b, const Problem &problem, Position &position, Value flat,
               ArrayRef<int> digits);
/// Emits the sum of the products of `position` and `strides` over all digits, in 64 bits.
Value emitOffset(CodeBuilder &b, ArrayRef<int64_t> strides, const Position &position);

/// Emits the elementwise ops after the contraction on vectors of `lanes` elements, or on scalars if
/// `lanes` is 0. Returns the emitted value of each tensor that is computed from the contraction.
/// `sums` contains the sums of the contraction in the type of the accumulator. `load` returns the
/// value of the operand problem.loads[load], and `index` returns the value of loop `loop` of the op
/// problem.maps[map].
DenseMap<Value, Value> emitMaps(CodeBuilder &b, const Problem &problem, Value sums, int64_t lanes,
                                function_ref<Value(unsigned load)> load,
                                function_ref<Value(unsigned map, unsigned loop)> index);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMSHARED_H
