//===- PrecisionPlan.cpp - Choice of values to narrow -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %h = gather_rows %wte        activation        narrow
//   %s = row sum of %h           statistic         f32
//   %m = %s / C                  of statistics     f32
//   %n = (%h - %m) · %γ          activation        narrow
//   %o = attention %q, %k, %v    activation        narrow; its log-sum-exp is a statistic
//   %z = %n · %wte               output            f32
//   %l = cross_entropy %z        loss              f32
//
//  1. Forward: find the flowing values, which are f32 tensors that carry parameters, batch inputs
//     or activations. Parameters and batch inputs flow. The result of a product, attention, lookup,
//     softmax, map or view flows if an operand flows. Results of reductions and scalars do not
//     flow.
//  2. Backward: trace the loss back through values that do not flow. The first flowing value on
//     each of these paths is an output of the model. If maps compute the output from the result of
//     a product, the results of these maps are also outputs, unless another op reads them.
//  3. A flowing value is narrow unless it is an output, a batch argument, or a parameter that
//     --keep-f32 names. The result of a product remains f32 if its only reader is a sum. The result
//     of a map remains f32 if the map has a constant outside the range of the narrow type. O(ops)
//
//===----------------------------------------------------------------------===//

#include "PrecisionPlan.h"
#include "fsdp/IR/StopGradient.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isFloat32Tensor(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type && type.getElementType().isF32();
}

bool fsdp::isViewOfOperand(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp, tensor::CastOp,
             StopGradientOp>(op);
}

/// Returns `v` if it is a block argument, or the block argument that `v` converts to another type.
/// Returns null otherwise.
static BlockArgument getConvertedArgument(Value v) {
  while (Operation *def = v.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(def))
      break;
    v = def->getOperand(0);
  }
  return dyn_cast<BlockArgument>(v);
}

/// Returns whether `op` computes out + a·b over windows, as a convolution does. (When this pass
/// runs, matrix products are linalg.contract, and all other sums of products have few results.)
static bool isWindowProduct(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0)
    return false;
  if (llvm::all_of(op.getIndexingMapsArray(),
                   [](AffineMap map) { return map.isProjectedPermutation(); }))
    return false;
  Block &body = *op.getBody();
  auto sum = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum)
    return false;
  unsigned out = sum.getRhs() == body.getArgument(2) ? 1 : 0;
  auto product = sum->getOperand(1 - out).getDefiningOp<arith::MulFOp>();
  if (!product || sum->getOperand(out) != body.getArgument(2))
    return false;
  BlockArgument l = getConvertedArgument(product.getLhs()),
                r = getConvertedArgument(product.getRhs());
  return l && r && l != r;
}

bool fsdp::isProduct(Operation *op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && !isWindowProduct(generic))
    return false;
  if (!isa<linalg::ContractOp, linalg::GenericOp>(op))
    return false;
  return cast<RankedTensorType>(op->getResultTypes()[0]).getRank() > 0;
}

llvm::APFloat fsdp::clampToRange(const llvm::APFloat &value, FloatType type) {
  auto largest = llvm::APFloat::getLargest(type.getFloatSemantics(), value.isNegative());
  bool lost;
  largest.convert(value.getSemantics(), llvm::APFloat::rmNearestTiesToEven, &lost);
  bool beyond =
      value.isFinite() && abs(value).compare(abs(largest)) == llvm::APFloat::cmpGreaterThan;
  return beyond ? largest : value;
}

/// Returns whether all ops of `body` that use the constant `v` select, add or compare it, and none
/// multiplies it. Such a constant means "very small" or "very large", and may be clamped.
static bool isOnlyPlaced(Value v, Block *body) {
  return llvm::all_of(v.getUsers(), [&](Operation *user) {
    if (user->getBlock() != body || isa<linalg::YieldOp, arith::CmpFOp>(user))
      return true; // ops outside the body may use the constant in any way
    return isa<arith::SelectOp, arith::AddFOp, arith::MaximumFOp, arith::MinimumFOp,
               arith::MaxNumFOp, arith::MinNumFOp>(user) &&
           isOnlyPlaced(user->getResult(0), body);
  });
}

