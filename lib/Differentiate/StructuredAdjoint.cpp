//===- StructuredAdjoint.cpp - The adjoint of one linalg.generic ----------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One rule differentiates all structured ops. A named op is differentiated through a copy that is a
// linalg.generic. The cotangent of each active operand x, which has map A, is a generic with the
// loops of the forward op:
//
//   y[C] (+)= f(x[A], w[B])      x̄[A] (+)= reverse of f, at (x[A], w[B], ȳ[C])
//
// 1. Classify each result that has a cotangent as map, sum or extreme (ResultForm).
// 2. Find the ops of the body on which these results depend (the slice).
// 3. For each active operand, clone the slice, append the reverse sweep (AdjointBody.cpp), and drop
//    unread inputs. A loop of the adjoint is a reduction unless one of the results of the map A is
//    just this loop. If exactly one iteration reads each element of x, no loop is reduced, and the
//    adjoint is a map.
// 4. If two operands x and b have the same scalar gradient, as in x + b, compute the cotangent of b
//    by a reduction of the cotangent of x. If the scalar gradient is ȳ itself, reuse ȳ as the
//    cotangent.
// 5. For products, build contractions (ContractionAdjoint.cpp). For tensor.extract at computed
//    indices, build a scatter (ScatterAdjoint.cpp).
//
// Reductions accumulate in working precision. If the previous cotangent has the type of the working
// precision, a reduction accumulates directly into this cotangent. The time is proportional to the
// number of operands × the size of the body.
//
//===----------------------------------------------------------------------===//

#include "StructuredAdjoint.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult StructuredAdjoint::collect() {
  for (auto [i, result] : llvm::enumerate(results)) {
    if (!isFloat(result) || !cotangents.get(result))
      continue;
    FailureOr<ResultForm> form = classifyResult(op, i);
    if (failed(form))
      return failure();
    forms.push_back(*form);
  }
  SmallVector<Value> worklist;
  for (const ResultForm &form : forms)
    for (const ResultForm::Term &term : form.terms)
      worklist.push_back(term.value);
  while (!worklist.empty()) {
    Operation *def = worklist.pop_back_val().getDefiningOp();
    if (!def || def->getBlock() != &body || !slice.insert(def))
      continue;
    if (def->getNumRegions())
      return def->emitError("no gradient through '")
             << def->getName()
             << "' inside the body of a structured op; write it with arith.select";
    llvm::append_range(worklist, def->getOperands());
  }
  return success();
}

void StructuredAdjoint::collectInputs() {
  auto addPrimal = [&](OpOperand &operand) {
    inputs.push_back({Input::Primal, operand.get(), op.getMatchingIndexingMap(&operand),
                      op.getMatchingBlockArgument(&operand)});
  };
  for (OpOperand *in : op.getDpsInputOperands())
    addPrimal(*in);
  if (!hasReduction())
    for (OpOperand &init : op.getDpsInitsMutable())
      if (op.payloadUsesValueFromOperand(&init))
        addPrimal(init);
  for (const ResultForm &form : forms) {
    AffineMap map = op.getIndexingMapsArray()[op.getNumDpsInputs() + form.index];
    Value y = results[form.index];
    inputs.push_back({Input::Cotangent, cotangents.get(y), map, {}, form.index});
    if (form.kind == ResultForm::Extreme || (form.kind == ResultForm::Map && cotangents.useResults))
      inputs.push_back({Input::Result, y, map, {}, form.index});
  }
}

/// Collects the values in the body that represent active values outside the body. These are
/// arguments, captured scalars, and elements that are extracted from captured tensors.
void StructuredAdjoint::collectActive() {
  for (const Input &in : inputs)
    if (in.role == Input::Primal && cotangents.isActive(in.source) && !in.primal.use_empty())
      active.insert(in.primal);
  for (Operation &o : body.without_terminator()) {
    if (!slice.contains(&o))
      continue;
    if (auto extract = dyn_cast<tensor::ExtractOp>(o);
        extract && cotangents.isActive(extract.getTensor()))
      active.insert(extract.getResult());
    else
      for (Value operand : o.getOperands())
        if (operand.getParentBlock() != &body && cotangents.isActive(operand))
          active.insert(operand);
  }
  for (const ResultForm &form : forms)
    for (auto [value, negated] : form.terms)
      if (value.getParentBlock() != &body && cotangents.isActive(value))
        active.insert(value);
}

StructuredAdjoint::Input &StructuredAdjoint::cotangentOf(const ResultForm &form) {
  return *llvm::find_if(inputs, [&](const Input &in) {
    return in.role == Input::Cotangent && in.index == form.index;
  });
}

