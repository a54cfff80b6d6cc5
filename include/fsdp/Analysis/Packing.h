//===- Packing.h - Offsets for buffers with lifetimes -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_PACKING_H
#define FSDP_ANALYSIS_PACKING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir::fsdp {

/// Alignment in bytes of every buffer of an arena. Buffer sizes are rounded up to this alignment.
inline constexpr int64_t bufferAlignment = 64;
/// Alignment in bytes of buffers that have at least `largeBuffer` bytes.
inline constexpr int64_t pageAlignment = 4096, largeBuffer = 1 << 20;

inline int64_t getBufferAlignment(int64_t bytes) {
  return bytes >= largeBuffer ? pageAlignment : bufferAlignment;
}

/// A buffer of `bytes` bytes that is alive from the moment `first` to the moment `last`, including
/// these two moments.
struct Interval {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;

  bool meets(const Interval &other) const { return first <= other.last && other.first <= last; }
};

struct Packing {
  /// Offset in bytes of each interval, in the order of the intervals.
  llvm::SmallVector<int64_t> offsets;
  /// `bytes` is the size of the packing. `lowerBound` is the peak of the live bytes, and no packing
  /// is smaller.
  int64_t bytes = 0, lowerBound = 0;
  /// Name of the order in which the intervals were placed to obtain this packing. Reports contain
  /// this name.
  llvm::StringRef method;
};

/// Returns the peak of the live bytes, with the size of each buffer rounded up to the alignment. If
/// `moment` is not null, sets `*moment` to the first moment with this peak.
int64_t getLiveBytes(llvm::ArrayRef<Interval> intervals, int64_t *moment = nullptr);

/// Assigns an offset of at least 0 to each interval so that no two intervals that are alive at the
/// same time overlap in memory. Returns the smallest packing that the search found. If `enough` is
/// not 0, the search stops as soon as it has found a packing of at most `enough` bytes. If the
/// lower bound exceeds `enough`, no such packing exists, and the search skips step 4 of
/// Packing.cpp. The result depends only on the order of the moments, not on the distances between
/// them.
Packing packIntervals(llvm::ArrayRef<Interval> intervals, int64_t enough = 0);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_PACKING_H
