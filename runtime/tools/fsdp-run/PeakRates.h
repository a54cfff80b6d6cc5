//===- PeakRates.h - Peak rates of the machine ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures peak rates of the machine before training, with as many threads as the run has.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PEAKRATES_H
#define FSDP_RUN_PEAKRATES_H

#include <cstdint>

namespace fsdprt {

/// Peak rates of one rank, per nanosecond.
struct PeakRates {
  double bytes = 0;            ///< bytes read or written in memory
  double multiplyAdds = 0;     ///< f32 multiply-adds
  double bf16MultiplyAdds = 0; ///< multiply-adds of bf16 values with sums in f32

  /// Returns the least time in nanoseconds for `movedBytes` bytes, and for `products` f32 and
  /// `bf16Products` bf16 multiply-adds.
  double floor(uint64_t movedBytes, uint64_t products, uint64_t bf16Products) const;
};

/// Measures the total rates of `threads` threads, and divides them by `share`, the number of ranks.
/// Takes several tenths of a second, and allocates 32 MiB of memory per thread.
PeakRates measurePeakRates(uint32_t threads, double share);

} // namespace fsdprt

#endif // FSDP_RUN_PEAKRATES_H
