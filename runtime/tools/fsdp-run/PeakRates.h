//===- PeakRates.h - Peak rates of the machine ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures peak rates of the machine before training. The measurement uses as many threads as the
// run.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PEAKRATES_H
#define FSDP_RUN_PEAKRATES_H

#include <cstdint>

namespace fsdprt {

/// Peak rates of one rank. The unit is bytes or multiply-adds per nanosecond.
struct PeakRates {
  double bytes = 0;            ///< bytes that are read from memory or written to memory
  double multiplyAdds = 0;     ///< f32 multiply-adds
  double bf16MultiplyAdds = 0; ///< multiply-adds whose factors are bf16 and whose sums are f32

  /// Returns the least time in nanoseconds in which a rank, at the peak rates, moves `movedBytes`
  /// bytes and computes `products` multiply-adds in f32 and `bf16Products` multiply-adds in bf16.
  double floor(uint64_t movedBytes, uint64_t products, uint64_t bf16Products) const;
};

/// Measures the rates of `threads` threads together, and divides these rates by `share`, which is
/// the number of ranks that share the threads. A call takes several tenths of a second, and
/// allocates 32 MiB of memory for each thread.
PeakRates measurePeakRates(uint32_t threads, double share);

} // namespace fsdprt

#endif // FSDP_RUN_PEAKRATES_H
