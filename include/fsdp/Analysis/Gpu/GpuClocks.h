//===- GpuClocks.h - Clocks of a multiprocessor's units ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Estimates the duration of the steps of a GPU kernel. AttentionOrder.h chooses the order of the
// blocks of a kernel by these estimates. A step keeps each functional unit of a multiprocessor busy
// for some number of clocks. The step takes at least the largest of these numbers. No constant is
// fitted to measured kernels (docs/explanation/gpu-kernels.md).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_GPU_GPUCLOCKS_H
#define FSDP_ANALYSIS_GPU_GPUCLOCKS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir::fsdp {

/// Number of clocks for which each functional unit of a multiprocessor is busy.
struct GpuClocks {
  double tensor = 0;  ///< tensor cores
  double issue = 0;   ///< schedulers, each of which issues one instruction of one warp per clock
  double special = 0; ///< units of exponentials and other special functions
  double shared = 0;  ///< shared memory

  double longest() const;
  GpuClocks &operator+=(const GpuClocks &other);
  friend GpuClocks operator*(const GpuClocks &clocks, double times) {
    return {clocks.tensor * times, clocks.issue * times, clocks.special * times,
            clocks.shared * times};
  }
};

/// Work that a multiprocessor can do per clock.
struct GpuRates {
  double warpgroupMacs; ///< multiply-adds of bf16 or f16 by wgmma; 0 if the chip has no wgmma
  double macs;          ///< multiply-adds of bf16 or f16 by mma.sync
  double tf32Macs;      ///< multiply-adds of tf32 by mma.sync
  double lanes = 128;   ///< threads for which an instruction is issued, 32 for each warp
  double special = 16;  ///< number of results of special functions
  double shared = 128;  ///< bytes from or to shared memory
  double global = 64;   ///< bytes from or to the L2 cache

  /// Returns the rates of a chip, such as "sm_90a".
  static const GpuRates &get(llvm::StringRef chip);
};

/// Latencies in clocks. If no other work runs on the multiprocessor during a latency, the estimated
/// duration of a step includes this latency.
struct GpuLatencies {
  static constexpr double barrier = 40;  ///< a barrier of all threads of a block
  static constexpr double global = 1000; ///< a read of global memory
  /// An addition in global memory for whose end a block waits.
  static constexpr double addition = 1500;
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_GPU_GPUCLOCKS_H
