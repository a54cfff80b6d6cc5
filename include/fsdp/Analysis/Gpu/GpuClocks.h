//===- GpuClocks.h - Clocks of a multiprocessor's units ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models the duration of the steps of a GPU kernel, for the choice of the order of its blocks. A
// step keeps each unit of its multiprocessor busy for some clocks, and takes at least as long as
// its busiest unit. No number is fitted to a measured kernel (docs/explanation/gpu-kernels.md).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_GPU_GPUCLOCKS_H
#define FSDP_ANALYSIS_GPU_GPUCLOCKS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir::fsdp {

/// Clocks for which the units of a multiprocessor are busy.
struct GpuClocks {
  double tensor = 0;  ///< tensor cores
  double issue = 0;   ///< schedulers, each of which issues an instruction of a warp per clock
  double special = 0; ///< units of exponentials and other special functions
  double shared = 0;  ///< shared memory

  double longest() const;
  GpuClocks &operator+=(const GpuClocks &other);
  friend GpuClocks operator*(const GpuClocks &clocks, double times) {
    return {clocks.tensor * times, clocks.issue * times, clocks.special * times,
            clocks.shared * times};
  }
};

/// Work of a multiprocessor per clock.
struct GpuRates {
  double warpgroupMacs; ///< multiply-adds of bf16 or f16 by wgmma; 0 if the chip has no wgmma
  double macs;          ///< multiply-adds of bf16 or f16 by mma.sync
  double tf32Macs;      ///< multiply-adds of tf32 by mma.sync
  double lanes = 128;   ///< lanes of issued instructions: 32 for each warp
  double special = 16;  ///< results of special functions
  double shared = 128;  ///< bytes from or to shared memory
  double global = 64;   ///< bytes from or to the L2 cache

  /// Returns the rates of a chip, such as "sm_90a".
  static const GpuRates &get(llvm::StringRef chip);
};

/// Latencies, in clocks, that no other work of a step or block hides.
struct GpuLatencies {
  static constexpr double barrier = 40;    ///< a barrier of all threads of a block
  static constexpr double global = 1000;   ///< a read of global memory that no other work hides
  static constexpr double addition = 1500; ///< an addition to global memory that others wait for
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_GPU_GPUCLOCKS_H
