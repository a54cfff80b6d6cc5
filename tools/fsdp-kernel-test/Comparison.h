//===- Comparison.h - A run of a kernel, against the oracle -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Errors are measured against the oracle in f64, and bounded by the element type, by a tolerance,
// or by the errors that the oracle has when it computes in the kernel's own types.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_KERNELTEST_COMPARISON_H
#define FSDP_TOOLS_KERNELTEST_COMPARISON_H

#include "Oracle.h"

namespace mlir::fsdp {

/// How far results may be from the oracle.
struct Bounds {
  std::optional<double> tolerance;   ///< instead of that of the element type
  std::optional<double> errorFactor; ///< of the error in low precision
  double floor = 1; ///< errors are relative to the value, or to this much of the root mean square
};

/// What a run of a kernel has left, and what that is compared with.
struct Trial {
  const Bounds &bounds;
  func::FuncOp kernel;
  Subject &subject;
  Oracle &oracle;
  Subject *rough; ///< the oracle in the kernel's own types, or null
  size_t index;
  std::vector<Buffer> inputs, expected, got, low;
  double worst = 0;

  const std::string &name() const { return subject.info(index).name; }
};

/// Whether its range in parts gives the same bits.
bool givesSameBitsInParts(Trial &trial);

/// Whether another subject gives the same bits; `how`: what is said of it otherwise.
bool givesSameBits(Trial &trial, Subject &other, Split split, const std::string &how);

/// Whether every binding is as the bounds allow, and nothing else was written.
bool isAsExpected(Trial &trial);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_KERNELTEST_COMPARISON_H
