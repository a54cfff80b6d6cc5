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

/// Rewrites the named linalg ops of a kernel as linalg.generic ops, except fills and contractions.
void generaliseNamedOps(func::FuncOp kernel);
/// Returns true if two consecutive steps may be in the same segment, judging by the kinds of the
/// steps.
bool mayShareSegment(const Step &before, const Step &step);
/// `rows` is the shape of the row dimensions of a segment. Returns the shape of the part of a step
/// that belongs to one row: the remaining dimensions of a map, or the reduced loops of a reduction.
/// Returns nothing if the shape of the step does not begin with `rows`, or if a reduction has
/// several results per row.
std::optional<SmallVector<int64_t>> getColumnShape(const Step &step, ArrayRef<int64_t> rows);
/// Divides a segment into groups of consecutive steps. One pass over the columns of a row can
/// compute all steps of a group, because they have the same columns and do not read one another.
/// `all` contains all steps of the kernel.
SmallVector<ArrayRef<Step>> formGroups(ArrayRef<Step> segment, ArrayRef<int64_t> rows,
                                       ArrayRef<Step> all);
/// Returns the indices of an element of a step's value: `row`, followed by `column` unless the step
/// is a reduction, and then zeros for the remaining dimensions.
SmallVector<AffineExpr> valueIndices(const Step &step, ArrayRef<AffineExpr> row,
                                     ArrayRef<AffineExpr> column, AffineExpr zero);
/// Returns the indices of the loops of a reduction at the row `row` and the column `column`. The
/// reduced loops have the indices `column`.
SmallVector<AffineExpr> loopIndices(const Step &step, ArrayRef<AffineExpr> row,
                                    ArrayRef<AffineExpr> column, AffineExpr zero);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_SEGMENTS_H
