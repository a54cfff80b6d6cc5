//===- LowerTosa.cpp - TOSA to linalg ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If a module has tosa ops, runs the upstream passes that lower them:
//
//   tosa.matmul, tosa.add, tosa.gather, ..   ->   linalg, arith, tensor
//
//===----------------------------------------------------------------------===//

#include "fsdp/Import/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/TosaToArith/TosaToArith.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Conversion/TosaToTensor/TosaToTensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_LOWERTOSAPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct LowerTosaPass : public fsdp::impl::LowerTosaPassBase<LowerTosaPass> {
  using LowerTosaPassBase::LowerTosaPassBase;
  void runOnOperation() override;
};
} // namespace

void LowerTosaPass::runOnOperation() {
  unsigned before = 0;
  getOperation().walk(
      [&](Operation *op) { before += isa_and_nonnull<tosa::TosaDialect>(op->getDialect()); });
  if (before == 0)
    return;
  OpPassManager pm(ModuleOp::getOperationName());
  TosaToLinalgOptions options;
  tosa::addTosaToLinalgPasses(pm, options, TosaToLinalgNamedOptions(), std::nullopt);
  pm.addNestedPass<func::FuncOp>(createTosaToTensorPass());
  pm.addNestedPass<func::FuncOp>(createTosaToArithPass());
  if (failed(runPipeline(pm, getOperation()))) {
    emitError(getOperation().getLoc(),
              "cannot lower all tosa ops; export the module to linalg on tensors instead");
    return signalPassFailure();
  }
  numLowered += before;
}
