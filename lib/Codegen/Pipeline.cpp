//===- Pipeline.cpp - Pipeline that prints the stage as text ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/Options/PassConfiguration.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_KEEPKERNELSPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;

namespace {
struct KeepKernelsPass : fsdp::impl::KeepKernelsPassBase<KeepKernelsPass> {
  void runOnOperation() override {
    // Erases ops in reverse order, so that each op is erased after its uses.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*getOperation().getBody())))
      if (!op.hasAttr(fsdp::kernelAttr)) {
        ++numDropped;
        op.erase();
      }
  }
};
} // namespace

void fsdp::buildCodegenPipeline(OpPassManager &pm, const StepOptions &options) {
  // This pass also erases the programs, because they launch kernels that the next pass erases.
  pm.addPass(createKeepKernelsPass());
  pm.addPass(configure(createLowerKernelsPass(), options));
}
