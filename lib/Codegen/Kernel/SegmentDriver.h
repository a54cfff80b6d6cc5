//===- SegmentDriver.h - Builds a kernel segment by segment -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// As many steps as one segment can have are tried first, then fewer. What kinds of segments become
// is for the targets that derive from this.
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
  /// Builds all steps; false when some step is refused.
  bool buildSegments();
  /// Reserves bytes of the scratch that segments share; returns their offset.
  int64_t reserve(int64_t bytes);

  SmallVector<Step> steps;
  SmallVector<Step> done;           ///< of segments that are built
  DenseMap<Value, int64_t> offsets; ///< in the scratch, of values that later segments read
  int64_t scratchBytes = 0;

private:
  bool buildSegment(ArrayRef<Step> segment);
  bool isReadLater(const Step &step, ArrayRef<Step> segment) const;

  // Each returns false when the segment is refused.
  virtual bool buildScatter(const Step &step) = 0;
  virtual bool buildColumns(ArrayRef<Step> segment) = 0;
  virtual bool buildRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows) = 0;
  virtual bool buildMaps(ArrayRef<Step> segment) = 0;
  /// A reduction alone, whose segment was refused, the other way round.
  virtual bool buildTurned(ArrayRef<Step> segment) = 0;
  /// Erases what segments after the first `segments` have emitted.
  virtual void dropParts(size_t parts) = 0;
  virtual size_t numParts() const = 0;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_SEGMENTDRIVER_H
