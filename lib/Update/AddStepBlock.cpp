//===- AddStepBlock.cpp - Norm of the gradients and step block --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   gradient of a unit       |  shard 0   |  shard 1   |  shard 2   |
//   squares, block by block  | s s s s s  | s s s s s  | s s s s s  |
//   sum of a shard           |     t      |     t      |     t      |
//   sum of the unit                 ((t + t) + t)
//
// 1. For each gradient, sum the squares of each block, then sum the results over the blocks of each
//    piece. A rank has one piece of a sharded gradient, and the reference has all pieces.
// 2. For each unit, sum over the pieces of each shard, then over the shards, in the order of ranks.
//    If ranks of the axis `tensor` have slices of the unit, sum over these ranks. The step uses one
//    all_reduce per axis for all units together. The reference uses chains of additions, or loops
//    if there are many terms.
// 3. Sum over units, in order. One elementwise op on the step block computes the norm, the clip
//    factor, the flag for finite results, and the next loss scale.
// 4. If the loss is scaled, the backward first reads the scale from the step block.
// 5. If lookups are checked, the all_reduce of the sums of squares also counts the ranks on which a
//    lookup is out of range. If there is at least one such rank, no rank updates parameters or
//    state. A rank on which a lookup is out of range writes the id of this lookup into its step
//    block.
//
// The program eval only stores its loss and its checks. ApplyOptimizer.cpp clips. O(units) ops.
//
//===----------------------------------------------------------------------===//

#include "LossScale.h"
#include "SquareSums.h"
#include "fsdp/Options/Options.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/Format.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ADDSTEPBLOCKPASS
#include "fsdp/Update/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct AddStepBlockPass : fsdp::impl::AddStepBlockPassBase<AddStepBlockPass> {
  using AddStepBlockPassBase::AddStepBlockPassBase;
  void runOnOperation() override;

private:
  LogicalResult run(Program &program);
  SmallVector<Value> measure(OpBuilder &builder, const Program &program, Value &failedLookups);
  Value measureUnit(OpBuilder &builder, const Program &program, UnitOp unit, Value grad, Type type);
  void addOverAxis(OpBuilder &builder, const Program &program, StringRef axis,
                   MutableArrayRef<Value> sums, Value &failedLookups);
  Value updateBlock(OpBuilder &builder, Value block, Value loss, ArrayRef<Value> squares,
                    int64_t tokens, const LossScale &scaling, const LookupResult &lookups);
  Value storeLoss(OpBuilder &builder, const Program &program, Value block, Value loss,
                  LookupResult lookups);
  Value getClipFactor(ImplicitLocOpBuilder &b, Value norm, Value unscale);
  LogicalResult readOptions();
  void warnOfScale(const Program &program);

  Programs programs;
  LogicalResult readDivisor();

  LossScaleRule scaleRule;
  /// Factor by which the mean of the gradients is multiplied to obtain the requested divisor.
  double gradFactor = 1;
};

} // namespace

/// Builds the sum of the squares of a gradient. Adds the pieces of each shard first, then the
/// shards, then the slices. `grad` contains only one piece if the gradient is sharded.
Value AddStepBlockPass::measureUnit(OpBuilder &builder, const Program &program, UnitOp unit,
                                    Value grad, Type type) {
  int64_t size = unit.getPieceSize(unit.getOptimizerAxes(), programs.mesh);
  int64_t slices = program.countBuffers(unit),
          count = cast<RankedTensorType>(grad.getType()).getDimSize(0) / size / slices;
  int64_t perShard = std::min<int64_t>(count, std::max<int64_t>(1, unit.getShardSize() / size));
  ++numMeasured;
  return createSquares(builder, grad.getLoc(), grad, size, {slices, count / perShard, perShard},
                       type);
}

