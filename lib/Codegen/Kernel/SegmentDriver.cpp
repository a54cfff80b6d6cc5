//===- SegmentDriver.cpp - Builds a kernel segment by segment ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See SegmentDriver.h. buildSegments() takes time quadratic in the number of steps if every segment
// of two or more steps is refused.
//
//===----------------------------------------------------------------------===//

#include "SegmentDriver.h"
#include "fsdp/IR/Kernels.h"

using namespace mlir;
using namespace mlir::fsdp;

int64_t SegmentDriver::reserve(int64_t bytes) {
  int64_t offset = scratchBytes;
  scratchBytes += llvm::alignTo(bytes, 64);
  return offset;
}

bool SegmentDriver::isReadLater(const Step &step, ArrayRef<Step> segment) const {
  return llvm::any_of(ArrayRef(segment.end(), steps.end()),
                      [&](const Step &later) { return readsValue(later, step.value, steps); });
}

bool SegmentDriver::buildSegment(ArrayRef<Step> segment) {
  for (const Step &step : segment)
    if (step.destinations.empty() && !offsets.count(step.value) &&
        (isReadLater(step, segment) || step.kind == StepKind::ColumnReduction ||
         step.kind == StepKind::Scatter))
      offsets[step.value] = reserve(getStorageBytes(step.getType()));
  const Step &first = segment.front();
  auto reduction = llvm::find_if(segment, [](const Step &step) { return step.isReduction(); });
  bool built = false;
  if (first.kind == StepKind::Scatter) {
    built = segment.size() == 1 && buildScatter(first);
  } else if (first.kind == StepKind::ColumnReduction) {
    built = buildColumns(segment);
    // The shape of the row reduction determines the rows of the segment.
  } else if (reduction != segment.end()) {
    SmallVector<int64_t> rows(reduction->getType().getShape());
    while (!rows.empty() && rows.back() == 1)
      rows.pop_back();
    built = buildRows(segment, rows);
  } else {
    built = buildMaps(segment);
  }
  return built || (segment.size() == 1 && first.isReduction() && buildTurned(segment));
}

bool SegmentDriver::buildSegments() {
  for (size_t i = 0; i < steps.size();) {
    size_t end = i + 1, parts = numParts();
    while (end < steps.size() && mayShareSegment(steps[end - 1], steps[end]))
      ++end;
    int64_t bytesBefore = scratchBytes;
    DenseMap<Value, int64_t> offsetsBefore = offsets;
    while (!buildSegment(ArrayRef(steps).slice(i, end - i))) {
      scratchBytes = bytesBefore;
      offsets = offsetsBefore;
      dropParts(parts);
      if (--end == i)
        return false;
    }
    done.append(steps.begin() + i, steps.begin() + end);
    i = end;
  }
  return true;
}
