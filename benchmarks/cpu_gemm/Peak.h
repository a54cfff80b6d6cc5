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

/// Returns the GFLOP/s that this thread reaches on independent vector registers, with fused
/// multiply-adds or, if `bf16` is set, with vdpbf16ps.
double measurePeak(bool bf16);

/// Returns the seconds of each of `runs` products by oneDNN, or an empty vector without oneDNN. If
/// `cpuTime` is set, the seconds are CPU time of the calling thread.
std::vector<double> timeLibrary(bool bf16, bool lhsTransposed, bool rhsTransposed, int64_t m,
                                int64_t n, int64_t k, void *a, void *b, float *c, int threads,
                                int runs, bool cpuTime);
std::string describeLibrary();

#endif // FSDP_BENCHMARKS_CPU_GEMM_PEAK_H