/// Builds one reduction over the ranks of the axis. The reduction sums `failedLookups`, the number
/// of ranks with a failed lookup. It also sums the squares of those units whose gradient is split
/// over the axis. On the axis `tensor`, these are the units of which a rank has slices.
void AddStepBlockPass::addOverAxis(OpBuilder &builder, const Program &program, StringRef axis,
                                   MutableArrayRef<Value> sums, Value &failedLookups) {
  if (!program.isSharded() || programs.mesh.getAxisSize(axis) == 1)
    return;
  SmallVector<unsigned> inPieces;
  SmallVector<Value> parts;
  for (auto [i, unit] :
       llvm::enumerate(sums.empty() ? SmallVector<UnitArgument>() : program.getTrainable()))
    if (isGradientSplit(unit.unit, axis)) {
      inPieces.push_back(i);
      parts.push_back(sums[i]);
    }
  if (failedLookups)
    parts.push_back(failedLookups);
  if (parts.empty())
    return;
  Location loc = program.getReturn().getLoc();
  Value vector = createAllReduce(builder, loc, createVector(builder, loc, parts), programs.mesh,
                                 axis, ReductionKind::sum);
  for (auto [at, i] : llvm::enumerate(inPieces))
    sums[i] = createElementView(builder, loc, vector, at);
  if (failedLookups)
    failedLookups = createElementView(builder, loc, vector, inPieces.size());
}

/// Builds, for each unit, the sum of the squares of its gradient. The sums are scalars, in the
/// order of the units.
SmallVector<Value> AddStepBlockPass::measure(OpBuilder &builder, const Program &program,
                                             Value &failedLookups) {
  ValueRange grads = program.getReturn().getOperands().drop_front().drop_back(program.numLookups);
  Type type = getSquaresType(program);
  SmallVector<Value> sums;
  for (auto [unit, grad] : llvm::zip_equal(program.getTrainable(), grads))
    sums.push_back(measureUnit(builder, program, unit.unit, grad, type));
  addOverAxis(builder, program, "replicate", sums, failedLookups);
  addOverAxis(builder, program, "shard", sums, failedLookups);
  // All ranks of the axis `tensor` look up the same ids.
  Value noLookups;
  addOverAxis(builder, program, "tensor", sums, noLookups);
  return sums;
}

/// Returns the number of tokens that one run of the program processes. This is the number of
/// elements of the batch argument `tokens`. Without this argument, it is the number of rows of the
/// first batch argument.
static int64_t countTokens(func::FuncOp func) {
  auto microBatches = func->getAttrOfType<IntegerAttr>(FSDPDialect::microBatchesAttr);
  unsigned rowDims = microBatches && microBatches.getInt() > 1 ? 2 : 1;
  int64_t rows = 0;
  for (BlockArgument arg : func.getArguments()) {
    auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::batchAttr);
    if (!name)
      continue;
    auto type = cast<RankedTensorType>(arg.getType());
    if (name.getValue() == "tokens")
      return type.getNumElements();
    if (rows == 0)
      rows = llvm::product_of(type.getShape().take_front(rowDims));
  }
  return rows;
}

/// Returns 1 if loss and norm are finite and no rank had a lookup out of range, and else 0.
/// `failedRanks` counts the ranks with a lookup out of range, or is null if no lookup is checked.
static Value getFinite(ImplicitLocOpBuilder &b, Value loss, Value norm, Value failedRanks,
                       Type type) {
  auto isFinite = [&](Value value) -> Value {
    Value infinity = createConstant(b, value.getType(), std::numeric_limits<double>::infinity());
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, value),
                                 infinity);
  };
  Value bothFinite = arith::AndIOp::create(b, isFinite(loss), isFinite(norm));
  if (failedRanks) {
    Value allIn = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, failedRanks,
                                        createConstant(b, failedRanks.getType(), 0.0));
    bothFinite = arith::AndIOp::create(b, bothFinite, allIn);
  }
  return arith::SelectOp::create(b, bothFinite, createConstant(b, type, 1.0),
                                 createConstant(b, type, 0.0));
}

