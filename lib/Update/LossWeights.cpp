//===- LossWeights.cpp - Weights of losses by their targets -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   before   f(x, %w {fsdp.loss_weight})    %w * loss
//   after    f(x)                           total = all_reduce(Σ_k count(x[k]))
//                                           for k: count(x[k]) · n / total * loss
//
// 1. Count the targets of a micro-batch that are not ignored, and compute the weight from this
//    count and the total count. The ranks of an axis `context` have parts of the sequence, and the
//    stage Shard has counted the targets of the whole sequence.
// 2. After the loops over micro-batches are built, compute the total count at the beginning of the
//    program. The total count is the number of targets that are not ignored in all micro-batches of
//    all ranks.
//
// The mean of the weights is 1. The means of losses and gradients over all levels therefore equal
// the loss and the gradients of one batch that contains all micro-batches. If all targets are
// ignored, weights are 0. Counts are f64, so that their sums are exact and all programs compute
// equal sums. Takes O(ops that compute the targets) time.
//
//===----------------------------------------------------------------------===//

#include "LossWeights.h"
#include "Elementwise.h"
#include "fsdp/IR/StepBlock.h"
#include "fsdp/IR/TensorSplit.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Attribute of the op that counts the targets of a program with a weighed loss.
static constexpr StringLiteral countAttr = "fsdp.target_count";

/// Counts the targets that are not `ignored`, as an f64.
static Value createCount(OpBuilder &builder, CrossEntropyOp loss, int64_t ignored) {
  Location loc = loss.getLoc();
  Value targets = loss.getTargets();
  Value zero = createZeros(builder, loc, RankedTensorType::get({}, builder.getF64Type()));
  AffineMap rows = builder.getMultiDimIdentityMap(1),
            scalar = AffineMap::get(1, 0, builder.getContext());
  auto count = linalg::GenericOp::create(
      builder, loc, zero.getType(), targets, zero, ArrayRef{rows, scalar},
      utils::IteratorType::reduction, [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
        ImplicitLocOpBuilder b(nestedLoc, nested);
        Value skipped = arith::ConstantOp::create(b, b.getIntegerAttr(args[0].getType(), ignored));
        Value counts = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, args[0], skipped);
        Type type = args[1].getType();
        Value term = arith::SelectOp::create(b, counts, createConstant(b, type, 1.0),
                                             createConstant(b, type, 0.0));
        linalg::YieldOp::create(b, ValueRange{arith::AddFOp::create(b, args[1], term)});
      });
  return count.getResult(0);
}

/// Returns the number of targets of the whole sequence that are not ignored, by which the part of
/// the loss on a rank of the axis `context` is weighed. Returns null if there is none.
static Value findWholeCount(CrossEntropyOp loss) {
  for (Operation *user : loss.getLoss().getUsers()) {
    auto weighed = dyn_cast<linalg::GenericOp>(user);
    if (!weighed || weighed.getNumDpsInputs() != 3 || weighed.getDpsInputs()[0] != loss.getLoss())
      continue;
    for (Operation *reader : weighed.getResult(0).getUsers())
      if (auto sum = dyn_cast<AllReduceOp>(reader);
          sum && cast<StringAttr>(sum.getAxes()[0]).getValue() == contextAxis)
        return weighed.getDpsInputs()[2];
  }
  return {};
}

/// Builds count · terms / total, or 0 if all targets are ignored.
static Value createWeight(OpBuilder &builder, Location loc, Value count, Value total, int64_t terms,
                          Type type) {
  Value ins[] = {count, total};
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    Type wide = args[0].getType();
    Value zero = createConstant(b, wide, 0.0), one = createConstant(b, wide, 1.0);
    Value any = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, args[1], zero);
    // If all targets are ignored, divide by 1, which yields the weight 0.
    Value divisor = arith::SelectOp::create(b, any, args[1], one);
    Value scaled = arith::MulFOp::create(b, args[0], createConstant(b, wide, terms));
    Value weight = arith::DivFOp::create(b, scaled, divisor);
    return {castFloat(b, weight, args[2].getType())};
  };
  return createElementwise(builder, loc, ins, createEmpty(builder, loc, type), body).front();
}

/// Returns the ops that compute `value`, in order.
static SmallVector<Operation *> collectOps(Value value) {
  llvm::SetVector<Operation *> ops;
  SmallVector<Operation *> work{value.getDefiningOp()};
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!ops.insert(op))
      continue;
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *made = operand.getDefiningOp(); made && !op->isAncestor(made))
          work.push_back(made);
    });
  }
  auto list = ops.takeVector();
  llvm::sort(list, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return list;
}

/// Computes `value` again.
static Value cloneBefore(OpBuilder &builder, Value value) {
  IRMapping map;
  for (Operation *op : collectOps(value))
    builder.clone(*op, map);
  return map.lookup(value);
}

