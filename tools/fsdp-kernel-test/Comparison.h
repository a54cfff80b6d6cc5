//===- Comparison.h - Compare a kernel with the oracle ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Errors are measured against the oracle in f64. They are bounded by the element type, by a
// tolerance, or by the errors of the oracle when it computes in the kernel's own types.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_KERNELTEST_COMPARISON_H
#define FSDP_TOOLS_KERNELTEST_COMPARISON_H

#include "Oracle.h"

namespace mlir::fsdp {

/// Bounds of the difference between results and the oracle.
struct Bounds {
  std::optional<double> tolerance;   ///< largest error; if unset, the bound of the type
  std::optional<double> errorFactor; ///< largest error as a multiple of the error in low precision
  double floor = 1; ///< errors are relative to the larger of the value and this fraction of the
                    ///< root mean square
};

/// Buffers of a run of a kernel, and the values that the buffers are compared with.
struct Trial {
  const Bounds &bounds;
  func::FuncOp kernel;
  Subject &subject;
  Oracle &oracle;
  Subject *rough; ///< oracle in the kernel's own types, or null
  size_t index;
  std::vector<Buffer> inputs, expected, got, low;
  double worst = 0;

  const std::string &name() const { return subject.info(index).name; }
};

/// Returns true if the kernel gives equal bits when its range is split into several calls.
bool givesSameBitsInParts(Trial &trial);

/// Returns true if `other` gives equal bits. `how` describes `other` in the error.
bool givesSameBits(Trial &trial, Subject &other, Split split, const std::string &how);

/// Returns true if every binding is within the bounds, and the kernel wrote only its results.
bool isAsExpected(Trial &trial);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_KERNELTEST_COMPARISON_H