/// Returns the factor by which gradients are multiplied. This factor is the product of the clip
/// factor, the inverse of the loss scale (`unscale`, if not null), and `gradFactor`.
Value AddStepBlockPass::getClipFactor(ImplicitLocOpBuilder &b, Value norm, Value unscale) {
  auto constant = [&](double value) { return createConstant(b, norm.getType(), value); };
  Value clip = constant(1.0);
  if (clipGradNorm > 0) {
    Value guarded = arith::AddFOp::create(b, norm, constant(1e-6));
    Value ratio = arith::DivFOp::create(b, constant(clipGradNorm), guarded);
    clip = arith::MinimumFOp::create(b, ratio, clip);
  }
  if (unscale)
    clip = arith::MulFOp::create(b, clip, unscale);
  if (gradFactor != 1)
    clip = arith::MulFOp::create(b, clip, constant(gradFactor));
  return clip;
}

/// Builds the new content of the step block after a step. The new content overwrites the old step
/// block.
Value AddStepBlockPass::updateBlock(OpBuilder &builder, Value block, Value loss,
                                    ArrayRef<Value> squares, int64_t tokens,
                                    const LossScale &scaling, const LookupResult &lookups) {
  SmallVector<Value> ins{loss};
  llvm::append_range(ins, squares);
  if (scaling.scale)
    llvm::append_range(ins, std::array{scaling.scale, scaling.growth});
  unsigned firstLookup = ins.size();
  if (lookups.failed) {
    llvm::append_range(ins, lookups.report);
    ins.push_back(lookups.failed);
  }
  return createElementwise(
             builder, loss.getLoc(), ins, block,
             [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
               Value lossValue = args.front(), old = args.back();
               Value sum = args[1];
               for (Value part : args.slice(2, squares.size() - 1))
                 sum = arith::AddFOp::create(b, sum, part);
               Type type = sum.getType();
               auto constant = [&](double value) { return createConstant(b, type, value); };
               Value norm = math::SqrtOp::create(b, sum);
               Value scaledNorm = norm, scale, unscale, growth;
               if (scaling.scale) {
                 growth = args[firstLookup - 1];
                 scale = args[firstLookup - 2];
                 unscale = arith::DivFOp::create(b, constant(1.0), castFloat(b, scale, type));
                 norm = arith::MulFOp::create(b, norm, unscale);
               }
               if (gradFactor != 1)
                 norm = arith::MulFOp::create(b, norm, constant(gradFactor));

               Value failedRanks = lookups.failed ? args[ins.size() - 1] : Value();
               Value finite = getFinite(b, lossValue, scaledNorm, failedRanks, old.getType());
               Value clip = getClipFactor(b, norm, unscale);
               auto advance = [&](double by) -> Value {
                 Value step =
                     arith::MulFOp::create(b, finite, createConstant(b, old.getType(), by));
                 return arith::AddFOp::create(b, old, step);
               };
               SlotSelector slots{b, linalg::IndexOp::create(b, 0), old};
               slots.set(StepSlot::Step, advance(1.0));
               slots.set(StepSlot::Clip, clip);
               slots.set(StepSlot::Tokens, advance(tokens));
               slots.set(StepSlot::Finite, finite);
               slots.set(StepSlot::Loss, lossValue);
               slots.set(StepSlot::GradNorm, norm);
               Value failed =
                   arith::SubFOp::create(b, createConstant(b, old.getType(), 1.0), finite);
               slots.set(StepSlot::Skipped, arith::AddFOp::create(b, old, failed));
               if (scaling.scale)
                 updateLossScale(b, slots, finite, failedRanks, {scale, growth}, scaleRule);
               if (lookups.failed)
                 setLookups(b, slots, args.slice(firstLookup, 5));
               return {slots.value};
             })
      .front();
}

