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

/// Every buffer of an arena begins at a multiple of this, and takes one.
inline constexpr int64_t bufferAlignment = 64;
/// Buffers of at least `largeBuffer` bytes begin on a page.
inline constexpr int64_t pageAlignment = 4096, largeBuffer = 1 << 20;

/// The alignment of a buffer of `bytes`.
inline int64_t getBufferAlignment(int64_t bytes) {
  return bytes >= largeBuffer ? pageAlignment : bufferAlignment;
}

/// A buffer that lives from moment `first` to moment `last`, both included.
struct Interval {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;

  bool meets(const Interval &other) const { return first <= other.last && other.first <= last; }
};

struct Packing {
  /// For each interval, in order.
  llvm::SmallVector<int64_t> offsets;
  /// What the packing takes, and the most that is alive at one moment.
  int64_t bytes = 0, lowerBound = 0;
  /// The order that won, for reports.
  llvm::StringRef method;
};

/// The most bytes (each buffer rounded up to the alignment) alive at one moment.
/// `moment`, when given, is set to the first moment at which they are.
int64_t getLiveBytes(llvm::ArrayRef<Interval> intervals, int64_t *moment = nullptr);

/// Places all intervals from offset 0 on, so that no two that meet overlap, in as few bytes as are
/// found. Given `enough`, any packing of at most so many will do, and no time is lost where there
/// cannot be one. What decides is the order in which intervals begin and end, not how many moments
/// are between.
Packing packIntervals(llvm::ArrayRef<Interval> intervals, int64_t enough = 0);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_PACKING_H
