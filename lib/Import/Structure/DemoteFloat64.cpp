//===- DemoteFloat64.cpp - Compute f64 parts in f32 -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In models of f32, exporters write the computation of a few values in f64, such as the variance of
// a LayerNorm, or scales that were Python numbers.
//
//   %w = extf %x : f32 to f64
//   %s = sum of %w in f64                ->        %s = sum of %x in f32
//   %y = truncf %s : f64 to f32
//
// The pass changes a function if it has float parameters and none of them is f64. The pass then
// replaces f64 by f32 in the signature, all types, bodies and constants (rounded to nearest). It
// drops the resulting casts from f32 to f32. The pass does not change other functions.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Import/Passes.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/DialectResourceBlobManager.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_DEMOTEFLOAT64PASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct DemoteFloat64Pass : public fsdp::impl::DemoteFloat64PassBase<DemoteFloat64Pass> {
  using DemoteFloat64PassBase::DemoteFloat64PassBase;
  void runOnOperation() override;
};
} // namespace

static bool isDouble(Type type) { return getElementTypeOrSelf(type).isF64(); }

/// Returns whether the function has float parameters and none of them is f64.
static bool isNarrowModel(func::FuncOp func) {
  bool isNarrow = false;
  for (BlockArgument arg : func.getArguments()) {
    if (!func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr) ||
        !isa<FloatType>(getElementTypeOrSelf(arg)))
      continue;
    if (isDouble(arg.getType()))
      return false;
    isNarrow = true;
  }
  return isNarrow;
}

static APFloat rounded(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value;
}

/// Returns whether an op reinterprets the bits of an f64, so that it has no meaning in f32.
static bool needsDouble(Operation *op) {
  return isa<arith::BitcastOp, tensor::BitcastOp>(op) &&
         (isDouble(op->getOperand(0).getType()) || isDouble(op->getResult(0).getType()));
}

static AttrTypeReplacer makeReplacer(MLIRContext *context) {
  Type f32 = Float32Type::get(context);
  AttrTypeReplacer replacer;
  replacer.addReplacement([=](Float64Type) -> Type { return f32; });
  replacer.addReplacement([=](FloatAttr attr) -> std::optional<std::pair<Attribute, WalkResult>> {
    if (!attr.getType().isF64())
      return std::nullopt;
    return std::pair<Attribute, WalkResult>(FloatAttr::get(f32, rounded(attr.getValue())),
                                            WalkResult::skip());
  });
  replacer.addReplacement(
      [=](DenseFPElementsAttr attr) -> std::optional<std::pair<Attribute, WalkResult>> {
        if (!attr.getElementType().isF64())
          return std::nullopt;
        Attribute narrow =
            attr.mapValues(f32, [](const APFloat &v) { return rounded(v).bitcastToAPInt(); });
        return std::pair<Attribute, WalkResult>(narrow, WalkResult::skip());
      });
  // Convert the doubles that a blob of bytes contains.
  replacer.addReplacement(
      [=](DenseResourceElementsAttr attr) -> std::optional<std::pair<Attribute, WalkResult>> {
        auto blob = attr.getRawHandle().getBlob();
        auto type = attr.getType();
        if (!type.getElementType().isF64() || !blob ||
            blob->getData().size() != static_cast<size_t>(type.getNumElements()) * sizeof(double))
          return std::nullopt;
        SmallVector<float> values;
        for (double v : ArrayRef<double>(reinterpret_cast<const double *>(blob->getData().data()),
                                         type.getNumElements()))
          values.push_back(static_cast<float>(v));
        Attribute narrow = DenseElementsAttr::get(type.clone(f32), ArrayRef<float>(values));
        return std::pair<Attribute, WalkResult>(narrow, WalkResult::skip());
      });
  // #fsdp.init holds doubles for parameters of all types.
  replacer.addReplacement([](InitAttr attr) -> std::optional<std::pair<Attribute, WalkResult>> {
    return std::pair<Attribute, WalkResult>(attr, WalkResult::skip());
  });
  return replacer;
}

void DemoteFloat64Pass::runOnOperation() {
  func::FuncOp func = getOperation();
  if (func.isPrivate() || !isNarrowModel(func))
    return;
  WalkResult refused = func.walk([&](Operation *op) {
    if (!needsDouble(op))
      return WalkResult::advance();
    op->emitError("reinterprets the bits of an f64, but no parameter of the model is f64, so its "
                  "f64 parts are computed in f32");
    return WalkResult::interrupt();
  });
  if (refused.wasInterrupted())
    return signalPassFailure();
  func.walk([&](Operation *op) { numDemoted += llvm::count_if(op->getResultTypes(), isDouble); });
  AttrTypeReplacer replacer = makeReplacer(&getContext());
  func.walk([&](Operation *op) {
    // Keep the attributes of fsdp ops, such as a scale or a probability, because they are f64 for
    // operands of every type.
    bool ours = isa_and_nonnull<FSDPDialect>(op->getDialect());
    replacer.replaceElementsIn(op, /*replaceAttrs=*/!ours, /*replaceLocs=*/false,
                               /*replaceTypes=*/true);
  });
  func.walk([](Operation *op) {
    if (isa<arith::TruncFOp, arith::ExtFOp>(op) &&
        op->getOperand(0).getType() == op->getResult(0).getType()) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
  });
}