/// Builds the new content of the step block after an evaluation.
Value AddStepBlockPass::storeLoss(OpBuilder &builder, const Program &program, Value block,
                                  Value loss, LookupResult lookups) {
  SmallVector<Value> ins{loss};
  if (lookups.failed) {
    addOverAxis(builder, program, "replicate", {}, lookups.failed);
    addOverAxis(builder, program, "shard", {}, lookups.failed);
    llvm::append_range(ins, lookups.report);
    ins.push_back(lookups.failed);
  }
  return createElementwise(builder, loss.getLoc(), ins, block,
                           [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
                             SlotSelector slots{b, linalg::IndexOp::create(b, 0), args.back()};
                             slots.set(StepSlot::Loss, args.front());
                             if (lookups.failed)
                               setLookups(b, slots, args.slice(1, 5));
                             return {slots.value};
                           })
      .front();
}

/// Adds the step block and the rank block as arguments after the units. Returns the step block.
static FailureOr<BlockArgument> addBlockArguments(Program &program) {
  func::FuncOp func = program.func;
  Builder builder(func.getContext());
  unsigned index = program.units.back().index + 1;
  auto marked = [&](StringRef name) {
    return builder.getDictionaryAttr(builder.getNamedAttr(name, builder.getUnitAttr()));
  };
  Type block = RankedTensorType::get({kStepBlockSize}, builder.getF32Type());
  Type rank = RankedTensorType::get({kRankBlockSize}, builder.getI64Type());
  if (failed(func.insertArguments({index, index}, {block, rank},
                                  {marked(FSDPDialect::blockAttr), marked(FSDPDialect::rankAttr)},
                                  {func.getLoc(), func.getLoc()})))
    return failure();
  return func.getArgument(index);
}

LogicalResult AddStepBlockPass::run(Program &program) {
  func::ReturnOp ret = program.getReturn();
  Value loss = ret.getOperand(0);
  auto type = dyn_cast<RankedTensorType>(loss.getType());
  if (!type || type.getRank() != 0 || !isa<FloatType>(type.getElementType()))
    return mlir::emitError(
               program.func.getLoc(),
               "expected the first result to be the loss, a float tensor of rank 0, found ")
           << loss.getType();
  FailureOr<BlockArgument> block = addBlockArguments(program);
  if (failed(block))
    return failure();

  OpBuilder builder(ret);
  Value updated;
  LookupResult lookups = combineLookups(builder, program);
  if (program.kind == ProgramKind::Eval) {
    updated = storeLoss(builder, program, *block, loss, lookups);
  } else {
    int64_t tokens = countTokens(program.func);
    if (program.isSharded())
      tokens *= programs.levels.replicate * programs.levels.shard / programs.levels.context;
    LossScale scaling = bindLossScale(program, *block, scaleRule);
    SmallVector<Value> squares = measure(builder, program, lookups.failed);
    updated = updateBlock(builder, *block, loss, squares, tokens, scaling, lookups);
    llvm::BitVector erased(program.func.getNumArguments());
    for (unsigned i = 0, e = erased.size(); i < e; ++i)
      erased[i] = !!program.func.getArgAttr(i, lossScaleAttr);
    if (failed(program.func.eraseArguments(erased)))
      return failure();
  }
  ret->setOperand(0, updated);
  func::FuncOp func = program.func;
  if (program.numLookups) {
    SmallVector<Attribute> described;
    llvm::BitVector checks(func.getNumResults());
    checks.set(func.getNumResults() - program.numLookups, func.getNumResults());
    for (unsigned i : checks.set_bits())
      described.push_back(func.getResultAttr(i, lookupAttr));
    getOperation()->setAttr(lookupsAttr, builder.getArrayAttr(described));
    ret->eraseOperands(checks);
    if (failed(func.eraseResults(checks)))
      return failure();
  }
  func.setType(FunctionType::get(&getContext(), func.getArgumentTypes(), ret.getOperandTypes()));
  func.setResultAttr(0, FSDPDialect::updatesAttr, builder.getI64IntegerAttr(block->getArgNumber()));
  return success();
}

/// Returns true if the factor and its inverse are normal numbers in f32.
static bool isScale(double value) { return value >= 1e-30 && value <= 1e30; }

