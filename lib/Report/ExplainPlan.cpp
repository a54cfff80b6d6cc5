//===- ExplainPlan.cpp - Pass that explains a plan --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the pass that runs explain() of Explain.h.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Report/Explain.h"
#include "fsdp/Report/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_EXPLAINPLANPASS
#include "fsdp/Report/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

class ExplainPlanPass : public fsdp::impl::ExplainPlanPassBase<ExplainPlanPass> {
  using ExplainPlanPassBase::ExplainPlanPassBase;
  void runOnOperation() override {
    peakBytes = measureMemory(getOperation()).peak;
    explain(getOperation(), llvm::errs(), json);
    markAllAnalysesPreserved();
  }
};

} // namespace
