//===- BoundedProcess.h - A program, within limits --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_IMAGE_BOUNDEDPROCESS_H
#define FSDP_LIB_CODEGEN_GPU_IMAGE_BOUNDEDPROCESS_H

#include "mlir/Support/LLVM.h"
#include <string>

namespace mlir::fsdp {

struct ProcessLimits {
  unsigned seconds;
  size_t textBytes;   ///< that it may write to standard output and error together
  uint64_t fileBytes; ///< of each file that it writes
};

/// How a program ended, and what it wrote to standard output and error.
struct ProcessEnd {
  enum Kind { Exited, Signalled, TimedOut, WroteTooMuch, NotBegun } kind;
  int number = 0; ///< the exit code, the signal, or the error that let it not begin
  std::string text;
};

/// Runs the program at the path `arguments[0]`. When this returns, nothing of what it has started
/// in its process group is left.
ProcessEnd runBounded(ArrayRef<std::string> arguments, const ProcessLimits &limits);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_IMAGE_BOUNDEDPROCESS_H
