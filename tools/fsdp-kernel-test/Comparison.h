//===- Comparison.h - Compare a kernel with the oracle ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The error of a result is its difference from the oracle in f64. The allowed error depends on the
// element type, is a given tolerance, or is a multiple of the oracle's error in the kernel's own
// types.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_KERNELTEST_COMPARISON_H
#define FSDP_TOOLS_KERNELTEST_COMPARISON_H

#include "Oracle.h"

namespace mlir::fsdp {

/// Bounds of the errors of results.
struct Bounds {
  std::optional<double> tolerance;   ///< largest allowed error; unset: that of the type
  std::optional<double> errorFactor; ///< bound / error in the kernel's types
  double floor = 1; ///< errors are relative to the larger of the value and this fraction of the
                    ///< root mean square
};

/// The buffers of a kernel's run, and the values with which they are compared.
struct Trial {
  const Bounds &bounds;
  func::FuncOp kernel;
  Subject &subject;
  Oracle &oracle;
  Subject *rough; ///< the oracle's functions in the kernel's own types, or null
  size_t index;
  std::vector<Buffer> inputs, expected, got, low;
  double worst = 0;

  const std::string &name() const { return subject.info(index).name; }
};

/// Returns true if the kernel computes equal bits when its range is split into several calls.
bool givesSameBitsInParts(Trial &trial);

/// Returns true if `other` computes the same bits. `how` describes `other` in an error.
bool givesSameBits(Trial &trial, Subject &other, Split split, const std::string &how);

/// Returns true if all results are within the bounds, and the kernel changed nothing else.
bool isAsExpected(Trial &trial);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_KERNELTEST_COMPARISON_H
