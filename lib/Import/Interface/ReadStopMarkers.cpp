//===- ReadStopMarkers.cpp - Raise stop-gradient markers --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %y = call @fsdp.stop_gradient(%x)          ->   %y = fsdp.stop_gradient %x
//   func.func private @fsdp.stop_gradient(tensor<4xf32>) -> tensor<4xf32>
//
// Replaces stop-gradient markers by `fsdp.stop_gradient`. A marker is one of:
//
//  - a call of a function without a body that has the attribute `fsdp.stop_gradient`, or whose name
//    is `fsdp.stop_gradient` or begins with `fsdp.stop_gradient.` or `fsdp.stop_gradient_`.
//  - a `linalg.generic` with the attribute `fsdp.stop_gradient` that yields its one input.
//  - an op `fsdp.stop_gradient`.
//
// If any other op has the attribute, the pass emits an error, because a transformation must have
// moved the attribute. A module or a function with the attribute `fsdp.num_stop_gradients = N` must
// contain N markers. If the number of markers is different, the pass emits an error, because a
// transformation must have dropped or copied a marker. The pass runs before functions are inlined.
// The time is O(ops).
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/StopGradient.h"
#include "fsdp/Import/Passes.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_READSTOPMARKERSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct ReadStopMarkersPass : public fsdp::impl::ReadStopMarkersPassBase<ReadStopMarkersPass> {
  using ReadStopMarkersPassBase::ReadStopMarkersPassBase;
  void runOnOperation() override;

private:
  bool isMarker(Operation *op);
  LogicalResult checkAttribute(Operation *op);
  LogicalResult replace(Operation *op);
  LogicalResult checkNumber(Operation *holder);

  llvm::StringSet<> markerFunctions;
};
} // namespace

static bool isMarkerName(StringRef name) {
  return name.consume_front(stopGradientAttr) &&
         (name.empty() || name.starts_with(".") || name.starts_with("_"));
}

/// Returns whether a call of `func` is a marker.
static bool isMarkerFunction(func::FuncOp func) {
  return isMarkerName(func.getSymName()) || func->hasAttr(stopGradientAttr);
}

/// Returns whether `op` has one input and yields it unchanged.
static bool isIdentity(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
      !llvm::hasSingleElement(op.getBody()->getOperations()))
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  return maps[0] == maps[1] && maps[0].isPermutation() && op.getNumReductionLoops() == 0 &&
         op->getOperand(0).getType() == op->getResult(0).getType() &&
         op.getBody()->getTerminator()->getOperand(0) == op.getBody()->getArgument(0);
}

bool ReadStopMarkersPass::isMarker(Operation *op) {
  if (isa<StopGradientOp>(op))
    return true;
  if (auto call = dyn_cast<func::CallOp>(op))
    return markerFunctions.contains(call.getCallee());
  return isa<linalg::GenericOp>(op) && op->hasAttr(stopGradientAttr);
}

/// Emits an error if `op` is a marker function with a body, or if `op` has the attribute but is not
/// a marker.
LogicalResult ReadStopMarkersPass::checkAttribute(Operation *op) {
  if (auto func = dyn_cast<func::FuncOp>(op); func && isMarkerFunction(func)) {
    if (func.isExternal())
      return success();
    InFlightDiagnostic diag = mlir::emitError(func.getLoc())
                              << "stop-gradient marker '@" << func.getSymName()
                              << "' must be a declaration, found a body";
    diag.attachNote() << "declare it as 'func.func private @" << stopGradientAttr
                      << "(tensor<..>) -> tensor<..>'";
    return diag;
  }
  if (!op->hasAttr(stopGradientAttr) || isa<func::CallOp, StopGradientOp>(op))
    return success();
  if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && isIdentity(generic))
    return success();
  InFlightDiagnostic diag = op->emitError("expected '")
                            << stopGradientAttr
                            << "' on a 'linalg.generic' that yields its one input, found it on "
                            << (isa<linalg::GenericOp>(op)
                                    ? std::string("a 'linalg.generic' that yields something else")
                                    : ("'" + op->getName().getStringRef() + "'").str());
  diag.attachNote() << "a transformation has moved or merged the marker; export a call of '@"
                    << stopGradientAttr << "', which transformations keep";
  return diag;
}

LogicalResult ReadStopMarkersPass::replace(Operation *op) {
  if (isa<StopGradientOp>(op))
    return success();
  unsigned inputs = isa<linalg::GenericOp>(op) ? 1 : op->getNumOperands();
  auto type =
      inputs == 1 ? dyn_cast<RankedTensorType>(op->getOperand(0).getType()) : RankedTensorType();
  if (!type || op->getNumResults() != 1 || op->getResult(0).getType() != type) {
    InFlightDiagnostic diag = op->emitError("a stop-gradient marker takes one ranked tensor and "
                                            "returns a tensor of its type, found ");
    diag << op->getOperandTypes() << " -> " << op->getResultTypes();
    return diag;
  }
  OpBuilder b(op);
  op->getResult(0).replaceAllUsesWith(StopGradientOp::create(b, op->getLoc(), op->getOperand(0)));
  op->erase();
  return success();
}

/// Verifies that `holder` contains as many markers as its attribute `fsdp.num_stop_gradients` says.
LogicalResult ReadStopMarkersPass::checkNumber(Operation *holder) {
  Attribute written = holder->removeDiscardableAttr(numStopGradientsAttr);
  if (!written)
    return success();
  auto number = dyn_cast<IntegerAttr>(written);
  if (!number || !number.getType().isSignlessInteger() || number.getValue().isNegative())
    return mlir::emitError(holder->getLoc())
           << "expected '" << numStopGradientsAttr << "' to be an integer of at least 0, found "
           << written;
  uint64_t found = 0;
  holder->walk([&](Operation *op) { found += isMarker(op); });
  if (number.getValue() == found)
    return success();
  InFlightDiagnostic diag = mlir::emitError(holder->getLoc())
                            << "expected " << number.getValue().getZExtValue()
                            << (number.getValue().isOne() ? " stop-gradient marker, as '"
                                                          : " stop-gradient markers, as '")
                            << numStopGradientsAttr << "' says, found " << found;
  diag.attachNote()
      << "a transformation between the exporter and this compiler has dropped or copied markers; "
         "export without it";
  return diag;
}

void ReadStopMarkersPass::runOnOperation() {
  // Drop the state of the previous module.
  markerFunctions.clear();
  bool failedAny = false;
  SmallVector<Operation *> markers;
  for (auto func : getOperation().getOps<func::FuncOp>())
    if (isMarkerFunction(func))
      markerFunctions.insert(func.getSymName());
  getOperation().walk([&](Operation *op) { failedAny |= failed(checkAttribute(op)); });
  getOperation().walk([&](Operation *op) {
    failedAny |= failed(checkNumber(op));
    if (isMarker(op))
      markers.push_back(op);
  });
  if (failedAny)
    return signalPassFailure();
  for (Operation *op : markers)
    failedAny |= failed(replace(op));
  if (failedAny)
    return signalPassFailure();
  numMarkers += markers.size();
  // Erase the declarations of markers, which have no uses left.
  for (auto func : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
    if (isMarkerFunction(func) && SymbolTable::symbolKnownUseEmpty(func, getOperation()))
      func.erase();
}
