//===- Comparison.h - Compare a kernel with the oracle ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The error of a result is its difference from the result of the oracle in f64. The allowed error
// is one of the following: the bound of the element type, a given tolerance, or a multiple of the
// error that the oracle has if it computes in the kernel's own types.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_KERNELTEST_COMPARISON_H
#define FSDP_TOOLS_KERNELTEST_COMPARISON_H

#include "Oracle.h"

namespace mlir::fsdp {

struct Bounds {
  /// Largest allowed error. If `tolerance` is unset, the bound of the element type applies.
  std::optional<double> tolerance;
  /// If set, the allowed error is this number times the error of the oracle in the kernel's types.
  std::optional<double> errorFactor;
  /// An error is relative to the larger of two numbers: the expected value, and this fraction of
  /// the root mean square of the tensor.
  double floor = 1;
};

/// The buffers of one run of a kernel, and the values with which they are compared.
struct Trial {
  const Bounds &bounds;
  func::FuncOp kernel;
  Subject &subject;
  Oracle &oracle;
  Subject *rough; ///< oracle functions in the kernel's own types, or null
  size_t index;
  std::vector<Buffer> inputs, expected, got, low;
  double worst = 0;

  const std::string &name() const { return subject.info(index).name; }
};

/// Returns true if the kernel computes the same bits when its range is split into several calls.
bool givesSameBitsInParts(Trial &trial);

/// Returns true if `other` computes the same bits. Error messages use `how` to describe `other`.
bool givesSameBits(Trial &trial, Subject &other, Split split, const std::string &how);

/// Returns true if all results are within their bounds and the kernel changed no other bytes.
bool isAsExpected(Trial &trial);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_KERNELTEST_COMPARISON_H
