//===- ModelInput.h - Reading a model, and its diagnostics ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_COMPILE_MODELINPUT_H
#define FSDP_TOOLS_COMPILE_MODELINPUT_H

#include "FileOptions.h"
#include "fsdp/Import/ParseModel.h"
#include "mlir/IR/Diagnostics.h"

namespace mlir::fsdp {

/// Exit code after a wrong option or a wrong model.
inline constexpr int badUsage = 2;

/// Prints a diagnostic with its location and notes. Prints remarks only if `remarks` is true. If a
/// key of `file` caused the diagnostic, also prints this key.
void printDiagnostic(Diagnostic &diag, const FileOptions &file, bool remarks);

/// Returns the limits on the model that the options set.
ParseLimits getParseLimits(const DriverOptions &driver);

/// Checks values of options here, because the stages that read these options may not run.
LogicalResult checkEarly(ModuleOp module, const StepOptions &options);

/// Checks that the links of the cluster fit the mesh of a planned module, if times of collectives
/// are estimated. Emits an error about the cluster of --cluster, and a warning about the default
/// cluster of the target.
LogicalResult checkLinks(ModuleOp planned, const StepOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_MODELINPUT_H
