//===- VerifyFloatContract.cpp - Arithmetic is done as written --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The bits of a kernel's results depend on its IR alone: every operation rounds once, and sums have
// a fixed order. Fast-math flags are rejected, because they would let later passes change rounding
// or order. A multiplication and an addition with a single rounding must be written as math.fma.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "fsdp/Codegen/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYFLOATCONTRACTPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult fsdp::verifyFloatContract(Operation *root, int64_t *checked) {
  WalkResult result = root->walk([&](arith::ArithFastMathInterface op) {
    if (checked)
      ++*checked;
    arith::FastMathFlagsAttr flags = op.getFastMathFlagsAttr();
    if (!flags || flags.getValue() == arith::FastMathFlags::none)
      return WalkResult::advance();
    InFlightDiagnostic diag = op->emitOpError("has the fast-math flags '")
                              << arith::stringifyFastMathFlags(flags.getValue())
                              << "', but kernels compute exactly the operations that are written";
    diag.attachNote() << "remove the flags, and write math.fma for a multiplication and addition "
                         "with one rounding";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct VerifyFloatContractPass : fsdp::impl::VerifyFloatContractPassBase<VerifyFloatContractPass> {
  using VerifyFloatContractPassBase::VerifyFloatContractPassBase;

  void runOnOperation() override {
    int64_t checked = 0;
    if (failed(verifyFloatContract(getOperation(), &checked)))
      return signalPassFailure();
    numChecked += checked;
    markAllAnalysesPreserved();
  }
};
} // namespace