FailureOr<LossWeight> fsdp::createLossWeight(func::FuncOp func, int64_t terms, int64_t context) {
  auto args = func.getArguments();
  auto found = llvm::find_if(
      args, [&](BlockArgument arg) { return func.getArgAttr(arg.getArgNumber(), lossWeightAttr); });
  if (found == args.end())
    return LossWeight();
  BlockArgument arg = *found;
  for (Operation &op : func.getBody().front())
    if (op.removeAttr(countAttr)) // weighReference() has added the weight
      return LossWeight{arg, op.getResult(0), collectOps(op.getResult(0))};
  auto losses = llvm::to_vector(func.getBody().front().getOps<CrossEntropyOp>());
  for (CrossEntropyOp loss : losses)
    if (!loss.getIgnoreIndex() || loss.getTargets() != losses.front().getTargets() ||
        loss.getIgnoreIndex() != losses.front().getIgnoreIndex())
      return loss.emitError("expected every 'fsdp.cross_entropy' of a program with '")
             << lossWeightAttr << "' to ignore the same targets";
  if (losses.empty())
    return mlir::emitError(arg.getLoc(), "expected an 'fsdp.cross_entropy', whose targets give '")
           << lossWeightAttr << "'";

  CrossEntropyOp loss = losses.front();
  OpBuilder builder(loss);
  Value count = context > 1 ? findWholeCount(loss) : Value();
  if (count) // the backward may read the weight before this op
    count = cloneBefore(builder, count);
  else if (context > 1)
    return loss.emitError(
        "expected a product with the part of its targets that count, and a sum of "
        "it over axis 'context'; run the Shard stage first");
  else
    count = createCount(builder, loss, *loss.getIgnoreIndex());
  SmallVector<Operation *> ops = collectOps(count);
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (auto outer = dyn_cast<BlockArgument>(operand);
          !isMemoryEffectFree(op) ||
          (outer && !func.getArgAttr(outer.getArgNumber(), FSDPDialect::batchAttr)))
        return op->emitError(
            "expected targets that depend on the batch alone, so that they can be counted before a "
            "step; use --grad-divide=average");
  Type type = arg.getType();
  arg.setType(cast<RankedTensorType>(count.getType()));
  Value weight = createWeight(builder, loss.getLoc(), count, arg, terms, type);
  arg.replaceAllUsesExcept(weight, weight.getDefiningOp());
  return LossWeight{arg, count, std::move(ops)};
}

LogicalResult fsdp::weighReference(func::FuncOp func, int64_t terms, int64_t context) {
  FailureOr<LossWeight> weight = createLossWeight(func, terms, context);
  if (failed(weight))
    return failure();
  if (*weight)
    weight->count.getDefiningOp()->setAttr(countAttr, UnitAttr::get(func.getContext()));
  return success();
}

/// Builds the count of targets of micro-batch `number`. `number` is null if there is only one
/// micro-batch.
static Value cloneCount(OpBuilder &builder, const LossWeight &weight, Value number) {
  IRMapping map;
  for (Operation *op : weight.ops) {
    for (OpOperand &operand : op->getOpOperands()) {
      // The slice of a batch argument begins at the index of the loop. Replace it by a slice that
      // begins at `number`.
      auto slice = operand.get().getDefiningOp<tensor::ExtractSliceOp>();
      if (!number || !slice || !isa<BlockArgument>(slice.getSource()) ||
          map.contains(slice.getResult()))
        continue;
      auto own = cast<tensor::ExtractSliceOp>(builder.clone(*slice));
      own.getOffsetsMutable().assign(number);
      map.map(slice.getResult(), own.getResult());
    }
    builder.clone(*op, map);
  }
  return map.lookup(weight.count);
}

LogicalResult fsdp::createTotalCount(const Program &program, LossWeight weight,
                                     int64_t microBatches, MeshOp mesh) {
  func::FuncOp func = program.func;
  OpBuilder builder(&func.getBody().front(), func.getBody().front().begin());
  Location loc = weight.count.getLoc();
  Value total;
  if (microBatches == 1) {
    total = cloneCount(builder, weight, Value());
  } else {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    Value zero = createZeros(builder, loc, weight.count.getType());
    auto loop =
        scf::ForOp::create(builder, loc, constant(0), constant(microBatches), constant(1), zero);
    OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
    Value count = cloneCount(inside, weight, loop.getInductionVar());
    auto add = [](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
      return {arith::AddFOp::create(b, args[1], args[0])};
    };
    Value sum = createElementwise(inside, loc, count, loop.getRegionIterArg(0), add).front();
    scf::YieldOp::create(inside, loc, sum);
    total = loop.getResult(0);
  }
  for (StringRef axis : {"shard", "replicate"})
    if (program.isSharded() && mesh.getAxisSize(axis) > 1)
      total = createAllReduce(builder, loc, total, mesh, axis, ReductionKind::sum);
  weight.total.replaceAllUsesWith(total);
  return func.eraseArgument(weight.total.getArgNumber());
}
