//===- VerifyPrecision.cpp - Operands rounded and extended ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %w = map(%x) { extf }           : bf16 -> f32
//   %t = transpose %w               : f32
//   %y = contract %t, %b            : f32 x f32     error: %t has the precision of bf16
//
// Walks back from each f32 operand of a product or of attention, through views and transpositions.
// Reports each map that this walk meets and that only extends the elements of a narrower tensor.
// The time is O(ops · depth of views).
//
//===----------------------------------------------------------------------===//

#include "PrecisionPlan.h"
#include "fsdp/Shard/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYPRECISIONPASS
#include "fsdp/Shard/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the map that computes `v` if this map only extends the elements of a narrower tensor.
/// Returns null otherwise.
static linalg::GenericOp findExtension(Value v) {
  while (Operation *def = v.getDefiningOp()) {
    auto generic = dyn_cast<linalg::GenericOp>(def);
    if (isViewOfOperand(def) || (generic && isMove(generic))) {
      v = def->getOperand(0);
      continue;
    }
    if (!generic || generic.getNumDpsInputs() != 1)
      return {};
    Value yielded = generic.getBody()->getTerminator()->getOperand(0);
    auto extension = yielded.getDefiningOp<arith::ExtFOp>();
    return extension && isa<BlockArgument>(extension.getIn()) ? generic : linalg::GenericOp();
  }
  return {};
}

namespace {
struct VerifyPrecisionPass : fsdp::impl::VerifyPrecisionPassBase<VerifyPrecisionPass> {
  using VerifyPrecisionPassBase::VerifyPrecisionPassBase;
  void runOnOperation() override {
    if (!getOperation()->hasAttr(FSDPDialect::keptWideAttr))
      return;
    bool failed = false;
    getOperation().walk([&](Operation *op) {
      bool isAttention = isa<AttentionOp>(op);
      if (!isAttention && !isProduct(op))
        return;
      ++numChecked;
      if (op->hasAttr(FSDPDialect::keepF32Attr))
        return;
      ValueRange inputs = isAttention ? ValueRange(op->getOperands().take_front(3))
                                      : ValueRange(op->getOperands().take_front(2));
      for (Value in : inputs)
        if (linalg::GenericOp extension = isFloat32Tensor(in) ? findExtension(in) : nullptr) {
          report(op, extension, isAttention ? "attention" : "product");
          failed = true;
          return;
        }
    });
    if (failed)
      signalPassFailure();
  }

private:
  static void report(Operation *op, linalg::GenericOp extension, StringRef what) {
    Type narrow = getElementTypeOrSelf(extension.getDpsInputs()[0]);
    InFlightDiagnostic diag = op->emitError("after Shard: expected operands of ")
                              << narrow << " for this " << what
                              << ", found f32 that was rounded to " << narrow
                              << " before; name it in --keep-f32 if this is intended";
    diag.attachNote(extension.getLoc()) << "the rounded values are extended here";
  }
};
} // namespace
