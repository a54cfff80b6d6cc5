//===- Segments.h - Steps that one phase computes together ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_SEGMENTS_H
#define FSDP_LIB_CODEGEN_KERNEL_SEGMENTS_H

#include "KernelSteps.h"

namespace mlir::fsdp {

/// Erases a function and the globals whose names begin with its name and a point; does nothing if
/// the function is null.
void eraseWithGlobals(func::FuncOp &function);

/// Makes generics of named ops but fills and contractions.
void generaliseNamedOps(func::FuncOp kernel);
/// Whether a step may share a segment with the one before it, by kind alone.
bool mayShareSegment(const Step &before, const Step &step);
/// The dimensions of a step inside a row of shape `rows`; none when it has no such rows.
std::optional<SmallVector<int64_t>> getColumnShape(const Step &step, ArrayRef<int64_t> rows);
/// Groups of steps that one pass over the columns of such a row computes, in order; `all` are those
/// of the kernel.
SmallVector<ArrayRef<Step>> formGroups(ArrayRef<Step> segment, ArrayRef<int64_t> rows,
                                       ArrayRef<Step> all);
/// Indices of a step's value: of the row, then of the column; the rest is one element.
SmallVector<AffineExpr> valueIndices(const Step &step, ArrayRef<AffineExpr> row,
                                     ArrayRef<AffineExpr> column, AffineExpr zero);
/// The loop position of a reduction at a row and a column.
SmallVector<AffineExpr> loopIndices(const Step &step, ArrayRef<AffineExpr> row,
                                    ArrayRef<AffineExpr> column, AffineExpr zero);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_SEGMENTS_H
