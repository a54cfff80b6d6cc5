//===- SegmentDriver.h - Builds a kernel segment by segment -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Divides the steps of a kernel into segments. A segment consists of consecutive steps for which
// code is emitted together. Tries the longest possible segment first. If this segment is refused,
// tries shorter segments. Subclasses emit the code of a segment for their target.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_SEGMENTDRIVER_H
#define FSDP_LIB_CODEGEN_KERNEL_SEGMENTDRIVER_H

#include "Segments.h"

namespace mlir::fsdp {

class SegmentDriver {
public:
  virtual ~SegmentDriver() = default;

protected:
  explicit SegmentDriver(SmallVector<Step> steps) : steps(std::move(steps)) {}
  /// Builds all steps. Returns false if a step is refused.
  bool buildSegments();
  /// Reserves `bytes` bytes in the scratch memory that the segments share. Returns the offset of
  /// these bytes.
  int64_t reserve(int64_t bytes);

  SmallVector<Step> steps;
  SmallVector<Step> done;           ///< steps of the segments built so far
  DenseMap<Value, int64_t> offsets; ///< offset in scratch memory of each value that is kept there
  int64_t scratchBytes = 0;

private:
  bool buildSegment(ArrayRef<Step> segment);
  bool isReadLater(const Step &step, ArrayRef<Step> segment) const;

  // Each of the following functions emits one segment, or returns false if it refuses the segment.
  virtual bool buildScatter(const Step &step) = 0;
  virtual bool buildColumns(ArrayRef<Step> segment) = 0;
  virtual bool buildRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows) = 0;
  virtual bool buildMaps(ArrayRef<Step> segment) = 0;
  /// Emits a segment of one reduction in another form: a row reduction by the code for column
  /// reductions, or a column reduction by the code for row reductions.
  virtual bool buildTurned(ArrayRef<Step> segment) = 0;
  /// Erases all phases or launches except the first `parts`.
  virtual void dropParts(size_t parts) = 0;
  virtual size_t numParts() const = 0;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_SEGMENTDRIVER_H
