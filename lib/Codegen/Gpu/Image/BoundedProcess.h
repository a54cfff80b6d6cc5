//===- BoundedProcess.h - Runs a program within limits ----------*- C++ -*-===//
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
  unsigned seconds;   ///< maximum running time
  size_t textBytes;   ///< maximum size of standard output and standard error together, in bytes
  uint64_t fileBytes; ///< maximum size of each file that the program writes, in bytes
};

/// How a program ended, and what it wrote to standard output and standard error.
struct ProcessEnd {
  enum Kind { Exited, Signalled, TimedOut, WroteTooMuch, NotBegun } kind;
  int number = 0; ///< exit code, signal number, or error number (errno) of the failed start
  std::string text;
};

/// Runs the program at the path `arguments[0]`. Before returning, kills every process that is left
/// in the program's process group.
ProcessEnd runBounded(ArrayRef<std::string> arguments, const ProcessLimits &limits);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_IMAGE_BOUNDEDPROCESS_H
