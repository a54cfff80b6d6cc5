//===- VerifyDifferentiated.cpp - Contract after Differentiate ------------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks the contract (docs/explanation/pipeline.md, section 3) of each program with gradients:
//
// 1. The results are the loss and one gradient per unit with trainable parameters, in the order of
//    the arguments. An fsdp.reduce_scatter avg computes each of these gradients. If only lookups
//    read the unit, an fsdp.reduce_rows avg computes the gradient. After these gradients, the
//    function returns the results of all other fsdp.reduce_rows.
// 2. If a unit is gathered again, the backward reads no value that the forward derived from the
//    parameters of this unit.
// 3. No elementwise addition adds a tensor of zeros.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Differentiate/Passes.h"

#include "ForwardPart.h"
#include "ParameterDerived.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYDIFFERENTIATEDPASS
#include "fsdp/Differentiate/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static UnitOp lookUpUnit(Operation *from, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<UnitOp>(from, name);
}

/// Returns true if `value` is the average over the ranks of gradients of the unit `name`.
static bool isMeanOf(FlatSymbolRefAttr name, Value value) {
  if (auto rows = value.getDefiningOp<ReduceRowsOp>())
    return rows.getUnitAttr() == name && rows.getReduction() == ReductionKind::avg;
  auto reduction = value.getDefiningOp<ReduceScatterOp>();
  return reduction && reduction.getUnitAttr() == name &&
         reduction.getReduction() == ReductionKind::avg;
}

static LogicalResult verifyResults(func::FuncOp func) {
  auto loss = dyn_cast<RankedTensorType>(func.getResultTypes()[0]);
  if (!loss || loss.getRank() != 0 || !isa<FloatType>(loss.getElementType()))
    return func.emitError("expected the loss, a float tensor of rank 0, as first result, found ")
           << func.getResultTypes()[0];
  unsigned next = 1;
  Operation *terminator = func.getBody().front().getTerminator();
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(i, FSDPDialect::unitAttr);
    UnitOp unit = name ? lookUpUnit(func, name) : UnitOp();
    if (!unit || llvm::none_of(unit.getParams().getAsRange<ParamAttr>(),
                               [](ParamAttr p) { return p.getTrainable(); }))
      continue;
    bool present =
        next < func.getNumResults() && func.getResultAttr(next, FSDPDialect::unitAttr) == name;
    if (!present || !isMeanOf(name, terminator->getOperand(next)))
      return func.emitError("expected result ")
             << next << " to be the gradient of " << name << ", made by 'fsdp.reduce_scatter "
             << name << " avg'";
    ++next;
  }
  for (; next < func.getNumResults(); ++next) {
    if (!func.getResultAttr(next, FSDPDialect::rowsAttr))
      // The result is the gradient of a parameter outside all units, or the check of a lookup.
      continue;
    auto name = func.getResultAttrOfType<FlatSymbolRefAttr>(next, FSDPDialect::rowsAttr);
    auto rows = terminator->getOperand(next).getDefiningOp<ReduceRowsOp>();
    if (!name || !rows || !isMeanOf(name, rows.getShard()))
      return func.emitError("expected result ") << next
                                                << " to be the gradient of looked-up rows, made by "
                                                   "'fsdp.reduce_rows avg' of the unit in '"
                                                << FSDPDialect::rowsAttr << "'";
  }
  return success();
}

/// The parameter-derived value `v` is computed from the parameters of some units. Returns one of
/// these units that is gathered again, or null if none is.
static UnitOp findResharded(Value v) {
  if (auto unshard = v.getDefiningOp<UnshardOp>()) {
    UnitOp unit = lookUpUnit(unshard, unshard.getUnitAttr());
    return unit.getReshard() ? unit : UnitOp();
  }
  for (Value operand : getAllOperands(v.getDefiningOp()))
    if (operand.getDefiningOp())
      if (UnitOp unit = findResharded(operand))
        return unit;
  return {};
}

static LogicalResult verifySaved(func::FuncOp func) {
  ForwardPart forward(func);
  ParameterDerived derived;
  for (auto [value, reader] : forward.getSaved()) {
    if (!derived.contains(value))
      continue;
    if (UnitOp unit = findResharded(value)) {
      InFlightDiagnostic diag =
          reader->emitError("the backward reads a parameter that was gathered for the forward; "
                            "expected it from 'fsdp.unshard @")
          << unit.getSymName() << " site 1'; run --fsdp-regather-parameters";
      diag.attachNote(value.getLoc()) << "it is made here";
      return diag;
    }
  }
  return success();
}

static bool isZero(Value v) {
  auto fill = v.getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
}

/// Checks that no elementwise addf adds a tensor of zeros.
static LogicalResult verifyNoZeroAdded(func::FuncOp func) {
  WalkResult result = func.walk([&](linalg::GenericOp op) {
    if (op.getNumReductionLoops() != 0)
      return WalkResult::advance();
    for (OpOperand *in : op.getDpsInputOperands()) {
      if (!isZero(in->get()))
        continue;
      for (Operation *user : op.getMatchingBlockArgument(in).getUsers())
        if (isa<arith::AddFOp>(user)) {
          InFlightDiagnostic diag =
              op.emitError("adds a tensor of zeros; expected the other operand alone");
          diag.attachNote(in->get().getLoc()) << "it is filled here";
          return WalkResult::interrupt();
        }
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct VerifyDifferentiatedPass
    : fsdp::impl::VerifyDifferentiatedPassBase<VerifyDifferentiatedPass> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      auto program = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
      bool expected = program && program.getValue() != "eval";
      if (func.isExternal() || (!expected && !hasGradients(func)))
        continue;
      if (failed(verifyResults(func)) || failed(verifySaved(func)) ||
          failed(verifyNoZeroAdded(func)))
        return signalPassFailure();
      ++numVerified;
    }
  }
};
} // namespace
