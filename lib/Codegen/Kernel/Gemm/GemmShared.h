//===- GemmShared.h - Contraction kernels on any target ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What does not depend on how a target cuts a contraction: which kernels are taken, which
// side is the columns, digits of an index, the elementwise ops after the sums.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMSHARED_H
#define FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMSHARED_H

#include "Codegen/Kernel/CodeBuilder.h"
#include "GemmProblem.h"

namespace mlir::fsdp::gemm {

/// Reads a kernel that can be computed tile by tile, without extensions of its factors, which are
/// exact; fails, without a diagnostic, when it is none.
FailureOr<Problem> analyseTileable(func::FuncOp kernel);

/// The element type of an access after its maps.
Type getValueType(const Access &access);

/// Elements of digits together.
int64_t product(const Problem &problem, ArrayRef<int> digits);

/// Makes columns the side which is contiguous in what is written (and read after the contraction),
/// and not the empty one.
void orient(Problem &problem);

/// Values of the digits at one point, of one integer type; null is 0.
using Position = SmallVector<Value>;

/// Sets the digits of an index that counts through all of `digits`.
void setDigits(CodeBuilder &b, const Problem &problem, Position &position, Value flat,
               ArrayRef<int> digits);
/// Σ position · strides, in 64 bits.
Value emitOffset(CodeBuilder &b, ArrayRef<int64_t> strides, const Position &position);

/// Runs the elementwise ops after the contraction on vectors of `lanes` (0: scalars); what each
/// computed tensor holds. `sums` are in the accumulator's type, `load` gives an element of
/// problem.loads, `index` an index of a map's loop.
DenseMap<Value, Value> emitMaps(CodeBuilder &b, const Problem &problem, Value sums, int64_t lanes,
                                function_ref<Value(unsigned load)> load,
                                function_ref<Value(unsigned map, unsigned loop)> index);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMSHARED_H
