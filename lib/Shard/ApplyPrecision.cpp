//===- ApplyPrecision.cpp - Compute in a narrower type ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   before   %y = contract %x, %w : f32               %z = map(%y, %b) : f32
//   after    %t = contract %x, %w : bf16 -> f32       %z = map(%y, %b) : bf16
//            %y = truncf %t : bf16                      { extf .. f32 .. truncf }
//
//  1. Decide which values become narrow (PrecisionPlan.cpp).
//  2. Change the type of parameters, and record the old type in `fsdp.master_dtype`.
//  3. Rewrite the ops of the function in order. A product reads narrow operands, accumulates in
//     f32, and rounds its result. Attention reads narrow queries, keys, values and captured
//     activations; its scores and its sums remain f32. A body extends narrow operands, computes in
//     f32 as before, and rounds the values that it yields. The operands of all other ops get the
//     type of the op's result.
//  4. If the option `keep-f32` names a product or attention, this op reads f32 operands, and gets
//     the attribute `fsdp.keep_f32`.
//  5. Values remain f32 for several reasons. For each reason, record the numbers of values and of
//     their elements in the module's attribute `fsdp.kept_wide`.
//
// Only values between ops are narrow. Values inside bodies remain f32, so that each value is
// rounded only once. Masks remain finite: if a number that is selected or added is below the range
// of the type, the pass replaces it by the lowest finite number of the type.
//
// The time is O(ops). FormUnits.cpp keeps f32 copies of parameters. The stage Differentiate sets
// the type in which gradients are reduced.
//
//===----------------------------------------------------------------------===//

#include "Narrower.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/Shard/NamePattern.h"
#include "fsdp/Shard/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_APPLYPRECISIONPASS
#include "fsdp/Shard/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct ApplyPrecisionPass : fsdp::impl::ApplyPrecisionPassBase<ApplyPrecisionPass> {
  using ApplyPrecisionPassBase::ApplyPrecisionPassBase;
  void runOnOperation() override;

private:
  FailureOr<FloatType> readType(StringRef option, StringRef name);
  LogicalResult checkModel(func::FuncOp func, FloatType type);
  FailureOr<KeptWide> readKept(func::FuncOp func);
  void recordWide(func::FuncOp func, const PrecisionPlan &plan);
  void warnOfOutput();
};
} // namespace

/// Returns the type whose name is the value of an option. Returns null if the option is empty.
FailureOr<FloatType> ApplyPrecisionPass::readType(StringRef option, StringRef name) {
  MLIRContext *context = &getContext();
  if (name.empty())
    return FloatType();
  auto type = llvm::StringSwitch<FloatType>(name)
                  .Case("f32", Float32Type::get(context))
                  .Case("bf16", BFloat16Type::get(context))
                  .Case("f16", Float16Type::get(context))
                  .Default({});
  if (!type)
    return mlir::emitError(getOperation().getLoc())
           << option << ": expected f32, bf16 or f16, found '" << name << "'";
  return type;
}

/// Reports an error if the model cannot be computed in `type`, because no parameter is f32 or has
/// type `type`.
LogicalResult ApplyPrecisionPass::checkModel(func::FuncOp func, FloatType type) {
  BlockArgument other;
  for (BlockArgument arg : func.getArguments()) {
    if (!func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr))
      continue;
    if (getElementTypeOrSelf(arg) == type || getElementTypeOrSelf(arg).isF32())
      return success();
    other = arg;
  }
  if (!other)
    return success(); // FormUnits.cpp reports the missing parameters
  Type found = getElementTypeOrSelf(other);
  InFlightDiagnostic diag =
      mlir::emitError(func.getLoc())
      << "param-dtype: expected the type of the model's parameters, " << found << ", found " << type
      << "; only models in f32 can be computed in another type: "
      << (found.getIntOrFloatBitWidth() < 32 ? "leave param-dtype out, or " : "")
      << "export the model in f32";
  diag.attachNote(other.getLoc()) << "a parameter of " << found << " is here";
  return diag;
}

