//===- CloneCheapForward.cpp - Recompute what costs nothing to save -------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Recomputes cheap forward values in the backward instead of saving them. The usual case is a
// normalised activation whose input is saved anyway:
//
//   forward    %n = (%x - %mean) · %rstd · %γ + %β     %y = %n · W
//   backward   W̄ = ȳᵀ · %n      γ̄ reads %x, %mean, %rstd
//   after      W̄ = ȳᵀ · %n'     %n' computed in front of it; %n is not saved
//
// If the backward reads a forward value, the pass clones the value if both of these conditions
// hold:
//  (a) The op of the value is a slice, a concatenation, fsdp.random, or a map of at most `max-ops`
//      scalar ops. The only math functions in the map are square roots, absf, fma and copysign.
//  (b) The operands that are saved only because of the clone have together at most 1/8 of the bytes
//  of the value. Parameters, arguments, constants, and
//  values that are saved anyway do not count.
//
// Rows that the forward gathers over the axis `tensor` are gathered again (RepeatRows.cpp). If an
// op in the backward, or a clone that only moves elements, reads a reshaped forward value, it gets
// a reshape of its own. After that, the pass visits the forward values from last to first. The
// operands of a clone remain saved, so a clone never reads another clone. The time is O(ops).
//
// This pass recomputes only cheap values. The stage Plan recomputes costly values, because the
// compiler can choose these only after it has packed the arena.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Differentiate/Passes.h"

#include "ForwardPart.h"
#include "ParameterDerived.h"
#include "RepeatRows.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_CLONECHEAPFORWARDPASS
#include "fsdp/Differentiate/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
class CheapClones {
public:
  CheapClones(func::FuncOp func, unsigned maxOps) : func(func), forward(func), maxOps(maxOps) {}

  void moveReshapes();
  /// Returns the values to clone, in program order.
  SmallVector<Value> choose();
  void clone(ArrayRef<Value> values);
  int64_t getSavedBytes() { return forward.countSavedBytes(); }

private:
  void copyReshapes(Operation *reader);
  bool isCheap(Operation *op);
  bool isAvailable(Value v);

  func::FuncOp func;
  ForwardPart forward;
  // Saved values, each with its first reader in the backward.
  llvm::MapVector<Value, Operation *> saved;
  DenseSet<Value> pinned; // operands of clones, which must remain saved
  ParameterDerived derived;
  unsigned maxOps;
};
} // namespace

/// Returns whether the op only gives a computed value another shape.
static bool isReshape(Operation *op) {
  return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) &&
         !isa<BlockArgument>(op->getOperand(0));
}

/// Returns the forward value that has to be saved for a clone of the op to read `operand`. A clone
/// that only moves elements gets a reshape of its own.
static Value findSaved(Operation *op, Value operand) {
  while (movesElements(op) && isReshape(operand.getDefiningOp()))
    operand = operand.getDefiningOp()->getOperand(0);
  return operand;
}

/// If the op reads a reshaped forward value, gives the op its own copy of the reshape.
void CheapClones::copyReshapes(Operation *reader) {
  for (OpOperand &operand : reader->getOpOperands())
    for (OpOperand *use = &operand; forward.computes(use->get());) {
      Operation *view = use->get().getDefiningOp();
      if (!isReshape(view))
        break;
      Operation *copy = OpBuilder(use->getOwner()).clone(*view);
      use->set(copy->getResult(0));
      use = &copy->getOpOperand(0);
    }
}

/// Lets the backward read forward values before they are reshaped.
void CheapClones::moveReshapes() {
  for (Operation &op : llvm::make_early_inc_range(func.getBody().front()))
    if (!forward.contains(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      copyReshapes(&op);
}

static bool isCall(Operation &op) {
  return isa<math::MathDialect>(op.getDialect()) &&
         !isa<math::AbsFOp, math::FmaOp, math::CopySignOp, math::SqrtOp, math::RsqrtOp>(op);
}

bool CheapClones::isCheap(Operation *op) {
  // A random number depends only on its index and the op's operands, so a clone computes equal
  // numbers.
  if (isa<RandomOp>(op))
    return true;
  if (op->getNumResults() != 1 || !isViewOrMap(op) ||
      isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return false;
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured)
    return true;
  unsigned numOps = 0;
  for (Operation &o : *structured.getBlock()) {
    if (isCall(o) || o.getNumRegions() || isa<tensor::ExtractOp>(o))
      return false;
    numOps += !o.hasTrait<OpTrait::ConstantLike>();
  }
  // `numOps` includes the terminator.
  return numOps <= maxOps + 1;
}

/// Returns true if the backward can read `v` although no further tensor is saved for `v`.
bool CheapClones::isAvailable(Value v) {
  return !isa<RankedTensorType>(v.getType()) || isa<BlockArgument>(v) || isFree(v) ||
         derived.contains(v) || saved.contains(v) || pinned.contains(v);
}

SmallVector<Value> CheapClones::choose() {
  saved = forward.getSaved();
  SmallVector<Value> chosen;
  for (Operation &op : llvm::reverse(func.getBody().front())) {
    if (!forward.contains(&op) || !isCheap(&op))
      continue;
    Value v = op.getResult(0);
    if (!saved.contains(v) || pinned.contains(v) || derived.contains(v))
      continue;
    int64_t more = 0;
    for (Value operand : getAllOperands(&op))
      if (!isAvailable(findSaved(&op, operand)))
        more += countBytes(operand.getType());
    if (more * 8 > countBytes(v.getType()))
      continue;
    chosen.push_back(v);
    for (Value operand : getAllOperands(&op))
      if (forward.computes(operand))
        pinned.insert(findSaved(&op, operand));
  }
  return SmallVector<Value>(llvm::reverse(chosen));
}

/// Clones each value once, before its first reader in the backward.
void CheapClones::clone(ArrayRef<Value> values) {
  for (Value v : values) {
    OpBuilder b(saved.lookup(v));
    Operation *copy = b.clone(*v.getDefiningOp());
    copy->setAttr(FSDPDialect::recomputeAttr, b.getUnitAttr());
    v.replaceUsesWithIf(copy->getResult(0), [&](OpOperand &use) {
      Operation *user = func.getBody().front().findAncestorOpInBlock(*use.getOwner());
      return user != copy && !forward.contains(user) && !user->hasTrait<OpTrait::IsTerminator>();
    });
    if (movesElements(copy))
      copyReshapes(copy);
  }
}

namespace {
struct CloneCheapForwardPass : fsdp::impl::CloneCheapForwardPassBase<CloneCheapForwardPass> {
  using CloneCheapForwardPassBase::CloneCheapForwardPassBase;

  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal() || !hasGradients(func))
        continue;
      numRepeated += repeatRows(func);
      CheapClones clones(func, maxOps);
      int64_t before = clones.getSavedBytes();
      clones.moveReshapes();
      SmallVector<Value> values = clones.choose();
      clones.clone(values);
      numCloned += values.size();
      int64_t after = clones.getSavedBytes();
      bytesNotSaved += before - after;
      if (remarks)
        func.emitRemark() << values.size() << " ops computed again in the backward, which reads "
                          << after << " bytes of the forward instead of " << before;
    }
  }
};
} // namespace
