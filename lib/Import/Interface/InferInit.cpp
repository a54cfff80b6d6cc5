//===- InferInit.cpp - Infer initial values from uses -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Infers initial values of parameters from their uses, if the model gives no initial values:
//
//   read by a contraction, a lookup or attention      normal, mean 0, σ 0.02
//   rank ≥ 2, added (position embeddings)             normal, mean 0, σ 0.02
//   rank ≥ 2, in a sum of products (a 1×H gate)       normal, mean 0, σ 0.02
//   added (a bias, or a scale to which 1 is added)    0
//   multiplied and not added (the scale of a norm)    1
//   not read                                          0
//   integers                                          0, with a warning unless the file has values
//
// Uses of views, slices, copies and casts of a parameter count as uses of the parameter. A remark
// lists the inferred values. Values from a weights file or from the file of --params-file have
// precedence.
//
//===----------------------------------------------------------------------===//

#include "Structure/Structured.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_INFERINITPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct InferInitPass : public fsdp::impl::InferInitPassBase<InferInitPass> {
  using InferInitPassBase::InferInitPassBase;
  void runOnOperation() override;
};

/// Each member is true if a parameter has at least one use of this kind.
struct Uses {
  bool contracted = false, added = false, multiplied = false, summed = false;
};
} // namespace

/// Adds to `uses` the uses of the scalar `value` inside a body. Also adds the uses of values that
/// casts, selects and other ops compute from the scalar. If a generic yields one of these values,
/// appends the result of the generic to `further`.
static void collectScalar(Value value, Uses &uses, SmallVectorImpl<Value> &further,
                          unsigned depth) {
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    if (isa<arith::AddFOp, arith::SubFOp>(op))
      uses.added = true;
    else if (isa<arith::MulFOp, arith::DivFOp>(op))
      uses.multiplied = true;
    else if (isa<linalg::YieldOp>(op))
      further.push_back(op->getParentOp()->getResult(use.getOperandNumber()));
    else if (op->getNumResults() == 1 && depth < 8)
      collectScalar(op->getResult(0), uses, further, depth + 1);
  }
}

/// Returns whether `op` computes sums of products in which `operand` is a factor. The sums must run
/// over a loop that indexes `operand`. `op` may be a product with a matrix of one row or column.
static bool sumsProducts(linalg::LinalgOp op, OpOperand &operand) {
  auto iterators = op.getIteratorTypesArray();
  AffineMap map = op.getMatchingIndexingMap(&operand);
  bool isReduced = llvm::any_of(llvm::seq<unsigned>(0, op.getNumLoops()), [&](unsigned loop) {
    return iterators[loop] == utils::IteratorType::reduction && map.isFunctionOfDim(loop);
  });
  Block *body = op.getBlock();
  auto isSum = [&](Operation *user) {
    return isa<arith::AddFOp>(user) && llvm::any_of(user->getOperands(), [&](Value other) {
             auto argument = dyn_cast<BlockArgument>(other);
             return argument && argument.getOwner() == body &&
                    argument.getArgNumber() >= op.getNumDpsInputs();
           });
  };
  if (!isReduced)
    return false;
  SmallVector<Operation *> users =
      llvm::to_vector(op.getMatchingBlockArgument(&operand).getUsers());
  for (size_t i = 0; i < users.size(); ++i) {
    if (isa<arith::ExtFOp>(users[i]))
      users.append(users[i]->user_begin(), users[i]->user_end());
    if (isa<arith::MulFOp>(users[i]) && llvm::any_of(users[i]->getUsers(), isSum))
      return true;
  }
  return false;
}

/// Adds to `uses` the uses of the captured operand `number` in the regions of `op`.
static void collectCaptured(AttentionOp op, unsigned number, Uses &uses,
                            SmallVectorImpl<Value> &further) {
  for (auto [region, own] : {std::pair(&op.getScoreMod(), 5u), std::pair(&op.getMaskMod(), 4u),
                             std::pair(&op.getWeightMod(), 4u)})
    if (!region->empty())
      for (Operation *user : region->getArgument(own + number).getUsers())
        collectScalar(user->getResult(0), uses, further, 0);
}

static Uses collectUses(Value parameter) {
  Uses uses;
  SmallVector<Value> work{parameter};
  llvm::SmallPtrSet<void *, 16> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value.getAsOpaquePointer()).second)
      continue;
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      if (isa<GatherRowsOp>(op)) {
        uses.contracted = true;
      } else if (auto attention = dyn_cast<AttentionOp>(op)) {
        if (use.getOperandNumber() < 3)
          uses.contracted = true;
        else
          collectCaptured(attention, use.getOperandNumber() - 3, uses, work);
      } else if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
        uses.summed |= sumsProducts(structured, use);
        if (isContraction(structured))
          uses.contracted = true;
        else
          collectScalar(structured.getMatchingBlockArgument(&use), uses, work, 0);
      } else if (isa_and_nonnull<tensor::TensorDialect>(op->getDialect()) &&
                 op->getNumResults() == 1) {
        work.push_back(op->getResult(0));
      }
    }
  }
  return uses;
}

static InitAttr inferInit(BlockArgument parameter) {
  auto make = [&](InitKind kind, double a, double b) {
    return InitAttr::get(parameter.getContext(), kind, APFloat(a), APFloat(b));
  };
  if (!isa<FloatType>(getElementTypeOrSelf(parameter)))
    return make(InitKind::constant, 0, 0);
  Uses uses = collectUses(parameter);
  int64_t rank = cast<RankedTensorType>(parameter.getType()).getRank();
  if (uses.contracted || ((uses.added || uses.summed) && rank >= 2))
    return make(InitKind::normal, 0, 0.02);
  if (uses.multiplied && !uses.added)
    return make(InitKind::constant, 1, 0);
  return make(InitKind::constant, 0, 0);
}

void InferInitPass::runOnOperation() {
  func::FuncOp func = getOperation();
  llvm::MapVector<Attribute, SmallVector<StringRef>> inferred;
  auto values = getOperation()->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(
      FSDPDialect::valuesAttr);
  for (BlockArgument arg : func.getArguments()) {
    auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::paramAttr);
    if (!name || func.getArgAttr(arg.getArgNumber(), FSDPDialect::initAttr))
      continue;
    InitAttr init = inferInit(arg);
    func.setArgAttr(arg.getArgNumber(), FSDPDialect::initAttr, init);
    if (isa<FloatType>(getElementTypeOrSelf(arg)))
      inferred[init].push_back(name.getValue());
    else if (!arg.use_empty() && !(values && values.contains(name.getValue())))
      emitWarning(arg.getLoc())
          << "integer parameter '" << name.getValue() << "' is not trained and has no initial "
          << "values: it is 0 unless fsdp-run --init gives it; set 'fsdp.init' or 'fsdp.values'";
    ++numInferred;
  }
  for (auto &[init, names] : inferred) {
    if (values)
      llvm::erase_if(names, [&](StringRef name) { return values.contains(name); });
    if (names.empty())
      continue;
    auto attr = cast<InitAttr>(init);
    InFlightDiagnostic diag = emitRemark(func.getLoc(), "inferred initial values ");
    if (attr.getKind() == InitKind::normal)
      diag << "normal(0, 0.02)";
    else
      diag << (attr.getA().isZero() ? "0" : "1");
    diag << " for " << names.size() << " parameters: " << llvm::join(names, ", ");
  }
}
