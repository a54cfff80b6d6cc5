//===- Pipeline.cpp - The pipeline of Codegen -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Pipeline.h"
#include "fsdp/Codegen/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

void fsdp::buildCodegenPipeline(OpPassManager &pm, const CodegenOptions &options) {
  LowerKernelsPassOptions lower;
  lower.targetCpu = options.targetCpu;
  pm.addPass(createLowerKernelsPass(lower));
}