/// Returns whether the formula of `yielded` contains a constant that must not be clamped to the
/// range of the narrow type. A constant may be clamped if it is a mask, or if clamping changes it
/// by less than 1 %. (Clamping to bf16 changes the lowest f32 number by less than 1 %.)
bool PrecisionPlan::holdsForeignNumber(linalg::GenericOp op, Value yielded) const {
  DenseSet<Operation *> seen;
  SmallVector<Value> worklist{yielded};
  while (!worklist.empty()) {
    Value v = worklist.pop_back_val();
    Operation *def = v.getDefiningOp();
    llvm::APFloat value(0.0f);
    if (!def || !seen.insert(def).second)
      continue;
    if (matchPattern(v, m_ConstantFloat(&value)) && value.isFinite()) {
      llvm::APFloat clamped = clampToRange(value, narrow);
      if (clamped.bitwiseIsEqual(value) ||
          value.convertToDouble() / clamped.convertToDouble() < 1.01)
        continue;
      if (!isOnlyPlaced(v, op.getBody()))
        return true;
    } else if (def->getBlock() == op.getBody()) {
      llvm::append_range(worklist, def->getOperands());
    }
  }
  return false;
}

/// Returns whether the only reader of the product `v` is a sum with a bias or a residual. Such a
/// sum can read the f32 accumulators of the product, and no gradient depends on the value of the
/// product.
static bool isReadByOneSum(Value v) {
  if (!v.hasOneUse())
    return false;
  OpOperand &use = *v.getUses().begin();
  auto sum = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!sum || sum.getNumReductionLoops() != 0 || !sum.isDpsInput(&use) ||
      !sum.getMatchingIndexingMap(&use).isIdentity())
    return false;
  return llvm::all_of(sum.getBody()->without_terminator(), [](Operation &op) {
    return isa<arith::AddFOp, arith::SubFOp, arith::ExtFOp, arith::TruncFOp>(op);
  });
}

bool fsdp::isMove(linalg::GenericOp op) {
  return op.getNumDpsInputs() == 1 && op.getNumDpsInits() == 1 && op.getNumReductionLoops() == 0 &&
         op.getBody()->getTerminator()->getOperand(0) == op.getBody()->getArgument(0);
}

PrecisionPlan::PrecisionPlan(func::FuncOp func, FloatType narrow, bool wideOutputs,
                             const KeptWide &keep)
    : narrow(narrow), keep(keep), kept(keep.parameters) {
  for (BlockArgument arg : func.getArguments()) {
    if (!isFloat32Tensor(arg))
      continue;
    flowing.insert(arg);
    if (func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr) && !kept.contains(arg))
      narrowValues.insert(arg);
  }
  Block &body = func.getBody().front();
  for (Operation &op : body.without_terminator())
    collectFlow(&op);
  if (wideOutputs)
    for (Value result : body.getTerminator()->getOperands())
      visitLoss(result);
  for (Operation &op : body.without_terminator())
    decide(&op);
}

void PrecisionPlan::collectFlow(Operation *op) {
  auto any = [&](ValueRange values) {
    return llvm::any_of(values, [&](Value v) { return flows(v); });
  };
  bool result = false;
  if (isProduct(op) ||
      isa<AttentionOp, linalg::SoftmaxOp, GatherRowsOp, tensor::ConcatOp, tensor::InsertSliceOp>(
          op))
    result = any(op->getOperands());
  else if (isViewOfOperand(op) || isa<tensor::PadOp>(op))
    result = flows(op->getOperand(0));
  else if (auto generic = dyn_cast<linalg::GenericOp>(op);
           generic && generic.getNumReductionLoops() == 0)
    result = llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
      // A float narrower than f32 is a parameter or is computed from a parameter.
      Type type = getElementTypeOrSelf(operand.get());
      return generic.payloadUsesValueFromOperand(&operand) &&
             (flows(operand.get()) || (isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32));
    });
  ValueRange results = op->getResults();
  if (isa<AttentionOp>(op))
    results = results.take_front(); // exclude the log-sum-exp
  for (Value v : results)
    if (result && isFloat32Tensor(v) && cast<RankedTensorType>(v.getType()).getRank() > 0)
      flowing.insert(v);
  auto move = dyn_cast<linalg::GenericOp>(op);
  if ((isViewOfOperand(op) || (move && isMove(move))) && kept.contains(op->getOperand(0)))
    kept.insert_range(results);
}

