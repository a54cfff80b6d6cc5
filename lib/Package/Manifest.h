//===- Manifest.h - The manifest of a planned module ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_PACKAGE_MANIFEST_H
#define FSDP_LIB_PACKAGE_MANIFEST_H

#include "Values.h"
#include "fsdp/Package/Package.h"

namespace mlir::fsdp {

/// Returns the finished FlatBuffer of runtime/schema/artifact.fbs, with its identifier.
FailureOr<std::vector<char>> buildManifest(ModuleOp module, const CompiledKernels &kernels,
                                           const Values &values, const StepOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_LIB_PACKAGE_MANIFEST_H
