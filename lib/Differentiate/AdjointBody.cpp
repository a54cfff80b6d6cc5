//===- AdjointBody.cpp - Primal slice, reverse sweep, new generic ---------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds the body of an adjoint in a detached block. The block has one argument for each value that
// the body may read. After the block is built, dead code and inputs that the body does not read are
// removed, and the block is moved into a linalg.generic:
//
//   ^bb0(x.., ȳ.., y.., [previous,] out):
//     slice of the primal body
//     reverse sweep from the terms of the results
//     yield gradient (+ out | + previous)
//
//===----------------------------------------------------------------------===//

#include "StructuredAdjoint.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Clones the ops of `slice` into the block of `sweep`. `slice` contains no cf.assert, so only the
/// forward executes asserts.
void StructuredAdjoint::clonePrimal(Sweep &sweep) {
  for (const Input &in : inputs) {
    Value argument = sweep.block.addArgument(getElementTypeOrSelf(in.source), loc);
    if (in.role == Input::Primal)
      sweep.mapping.map(in.primal, argument);
    else
      (in.role == Input::Cotangent ? sweep.g : sweep.y)[in.index] = argument;
  }
  for (Operation &o : body.without_terminator())
    if (slice.contains(&o))
      sweep.cloned.push_back(sweep.b.clone(o, sweep.mapping));
}

void StructuredAdjoint::seedTerms(Sweep &sweep) {
  OpBuilder &b = sweep.b;
  for (const ResultForm &form : forms)
    for (const ResultForm::Term &term : form.terms) {
      Value t = sweep.mapping.lookupOrDefault(term.value);
      Value g = convertFloat(b, loc, sweep.g[form.index], getWorkingType(t.getType()));
      if (form.kind == ResultForm::Extreme) {
        Value y = sweep.y[form.index];
        Value won = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                          convertFloat(b, loc, t, y.getType()), y);
        g = arith::SelectOp::create(b, loc, won, g, buildZeros(b, loc, g.getType()));
      } else if (term.negated) {
        g = arith::NegFOp::create(b, loc, g);
      }
      sweep.reverse.seed(t, g);
    }
}

LogicalResult StructuredAdjoint::sweepBody(Sweep &sweep) {
  clonePrimal(sweep);
  for (Value v : active)
    sweep.reverse.activate(sweep.mapping.lookupOrDefault(v));
  seedTerms(sweep);
  if (failed(sweep.reverse.run(sweep.cloned)))
    return failure();
  // If the reverse sweep needs the value that the body yields (for example, for exp), read the
  // result of the forward instead of computing the value again.
  for (const ResultForm &form : forms) {
    Value y = sweep.y.lookup(form.index);
    if (!y || form.kind != ResultForm::Map)
      continue;
    Value t = sweep.mapping.lookupOrDefault(form.terms.front().value);
    if (Operation *def = t.getDefiningOp(); def && def->getBlock() == &sweep.block)
      t.replaceAllUsesWith(y);
  }
  return success();
}

/// Builds a generic that writes `value` to `target`. The ops in the block of `sweep` compute
/// `value`.
Value StructuredAdjoint::build(Sweep &sweep, const Target &target, Value value) {
  OpBuilder &inner = sweep.b;
  Type element = target.type.getElementType(), work = getWorkingType(element);
  SmallVector<Input> ins = inputs;
  Value out;
  if (target.once) {
    if (target.previous) {
      ins.push_back({Input::Previous, target.previous, target.map, {}});
      Value before = sweep.block.addArgument(getElementTypeOrSelf(target.previous), loc);
      value = arith::AddFOp::create(inner, loc, convertFloat(inner, loc, before, work),
                                    convertFloat(inner, loc, value, work));
    }
    out = tensor::EmptyOp::create(b, loc, target.type.getShape(), element);
    sweep.block.addArgument(element, loc);
    value = convertFloat(inner, loc, value, element);
  } else {
    out = target.previous ? target.previous : buildZeros(b, loc, target.type);
    Value running = sweep.block.addArgument(element, loc);
    value = arith::AddFOp::create(inner, loc, running, convertFloat(inner, loc, value, element));
  }
  linalg::YieldOp::create(inner, loc, value);
  return finish(sweep.block, std::move(ins), target.map, out);
}

/// If no indexing map has a loop as a result, the extent of the loop is undefined. For all these
/// loops, adds one input, an empty tensor whose dimensions define the missing extents.
void StructuredAdjoint::addMissingExtents(Block &block, SmallVector<Input> &ins, AffineMap outMap) {
  llvm::SmallDenseSet<unsigned> known;
  auto note = [&](AffineMap map) {
    for (AffineExpr result : map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(result))
        known.insert(dim.getPosition());
  };
  note(outMap);
  for (const Input &in : ins)
    note(in.map);
  SmallVector<int64_t> extents, ranges = op.getStaticLoopRanges();
  SmallVector<AffineExpr> dims;
  for (unsigned d = 0; d < op.getNumLoops(); ++d)
    if (!known.contains(d)) {
      extents.push_back(ranges[d]);
      dims.push_back(b.getAffineDimExpr(d));
    }
  if (dims.empty())
    return;
  Value empty = tensor::EmptyOp::create(b, loc, extents, b.getF32Type());
  block.insertArgument(ins.size(), b.getF32Type(), loc);
  ins.push_back(
      {Input::Extent, empty, AffineMap::get(op.getNumLoops(), 0, dims, b.getContext()), {}});
}

Value StructuredAdjoint::finish(Block &block, SmallVector<Input> ins, AffineMap outMap, Value out) {
  for (Operation &o : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&o))
      o.erase();
  for (int i = ins.size() - 1; i >= 0; --i)
    if (block.getArgument(i).use_empty()) {
      block.eraseArgument(i);
      ins.erase(ins.begin() + i);
    }
  addMissingExtents(block, ins, outMap);
  SmallVector<Value> sources;
  SmallVector<AffineMap> maps;
  for (const Input &in : ins) {
    sources.push_back(in.source);
    maps.push_back(in.map);
  }
  maps.push_back(outMap);
  auto adjoint =
      linalg::GenericOp::create(b, loc, out.getType(), sources, out, maps, inferIterators(outMap));
  Block &target = adjoint.getRegion().emplaceBlock();
  for (BlockArgument argument : block.getArguments())
    argument.replaceAllUsesWith(target.addArgument(argument.getType(), loc));
  target.getOperations().splice(target.end(), block.getOperations());
  return adjoint.getResult(0);
}
