//===- Options.h - The options of fsdp-kernel-test --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_KERNELTEST_OPTIONS_H
#define FSDP_TOOLS_KERNELTEST_OPTIONS_H

#include "fsdp/Options/Options.h"
#include <optional>
#include <string>

namespace mlir::fsdp {

/// Contains copies of the options, because the linker in this process resets options of llvm::cl.
struct Options {
  std::string inputFile, device, target, targetCpu, alsoCpu, only, saveImage, saveBundle, emit,
      gemm, kernelCache;
  std::optional<double> tolerance, errorFactor;
  F32Products f32Products;
  SpillPolicy spills;
  double floor;
  bool times, bench, widen;

  bool emulates() const { return device == "emulate"; }
  /// Returns true if the options request that kernels are compiled but not run.
  bool onlyCompiles() const { return !emit.empty() || !saveBundle.empty(); }
};

/// Parses the command line. If --help is given, prints the help and ends the process. If the
/// command line is wrong, ends the process with exit code 2.
Options parseOptions(int argc, char **argv);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_KERNELTEST_OPTIONS_H
