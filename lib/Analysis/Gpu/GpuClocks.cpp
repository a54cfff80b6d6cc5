//===- GpuClocks.cpp - Clocks of a multiprocessor's units -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Gpu/GpuClocks.h"
#include <algorithm>
#include <cassert>

using namespace mlir::fsdp;

double GpuClocks::longest() const { return std::max({tensor, issue, special, shared}); }

GpuClocks &GpuClocks::operator+=(const GpuClocks &other) {
  tensor += other.tensor;
  issue += other.issue;
  special += other.special;
  shared += other.shared;
  return *this;
}

// According to NVIDIA's white papers, a multiprocessor executes 1024 (A100) or 2048 (H100)
// multiply-adds of 16-bit floats per clock, and half as many of tf32. The instruction mma.sync on
// sm_90 reaches 62.9 % of this peak (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
// Architecture", arXiv 2402.13499).
const GpuRates &GpuRates::get(llvm::StringRef chip) {
  static const GpuRates sm80{0, 1024, 512}, sm90{2048, 1288, 644};
  return chip == "sm_80" ? sm80 : sm90;
}
