//===- GpuClocks.cpp - Model of a multiprocessor ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Gpu/GpuClocks.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::fsdp;

// Multiply-adds: white papers of A100 and H100; mma.sync on sm_90 reaches 62.9 % of the peak (Luo
// et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture", arXiv 2402.13499).
// The L2 cache of an A100 reads 5120 bytes per clock (white paper); H100 is taken to be equal.
// Memory: 1555 GB/s at 1.41 GHz for A100, 3352 GB/s at 1.755 GHz for H100 (white papers).
const GpuRates &GpuRates::get(llvm::StringRef chip) {
  static const GpuRates sm80{0, 1024, 512, 5120.0 / 108, 1103.0 / 108},
      sm90{2048, 1288, 644, 5120.0 / 132, 1910.0 / 132};
  return chip == "sm_80" ? sm80 : sm90;
}

GpuCost mlir::fsdp::getLaunchCost(const BlockScheduler &schedule, const GpuClocks &all,
                                  int64_t multiprocessors, double bytes) {
  return {schedule.end(), all * (1 / static_cast<double>(multiprocessors)), bytes,
          schedule.efficiency()};
}

GpuCost mlir::fsdp::getUniformCost(int64_t blocks, int64_t perSm, const GpuClocks &block,
                                   double clocks, int64_t multiprocessors, double bytes) {
  int64_t slots = multiprocessors * perSm, rounds = llvm::divideCeil(blocks, slots);
  auto number = static_cast<double>(blocks);
  return {static_cast<double>(rounds) * clocks,
          block * (number / static_cast<double>(multiprocessors)), bytes,
          number / static_cast<double>(rounds * slots)};
}

GpuCost mlir::fsdp::getStreamCost(int64_t blocks, int64_t threads, const GpuClocks &thread,
                                  const GpuRates &rates, int64_t multiprocessors, double bytes) {
  auto perBlock = static_cast<double>(threads);
  GpuClocks block{0, thread.issue * perBlock / rates.lanes,
                  thread.special * perBlock / rates.special,
                  thread.shared * perBlock / rates.shared, thread.cache * perBlock / rates.cache};
  auto most = static_cast<double>(llvm::divideCeil(blocks, multiprocessors)),
       number = static_cast<double>(blocks), slots = static_cast<double>(multiprocessors);
  return {GpuLatencies::global + most * block.longest(), block * (number / slots), bytes,
          number / (most * slots)};
}
