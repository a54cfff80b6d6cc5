//===- RegatherParameters.cpp - Gather parameters again in the backward ---===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements "reshard after forward". Gathered parameters are live only during the forward of their
// unit, and are gathered again for the backward. Between these two times, no value derived from the
// gathered parameters is live:
//
//   forward    %w = unshard %s @u site 0     %t = transpose %w    y = f(x, %t)
//   backward   %v = unshard %s @u site 1     %r = transpose %v    x̄ = f'(ȳ, %r)
//
// 1. A value is parameter-derived if it is a result of unshard, or a view or a map (an op without
//    reduction loops) that reads only parameter-derived tensors.
// 2. Walk the backward in order. Before the first reader of a parameter-derived value of the
//    forward, recompute this value. If the unit has reshard = true, an unshard op with site 1
//    gathers its parameters again. Otherwise, the recomputation reads the results of the unshard op
//    with site 0. The time is O(ops).
// 3. A unit with `within N` is gathered again among N neighbouring ranks only. After the last
//    reader of the unit's parameters in the forward, each rank keeps 1/N of the parameters. The
//    unshard of site 1 gathers these pieces:
//
//       %k = shard @u (%w)                 %v = unshard %k @u site 1
//
// lib/Plan later moves the gathers to earlier positions.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Differentiate/Passes.h"

#include "ForwardPart.h"
#include "ParameterDerived.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_REGATHERPARAMETERSPASS
#include "fsdp/Differentiate/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
class Regather {
public:
  explicit Regather(func::FuncOp func) : func(func), forward(func) {}

  void run();

  int64_t numGathers = 0, numViews = 0, keptBytes = 0;

private:
  Value deriveAgain(Value v, OpBuilder &b);
  Value keepPiece(UnshardOp unshard, UnitOp unit);
  bool isKept(Value v);

  func::FuncOp func;
  ForwardPart forward;
  ParameterDerived derived;
  IRMapping again; // maps each recomputed forward value to its copy
};

struct RegatherParametersPass : fsdp::impl::RegatherParametersPassBase<RegatherParametersPass> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal() || !hasGradients(func))
        continue;
      Regather regather(func);
      regather.run();
      numGathers += regather.numGathers;
      numViews += regather.numViews;
      keptBytes += regather.keptBytes;
      savedBytes += ForwardPart(func).countSavedBytes();
    }
  }
};
} // namespace

static UnitOp getUnit(UnshardOp unshard) {
  return SymbolTable::lookupNearestSymbolFrom<UnitOp>(unshard, unshard.getUnitAttr());
}

/// Returns true if `v` is a parameter of a unit that stays gathered after the forward.
bool Regather::isKept(Value v) {
  auto unshard = v.getDefiningOp<UnshardOp>();
  return unshard && !getUnit(unshard).getReshard();
}

/// Returns the tensor from which `unit` is gathered again. This tensor is the shard, or a larger
/// piece that each rank keeps. An fsdp.shard computes the piece. Adds this op after the last reader
/// of the parameters in the forward.
Value Regather::keepPiece(UnshardOp unshard, UnitOp unit) {
  std::optional<int64_t> within = unit.getWithin();
  auto shard = cast<RankedTensorType>(unshard.getShard().getType());
  // If the program runs on one rank, as the reference program does, the shard is at least as large
  // as the piece.
  if (!within || unit.getFlatSize() / *within <= shard.getDimSize(0))
    return unshard.getShard();
  // Include readers of views of the parameters, because they read the gathered buffer too.
  Operation *last = unshard;
  SmallVector<Value> open(unshard.getResults());
  Block *block = unshard->getBlock();
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      Operation *reader = block->findAncestorOpInBlock(*user);
      if (!forward.contains(reader))
        continue;
      if (last->isBeforeInBlock(reader))
        last = reader;
      if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp>(user))
        open.push_back(user->getResult(0));
    }
  OpBuilder b(unshard->getContext());
  b.setInsertionPointAfter(last);
  Type element = cast<RankedTensorType>(unshard.getResultTypes()[0]).getElementType();
  auto type = RankedTensorType::get({static_cast<int64_t>(unit.getFlatSize()) / *within}, element);
  keptBytes += countBytes(type);
  return ShardOp::create(b, unshard.getLoc(), type, unshard.getResults(), unshard.getUnitAttr());
}

Value Regather::deriveAgain(Value v, OpBuilder &b) {
  if (Value known = again.lookupOrNull(v))
    return known;
  if (!forward.computes(v) || !derived.contains(v) || isKept(v))
    return isFree(v) ? b.clone(*v.getDefiningOp())->getResult(0) : v;
  Operation *def = v.getDefiningOp();
  if (auto unshard = dyn_cast<UnshardOp>(def)) {
    auto second = cast<UnshardOp>(b.clone(*def));
    second.setSite(1);
    second.getShardMutable().assign(keepPiece(unshard, getUnit(unshard)));
    again.map(unshard.getResults(), second.getResults());
    ++numGathers;
    return again.lookup(v);
  }
  IRMapping operands;
  for (Value operand : getAllOperands(def))
    operands.map(operand, deriveAgain(operand, b));
  Operation *clone = b.clone(*def, operands);
  clone->setAttr(FSDPDialect::recomputeAttr, b.getUnitAttr());
  again.map(def->getResults(), clone->getResults());
  ++numViews;
  return again.lookup(v);
}

void Regather::run() {
  for (Operation &op : llvm::make_early_inc_range(func.getBody().front().without_terminator())) {
    if (forward.contains(&op))
      continue;
    OpBuilder b(&op);
    op.walk([&](Operation *nested) {
      for (OpOperand &operand : nested->getOpOperands())
        if (forward.computes(operand.get()) && derived.contains(operand.get()))
          operand.set(deriveAgain(operand.get(), b));
    });
  }
}