/// Divides the cotangent ȳ of a maximum or minimum by the number of terms that are equal to this
/// maximum or minimum.
void StructuredAdjoint::shareTies(const ResultForm &form) {
  Input &g = cotangentOf(form);
  Value y = results[form.index], init = op.getDpsInits()[form.index];
  Type work = getWorkingType(getElementTypeOrSelf(y));
  auto isEqual = [&](OpBuilder &b, Location loc, Value term, Value y) -> Value {
    Value equal = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                        convertFloat(b, loc, term, y.getType()), y);
    return arith::UIToFPOp::create(b, loc, work, equal);
  };
  Value ofInit;
  if (cotangents.isActive(init))
    ofInit =
        buildElementwise(b, loc, {init, y}, work, [&](OpBuilder &b, Location loc, ValueRange x) {
          return isEqual(b, loc, x[0], x[1]);
        });
  Sweep sweep(b.getContext(), loc);
  clonePrimal(sweep);
  Value count;
  for (const ResultForm::Term &term : form.terms) {
    Value one =
        isEqual(sweep.b, loc, sweep.mapping.lookupOrDefault(term.value), sweep.y[form.index]);
    count = count ? arith::AddFOp::create(sweep.b, loc, count, one).getResult() : one;
  }
  auto type = cast<RankedTensorType>(withElementType(y.getType(), work));
  Value counts = build(sweep, {g.map, type, /*once=*/false, ofInit}, count);
  g.source = buildElementwise(
      b, loc, {g.source, counts}, work, [&](OpBuilder &b, Location loc, ValueRange x) {
        return arith::DivFOp::create(b, loc, convertFloat(b, loc, x[0], work), x[1]).getResult();
      });
}

/// Updates the cotangent of the init of a reduction. For a sum, adds ȳ to this cotangent. For a
/// maximum or minimum, adds ȳ where the init equals the result, and 0 elsewhere.
void StructuredAdjoint::differentiateInit(const ResultForm &form) {
  Value init = op.getDpsInits()[form.index], y = results[form.index];
  if (form.kind == ResultForm::Map || !cotangents.isActive(init))
    return;
  Value g = cotangentOf(form).source;
  if (form.kind == ResultForm::Extreme)
    g = buildElementwise(b, loc, {init, y, g}, getElementTypeOrSelf(g),
                         [](OpBuilder &b, Location loc, ValueRange x) {
                           Value won =
                               arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x[0], x[1]);
                           Value zero = buildZeros(b, loc, x[2].getType());
                           return arith::SelectOp::create(b, loc, won, x[2], zero).getResult();
                         });
  else
    ++cotangents.numFree;
  cotangents.add(init, g);
}

/// Returns true if exactly one iteration accesses each element of an operand with this map. Allows
/// a constant index for an extent of 1. Returns false if the map accesses a diagonal, because a
/// diagonal does not contain all elements.
static bool reachesOnce(AffineMap map, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return map.getNumDims() == 0;
  for (auto [result, extent] : llvm::zip_equal(map.getResults(), tensor.getShape()))
    if (isa<AffineConstantExpr>(result) && extent != 1)
      return false;
  return map.dropZeroResults().isPermutation();
}

/// If the cotangent of `operand` equals ȳ, as for a residual addition, adds ȳ itself to the
/// cotangent of `operand` and returns true.
bool StructuredAdjoint::passThrough(Value operand, AffineMap map, Sweep &sweep, Value gradient) {
  while (auto extended = gradient.getDefiningOp<arith::ExtFOp>())
    gradient = extended.getIn();
  for (const Input &in : inputs)
    if (in.role == Input::Cotangent && gradient == sweep.g.lookup(in.index) && in.map == map &&
        in.source.getType() == cotangents.getType(operand)) {
      ++cotangents.numFree;
      cotangents.add(operand, in.source);
      return true;
    }
  return false;
}

/// Adds a term to the cotangent of `operand`, which the value `primal` represents in the body. If a
/// single elementwise op computes the cotangent, sets `whole` to the result of this op.
LogicalResult StructuredAdjoint::differentiateOperand(Value operand, AffineMap map, Value primal,
                                                      Value *whole) {
  Sweep sweep(b.getContext(), loc);
  if (failed(sweepBody(sweep)))
    return failure();
  Value gradient = sweep.gradientOf(primal);
  if (!gradient)
    return success(); // The gradient is zero.
  bool once = reachesOnce(map, operand.getType());
  if (once && passThrough(operand, map, sweep, gradient))
    return success();
  auto tensor = dyn_cast<RankedTensorType>(operand.getType());
  Type element = cotangents.getElementType(operand);
  if (!once)
    element = getWorkingType(element);
  auto type = RankedTensorType::get(tensor ? tensor.getShape() : ArrayRef<int64_t>(), element);
  Value previous = tensor ? cotangents.take(operand) : Value();
  bool joins = previous && (once || getElementTypeOrSelf(previous) == element);
  Value result = build(sweep, {map, type, once, joins ? previous : Value()}, gradient);
  if (!tensor)
    result = tensor::ExtractOp::create(b, loc, result, ValueRange{});
  if (whole && once && !previous)
    *whole = result;
  cotangents.add(operand, result);
  if (previous && !joins)
    cotangents.add(operand, previous);
  return success();
}