/// Reads the option keep-f32, a list of patterns for the names of parameters, which may contain the
/// words `attention` and `sums`. PartitionTensors.cpp reads the latter.
FailureOr<KeptWide> ApplyPrecisionPass::readKept(func::FuncOp func) {
  KeptWide kept;
  SmallVector<StringRef> names, patterns;
  SmallVector<BlockArgument> parameters;
  for (BlockArgument arg : func.getArguments())
    if (auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::paramAttr)) {
      names.push_back(name);
      parameters.push_back(arg);
    }
  StringRef(keepF32).split(patterns, ',', -1, /*KeepEmpty=*/!keepF32.empty());
  llvm::erase_if(patterns, [&](StringRef pattern) {
    bool isAttention = pattern.trim() == "attention";
    kept.attention |= isAttention;
    return isAttention || pattern.trim() == "sums";
  });
  FailureOr<llvm::BitVector> selected = selectNames(names, llvm::join(patterns, ","), "keep-f32",
                                                    [&] { return mlir::emitError(func.getLoc()); });
  if (failed(selected))
    return failure();
  for (unsigned index : selected->set_bits())
    kept.parameters.insert(parameters[index]);
  if (kept.attention && llvm::none_of(func.getOps<AttentionOp>(), [](auto) { return true; }))
    mlir::emitWarning(func.getLoc())
        << "keep-f32=attention has no effect: the model has no attention op";
  return kept;
}

/// Sets `fsdp.kept_wide` of the module: for each reason, how many values of `func` remain f32.
void ApplyPrecisionPass::recordWide(func::FuncOp func, const PrecisionPlan &plan) {
  Builder b(&getContext());
  SmallVector<NamedAttribute> counts;
  for (auto [reason, values] : plan.countWide(func))
    counts.push_back(
        b.getNamedAttr(reason, b.getDenseI64ArrayAttr({values.count, values.elements})));
  getOperation()->setAttr(FSDPDialect::keptWideAttr, b.getDictionaryAttr(counts));
}

/// Warns that output-dtype has no effect on models without f32 parameters.
void ApplyPrecisionPass::warnOfOutput() {
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    Type found;
    for (BlockArgument arg : func.getArguments()) {
      if (!func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr) ||
          !isa<FloatType>(getElementTypeOrSelf(arg)))
        continue;
      found = getElementTypeOrSelf(arg);
      if (found.isF32())
        break;
    }
    if (found && !found.isF32())
      mlir::emitWarning(func.getLoc())
          << "output-dtype '" << outputDtype
          << "' has no effect: it applies only to a model with f32 parameters, which param-dtype "
             "converts, found parameters of type "
          << found;
  }
}

void ApplyPrecisionPass::runOnOperation() {
  FailureOr<FloatType> param = readType("param-dtype", paramDtype),
                       output = readType("output-dtype", outputDtype);
  if (failed(param) || failed(output))
    return signalPassFailure();
  if (*output && !output->isF32() && *output != *param) {
    InFlightDiagnostic diag = mlir::emitError(getOperation().getLoc())
                              << "output-dtype: expected f32";
    if (*param)
      diag << " or the param-dtype ('" << paramDtype << "')";
    else
      diag << ", because no param-dtype is given";
    diag << ", found '" << outputDtype << "'";
    return signalPassFailure();
  }
  if (*output)
    warnOfOutput();
  if (!*param)
    return;
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    if (!func.isPublic() || !func.getBody().hasOneBlock())
      continue; // FormUnits.cpp reports the error
    if (failed(checkModel(func, *param)))
      return signalPassFailure();
    if (param->isF32())
      continue;
    FailureOr<KeptWide> kept = readKept(func);
    if (failed(kept))
      return signalPassFailure();
    PrecisionPlan plan(func, *param, /*wideOutputs=*/!*output || output->isF32(), *kept);
    recordWide(func, plan);
    Narrower narrower(func, plan, *param);
    narrower.run();
    numValues += narrower.numValues;
    numCasts += narrower.numCasts;
    numParams += narrower.numParams;
    numOutputs += plan.getNumOutputs();
  }
}
