//===- ResultForm.cpp - Form of a result of a structured op -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An adjoint cannot read the intermediate values of the accumulator `out` of a reduction. The
// yielded value is therefore split into terms that do not depend on `out`. The reverse sweep begins
// at these terms.
//
//   yield addf(x, subf(out, mulf(x, x)))    Sum:  + x, - x·x
//   yield maximumf(x, out)                  Extreme: x
//
// The split ignores conversions between float types.
//
//===----------------------------------------------------------------------===//

#include "ResultForm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
class Classifier {
public:
  Classifier(linalg::GenericOp op, ResultForm &form)
      : op(op), form(form), out(op.getRegionOutputArgs()[form.index]) {}

  LogicalResult run();

private:
  bool dependsOnOut(Value v);
  bool collectTerms(Value v, bool negated);
  bool combines(Operation *def);
  bool refuse(Operation *def, const Twine &why);
  LogicalResult emitRefusal(Operation *last);

  linalg::GenericOp op;
  ResultForm &form;
  BlockArgument out;
  // Whether a result of the form Extreme is a maximum. The terms of a form are never combined by
  // both maxima and minima.
  bool isMaximum = false;
  // The last subtraction that changed the sign of `out`.
  Operation *negation = nullptr;
  // The last op of the body suggests a form. If the body does not have this form, `culprit` is the
  // op that breaks the form, and `reason` explains the error.
  std::string reason;
  Operation *culprit = nullptr;
  DenseMap<Operation *, bool> dependent;
};
} // namespace

/// Returns true if `v` depends on an out argument of the body.
bool Classifier::dependsOnOut(Value v) {
  if (auto arg = dyn_cast<BlockArgument>(v))
    return arg.getOwner() == op.getBody() && arg.getArgNumber() >= op.getNumDpsInputs();
  Operation *def = v.getDefiningOp();
  if (def->getBlock() != op.getBody())
    return false;
  if (auto known = dependent.find(def); known != dependent.end())
    return known->second;
  bool depends =
      llvm::any_of(def->getOperands(), [&](Value operand) { return dependsOnOut(operand); });
  return dependent[def] = depends;
}

static bool isExtreme(Operation *def) {
  return isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp, arith::MinNumFOp>(def);
}

bool Classifier::combines(Operation *def) {
  if (form.kind == ResultForm::Sum)
    return isa<arith::AddFOp, arith::SubFOp>(def);
  return isMaximum ? isa<arith::MaximumFOp, arith::MaxNumFOp>(def)
                   : isa<arith::MinimumFOp, arith::MinNumFOp>(def);
}

/// Stores `def` as the op that breaks the expected form, and `why` as the reason. Returns false.
bool Classifier::refuse(Operation *def, const Twine &why) {
  culprit = def;
  reason = why.str();
  return false;
}

/// Splits `v` into its terms t1, t2 ... if `v` is out ± t1 ± t2 ..., or a maximum or minimum of
/// `out` and t1, t2 .... Returns false if `v` has another form.
bool Classifier::collectTerms(Value v, bool negated) {
  if (v == out)
    return !negated || refuse(negation, "'arith.subf' negates the 'outs' argument");
  if (!dependsOnOut(v)) {
    form.terms.push_back({v, negated});
    return true;
  }
  Operation *def = v.getDefiningOp();
  if (!def)
    // The value is the accumulator of another result. No form allows the body to read such an
    // accumulator.
    return refuse(op, "the 'outs' argument of another result is used");
  if (isa<arith::ExtFOp, arith::TruncFOp>(def))
    return collectTerms(def->getOperand(0), negated);
  std::string name = ("'" + def->getName().getStringRef() + "'").str();
  if (!combines(def))
    return refuse(def, isExtreme(def) && form.kind == ResultForm::Extreme
                           ? "the body mixes maximum and minimum"
                           : name + " is applied to the 'outs' argument");
  if (dependsOnOut(def->getOperand(0)) == dependsOnOut(def->getOperand(1)))
    return refuse(def, "both operands of " + name + " depend on the 'outs' argument");
  if (isa<arith::SubFOp>(def) && dependsOnOut(def->getOperand(1)))
    negation = def;
  return collectTerms(def->getOperand(0), negated) &&
         collectTerms(def->getOperand(1), isa<arith::SubFOp>(def) ? !negated : negated);
}

/// Emits the error that the yielded value has none of the forms of ResultForm. `last` is the op
/// that computes this value, without conversions after it. `last` is null if the value is an
/// argument.
LogicalResult Classifier::emitRefusal(Operation *last) {
  InFlightDiagnostic diag =
      op.emitError("no gradient for result ")
      << form.index << " of this reduction: expected `out + terms`, `out - terms`, a maximum, or a "
      << "minimum of the 'outs' argument `out` and terms that do not read it";
  if (isa_and_nonnull<arith::MulFOp>(last))
    diag << "; write a product as exp of a sum of logarithms";
  Diagnostic &note = diag.attachNote(culprit->getLoc());
  if (last && last != culprit)
    note << "the last op of result " << form.index << " is '" << last->getName() << "'; ";
  note << reason;
  return diag;
}

LogicalResult Classifier::run() {
  Value yielded = op.getBody()->getTerminator()->getOperand(form.index);
  if (op.getNumReductionLoops() == 0) {
    // The body of a map may read the argument `out`. In this case, `out` is an input of the map.
    form.terms.push_back({yielded, false});
    return success();
  }
  if (!dependsOnOut(yielded))
    return op.emitError("no gradient for result ")
           << form.index
           << " of this reduction: every iteration overwrites it; expected it to combine with the "
           << "'outs' argument";
  Value combined = yielded;
  while (auto *def = combined.getDefiningOp())
    if (isa<arith::ExtFOp, arith::TruncFOp>(def))
      combined = def->getOperand(0);
    else
      break;
  Operation *last = combined.getDefiningOp();
  using Attempt = std::pair<ResultForm::Kind, bool>;
  for (auto [kind, maximum] : {Attempt(ResultForm::Sum, false), Attempt(ResultForm::Extreme, true),
                               Attempt(ResultForm::Extreme, false)}) {
    form.kind = kind;
    isMaximum = maximum;
    form.terms.clear();
    if (collectTerms(yielded, false))
      return success();
    if (last && combines(last))
      break;
  }
  return emitRefusal(last);
}

FailureOr<ResultForm> fsdp::classifyResult(linalg::GenericOp op, unsigned index) {
  ResultForm form;
  form.index = index;
  if (failed(Classifier(op, form).run()))
    return failure();
  return form;
}