/// Computes the cotangent of `to` as a sum over `gradient`, the cotangent of `from`. The two
/// operands must have the same scalar gradient, as in x + bias. Such a sum avoids a second
/// execution of the body.
void StructuredAdjoint::reduceFrom(const Input &from, Value gradient, const Input &to) {
  Type element = cotangents.getElementType(to.source), work = getWorkingType(element);
  Value previous = cotangents.take(to.source);
  bool joins = previous && getElementTypeOrSelf(previous) == work;
  Value init = joins ? previous : buildZeros(b, loc, withElementType(to.source.getType(), work));
  Value total = buildSum(b, loc, gradient, from.map, init, to.map,
                         [](OpBuilder &, Location, ValueRange x) { return x[0]; });
  cotangents.add(to.source, total);
  if (previous && !joins)
    cotangents.add(to.source, previous);
}

LogicalResult StructuredAdjoint::differentiateInputs() {
  // Process the operands in two groups. Exactly one iteration reads each element of an operand of
  // the first group.
  SmallVector<Input> targets;
  for (bool once : {true, false})
    for (const Input &in : inputs)
      if (in.role == Input::Primal && active.contains(in.primal) &&
          reachesOnce(in.map, in.source.getType()) == once)
        targets.push_back(in);
  // Build one reverse sweep for all operands, to find equal scalar gradients.
  Sweep all(b.getContext(), loc);
  if (failed(sweepBody(all)))
    return failure();
  // Inputs whose cotangents elementwise ops have computed, each with its cotangent.
  SmallVector<std::pair<const Input *, Value>> done;
  for (const Input &in : targets) {
    Value gradient = all.gradientOf(in.primal);
    auto same = llvm::find_if(
        done, [&](auto &d) { return gradient && all.gradientOf(d.first->primal) == gradient; });
    if (same != done.end() && isa<RankedTensorType>(in.source.getType())) {
      reduceFrom(*same->first, same->second, in);
      continue;
    }
    Value whole;
    if (failed(differentiateOperand(in.source, in.map, in.primal, &whole)))
      return failure();
    if (whole)
      done.push_back({&in, whole});
  }
  return success();
}

LogicalResult StructuredAdjoint::run() {
  if (failed(collect()))
    return failure();
  if (forms.empty())
    return success();
  collectInputs();
  collectActive();
  for (const ResultForm &form : forms) {
    if (form.kind == ResultForm::Extreme)
      shareTies(form);
    differentiateInit(form);
  }
  if (isPlainContraction(op)) {
    Value g = cotangentOf(forms.front()).source;
    for (unsigned i : {0, 1})
      if (active.contains(body.getArgument(i)) && !differentiateContraction(op, g, i, cotangents) &&
          failed(differentiateOperand(inputs[i].source, inputs[i].map, inputs[i].primal)))
        return failure();
    return success();
  }
  if (failed(differentiateInputs()))
    return failure();
  AffineMap nowhere = AffineMap::get(op.getNumLoops(), 0, b.getContext());
  for (Value v : active) {
    if (v.getParentBlock() != &body) {
      if (failed(differentiateOperand(v, nowhere, v)))
        return failure();
    } else if (auto extract = v.getDefiningOp<tensor::ExtractOp>()) {
      if (failed(scatter(extract)))
        return failure();
    }
  }
  return success();
}

LogicalResult fsdp::differentiateStructured(linalg::LinalgOp op, Cotangents &cotangents) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation()))
    return StructuredAdjoint(generic, generic.getResults(), cotangents).run();
  IRRewriter rewriter(op.getContext());
  rewriter.setInsertionPoint(op);
  auto copy = cast<linalg::LinalgOp>(rewriter.clone(*op));
  FailureOr<linalg::GenericOp> generic = linalg::generalizeNamedOp(rewriter, copy);
  if (failed(generic)) {
    rewriter.eraseOp(copy);
    return op.emitError("no gradient for '")
           << op->getName() << "': it cannot be written as linalg.generic";
  }
  LogicalResult result = StructuredAdjoint(*generic, op->getResults(), cotangents).run();
  rewriter.eraseOp(*generic);
  return result;
}
