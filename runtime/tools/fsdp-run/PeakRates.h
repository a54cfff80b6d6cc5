//===- PeakRates.h - What this machine can do at most -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measured, not looked up: what counts is this machine, now, with as many threads as the run has.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PEAKRATES_H
#define FSDP_RUN_PEAKRATES_H

#include <cstdint>

namespace fsdprt {

/// Per nanosecond.
struct PeakRates {
  double bytes = 0;            ///< read or written, of memory
  double multiplyAdds = 0;     ///< in f32
  double bf16MultiplyAdds = 0; ///< of bf16 into f32

  /// The least time that anything takes which moves and computes this much, in nanoseconds.
  double floor(uint64_t movedBytes, uint64_t products, uint64_t bf16Products) const;
};

/// With `threads` at once, divided by `share`. Takes some tenths of a second, and 32 MiB for a
/// thread.
PeakRates measurePeakRates(uint32_t threads, double share);

} // namespace fsdprt

#endif // FSDP_RUN_PEAKRATES_H
