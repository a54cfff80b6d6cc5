//===- Segments.h - Steps that one phase computes together ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_SEGMENTS_H
#define FSDP_LIB_CODEGEN_KERNEL_SEGMENTS_H

#include "KernelSteps.h"

namespace mlir::fsdp {

/// Erases `function` and the globals whose names begin with its name and a dot. Does nothing
/// if `function` is null.
void eraseWithGlobals(func::FuncOp &function);

/// Rewrites named linalg ops except fills and contractions as linalg.generic.
void generaliseNamedOps(func::FuncOp kernel);
/// Returns true if the StepKinds of two consecutive steps allow both steps in one segment.
bool mayShareSegment(const Step &before, const Step &step);
/// Returns the shape of a step within one row of a segment whose rows have the shape `rows`.
/// Returns nothing if the shape of the step does not begin with `rows`.
std::optional<SmallVector<int64_t>> getColumnShape(const Step &step, ArrayRef<int64_t> rows);
/// Groups consecutive steps that one pass over the columns of a row can compute. `all` contains all
/// steps of the kernel.
SmallVector<ArrayRef<Step>> formGroups(ArrayRef<Step> segment, ArrayRef<int64_t> rows,
                                       ArrayRef<Step> all);
/// Returns the indices of a step's value: `row`, then, if the step is a map, `column`, then zeros.
SmallVector<AffineExpr> valueIndices(const Step &step, ArrayRef<AffineExpr> row,
                                     ArrayRef<AffineExpr> column, AffineExpr zero);
/// Returns the loop position of a reduction at row `row` and column `column`.
SmallVector<AffineExpr> loopIndices(const Step &step, ArrayRef<AffineExpr> row,
                                    ArrayRef<AffineExpr> column, AffineExpr zero);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_SEGMENTS_H
