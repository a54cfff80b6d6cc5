//===- GpuClocks.h - Model of a multiprocessor ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Estimates the duration of the steps of a GPU kernel. The plans of kernels are chosen by these
// estimates, and the simulator predicts the time of a step from them. A step keeps each functional
// unit of a multiprocessor busy for some number of clocks. The step takes at least the largest of
// these numbers. No constant is fitted to measured kernels (docs/explanation/simulator.md).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_GPU_GPUCLOCKS_H
#define FSDP_ANALYSIS_GPU_GPUCLOCKS_H

#include "fsdp/Analysis/Gpu/BlockOrder.h"
#include "fsdp/IR/GpuCode.h"

namespace mlir::fsdp {

/// Work that a multiprocessor can do per clock.
struct GpuRates {
  double warpgroupMacs; ///< multiply-adds of bf16 or f16 by wgmma; 0 if the chip has no wgmma
  double macs;          ///< multiply-adds of bf16 or f16 by mma.sync
  double tf32Macs;      ///< multiply-adds of tf32 by mma.sync
  double cache;         ///< bytes from and to the L2 cache, if all multiprocessors use it
  double memory;        ///< bytes from and to global memory, if all multiprocessors use it
  double lanes = 128;   ///< number of threads for which an instruction can be issued; a warp has 32
  double compare = 16;  ///< threads with comparisons or conversions, for one of four schedulers
  double special = 16;  ///< number of results of special functions
  double shared = 128;  ///< bytes from or to shared memory

  /// Returns the rates of a chip, such as "sm_90a".
  static const GpuRates &get(llvm::StringRef chip);
};

/// Latencies in clocks. The estimated duration of a step includes a latency if no other work runs
/// on the multiprocessor during the latency.
struct GpuLatencies {
  static constexpr double barrier = 40;  ///< latency of a barrier of all threads of a block
  static constexpr double cache = 270;   ///< latency of a read of the L2 cache
  static constexpr double global = 1000; ///< latency of a read of global memory
  /// Latency of an addition in global memory. A block waits for the end of the addition.
  static constexpr double addition = 1500;
};

/// Threads and blocks that are resident on a multiprocessor at most.
inline constexpr int64_t mostResidentThreads = 2048, mostResidentBlocks = 32;

/// Returns the cost of a launch whose blocks have been scheduled. `all` are the clocks of all
/// blocks together.
GpuCost getLaunchCost(const BlockScheduler &schedule, const GpuClocks &all, int64_t multiprocessors,
                      double bytes);

/// Returns the cost of `blocks` equal blocks that run as `perSm` at a time on a multiprocessor.
/// `block` is one block's work, `clocks` its duration.
GpuCost getUniformCost(int64_t blocks, int64_t perSm, const GpuClocks &block, double clocks,
                       int64_t multiprocessors, double bytes);

/// Returns the cost of a launch whose threads overlap, and that exposes only the latency of its
/// first and last accesses. `thread` is the work of a thread, in instructions and results of a lane
/// and in bytes.
GpuCost getStreamCost(int64_t blocks, int64_t threads, const GpuClocks &thread,
                      const GpuRates &rates, int64_t multiprocessors, double bytes);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_GPU_GPUCLOCKS_H