bool PrecisionPlan::isKept(Operation *op) const {
  if (isa<AttentionOp>(op))
    return keep.attention;
  return isProduct(op) && llvm::any_of(cast<linalg::LinalgOp>(op).getDpsInputs(),
                                       [&](Value v) { return kept.contains(v); });
}

/// Traces the loss back from `v` to the outputs.
void PrecisionPlan::visitLoss(Value v) {
  if (!visited.insert(v).second)
    return;
  if (flows(v)) {
    if (!isa<BlockArgument>(v)) {
      ++numOutputs;
      keepWide(v);
    }
    return;
  }
  if (Operation *def = v.getDefiningOp())
    for (Value operand : def->getOperands())
      if (isFloat32Tensor(operand))
        visitLoss(operand);
}

/// Keeps the output `v` in f32. Walks back from `v` through views and maps, up to the result of a
/// product. Also keeps those values on the way in f32 that only one op reads.
void PrecisionPlan::keepWide(Value v) {
  Operation *def = v.getDefiningOp();
  if (!def || !flows(v) || !wide.insert(v).second)
    return;
  if (isViewOfOperand(def))
    return keepWide(def->getOperand(0));
  if (isa<linalg::GenericOp, linalg::SoftmaxOp, tensor::ConcatOp>(def) && !isProduct(def))
    for (Value operand : def->getOperands())
      if (operand.hasOneUse())
        keepWide(operand);
}

void PrecisionPlan::decide(Operation *op) {
  for (OpResult v : op->getResults()) {
    if (!flows(v))
      continue;
    bool result = !wide.contains(v) && !kept.contains(v);
    if (isViewOfOperand(op)) {
      result = isNarrow(op->getOperand(0));
    } else if (isProduct(op) && isReadByOneSum(v)) {
      summed.insert(v);
    } else if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && !isProduct(op)) {
      Value yielded = generic.getBody()->getTerminator()->getOperand(v.getResultNumber());
      if (holdsForeignNumber(generic, yielded))
        foreign.insert(v);
    }
    if (result && !summed.contains(v) && !foreign.contains(v))
      narrowValues.insert(v);
  }
}

/// Returns the reason why `v` remains f32. `measured` contains the statistics before `v`. A
/// statistic is an f32 value that does not flow, but is computed from flowing values or from other
/// statistics.
StringRef PrecisionPlan::getReason(Value v, DenseSet<Value> &measured) const {
  if (kept.contains(v))
    return "by --keep-f32";
  if (wide.contains(v))
    return "read by the loss";
  if (summed.contains(v))
    return "product read by a sum";
  if (foreign.contains(v))
    return "number out of range";
  if (flows(v))
    return "view or batch input";
  Operation *def = v.getDefiningOp();
  if (llvm::none_of(def->getOperands(),
                    [&](Value in) { return flows(in) || measured.contains(in); }))
    return "table";
  measured.insert(v);
  return "statistic";
}

llvm::MapVector<StringRef, PrecisionPlan::WideValues>
PrecisionPlan::countWide(func::FuncOp func) const {
  llvm::MapVector<StringRef, WideValues> counts;
  DenseSet<Value> measured;
  auto count = [&](Value v) {
    if (!isFloat32Tensor(v) || isNarrow(v))
      return;
    WideValues &values = counts[getReason(v, measured)];
    ++values.count;
    values.elements += cast<RankedTensorType>(v.getType()).getNumElements();
  };
  for (BlockArgument arg : func.getArguments())
    if (func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr))
      count(arg);
  for (Operation &op : func.getBody().front().without_terminator())
    if (!isa<tensor::EmptyOp, linalg::FillOp>(op) && !op.hasTrait<OpTrait::ConstantLike>())
      llvm::for_each(op.getResults(), count);
  return counts;
}
