//===- Peak.h - Peak rate and oneDNN for comparison -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_BENCHMARKS_CPU_GEMM_PEAK_H
#define FSDP_BENCHMARKS_CPU_GEMM_PEAK_H

#include <cstdint>
#include <string>
#include <vector>

/// The instructions whose rate is measured: fused multiply-adds in f32, vdpbf16ps, or tdpbf16ps.
enum class PeakKind { F32, Dots, Tiles };

/// Returns the GFLOP/s that this thread reaches with instructions on independent registers.
double measurePeak(PeakKind kind);

/// Computes a product `runs` times with oneDNN. Returns the seconds of each run, or an empty vector
/// if oneDNN is not available. If `cpuTime` is set, the seconds are CPU time of the calling thread.
std::vector<double> timeLibrary(bool bf16, bool lhsTransposed, bool rhsTransposed, int64_t m,
                                int64_t n, int64_t k, void *a, void *b, float *c, int threads,
                                int runs, bool cpuTime);
std::string describeLibrary();

#endif // FSDP_BENCHMARKS_CPU_GEMM_PEAK_H