static std::string describe(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

/// Warns about options of a dynamic loss scale if the scale is not dynamic.
void AddStepBlockPass::warnOfScale(const Program &program) {
  func::FuncOp func = program.func;
  bool isScaled = false;
  for (BlockArgument arg : func.getArguments())
    isScaled |= !!func.getArgAttr(arg.getArgNumber(), lossScaleAttr);
  if (program.kind != ProgramKind::Step || (isScaled && scaleRule.fixed == 0))
    return;
  auto warn = [&](StringRef option) {
    InFlightDiagnostic diag = mlir::emitWarning(getOperation().getLoc())
                              << option << " has no effect: expected a dynamic loss scale, found ";
    if (isScaled)
      diag << "the fixed scale " << lossScale;
    else
      diag << "a loss without a scale";
  };
  if (lossScaleInit != UpdateOptions().lossScaleInit)
    warn("loss-scale-init");
  if (growthInterval != UpdateOptions().lossScaleGrowthInterval)
    warn("loss-scale-growth-interval");
}

/// Parses those options that are texts, and checks all other options.
LogicalResult AddStepBlockPass::readOptions() {
  Location loc = getOperation().getLoc();
  scaleRule = {0, lossScaleInit, growthInterval};
  if (!lossScale.empty() && lossScale != "dynamic" && lossScale != "none" &&
      (StringRef(lossScale).getAsDouble(scaleRule.fixed) || !isScale(scaleRule.fixed)))
    return mlir::emitError(loc,
                           "loss-scale: expected 'dynamic' or a number from 1e-30 to 1e30, found '")
           << lossScale << "'";
  if (!isScale(lossScaleInit))
    return mlir::emitError(loc, "loss-scale-init: expected a number from 1e-30 to 1e30, found ")
           << describe(lossScaleInit);
  if (growthInterval < 1 || growthInterval > 1 << 24)
    return mlir::emitError(loc, "loss-scale-growth-interval: expected 1 to 16777216, found ")
           << growthInterval.getValue();
  return success();
}

/// Sets `gradFactor`. When this pass runs, gradients are means over all micro-batches and ranks.
/// If another divisor is requested, the norm of the gradients and the gradients themselves are
/// multiplied by a constant where they are used.
LogicalResult AddStepBlockPass::readDivisor() {
  const BatchLevels &levels = programs.levels;
  // The gradients of the ranks of the axis `context` are parts of one gradient.
  double terms = double(levels.replicate) * levels.shard * levels.accumulate,
         divisor = terms / levels.context;
  if (gradDivide == "sum")
    divisor = 1;
  // For "tokens", the number of tokens is already part of the weights of the losses.
  else if (gradDivide != "average" && gradDivide != "tokens" &&
           (StringRef(gradDivide).getAsDouble(divisor) || !isScale(divisor)))
    return mlir::emitError(
               getOperation().getLoc(),
               "grad-divide: expected 'average' (over ranks and micro-batches), 'tokens' (that "
               "count in the loss), 'sum' or a number from 1e-30 to 1e30 to divide the sum by, "
               "found '")
           << gradDivide << "'";
  if (!isScale(gradPredivide))
    return mlir::emitError(getOperation().getLoc(),
                           "grad-predivide: expected a number from 1e-30 to 1e30, found ")
           << describe(gradPredivide);
  gradFactor = terms / divisor * gradPredivide;
  return success();
}

void AddStepBlockPass::runOnOperation() {
  if (failed(readOptions()))
    return signalPassFailure();
  if (!(clipGradNorm >= 0 && std::isfinite(clipGradNorm))) {
    mlir::emitError(getOperation().getLoc(),
                    "clip-grad-norm: expected a finite number of at least 0, found ")
        << describe(clipGradNorm);
    return signalPassFailure();
  }
  FailureOr<Programs> read = readPrograms(getOperation(), "the loss", GradientForm::Reduced);
  if (failed(read))
    return signalPassFailure();
  programs = std::move(*read);
  if (failed(readDivisor()))
    return signalPassFailure();
  for (Program &program : programs.list) {
    warnOfScale(program);
    if (failed(run(program)))
      return signalPassFailure();
  }
}
