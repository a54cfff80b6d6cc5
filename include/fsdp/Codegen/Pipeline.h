//===- Pipeline.h - The pipeline of Codegen ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_PIPELINE_H
#define FSDP_CODEGEN_PIPELINE_H

#include <string>

namespace mlir {
class OpPassManager;
namespace fsdp {

struct CodegenOptions {
  /// native, x86-64-v3, or a name that LLVM knows.
  std::string targetCpu = "native";
};

/// Kernels as phase functions, for people (`--compile-to=codegen`); the driver
/// calls compileCpuImage, which takes kernels on tensors.
void buildCodegenPipeline(OpPassManager &pm, const CodegenOptions &options);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_CODEGEN_PIPELINE_H
