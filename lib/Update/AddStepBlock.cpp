//===- AddStepBlock.cpp - Measure the gradients -----------------*- C++ -*-===//
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
//  1. Per gradient: sum of squares of each block, then of each shard's blocks. A
//     sharded gradient is one row of this, a whole gradient is all rows: the
//     same two reductions.
//  2. Over pieces of one shard, then over shards, in rank order: an all_reduce
//     of all units' sums at once per axis; in the reference chains of additions, loops where
//     they are long.
//  3. Over units, in order; root; clip factor; finite; the next loss scale: one
//     elementwise op on the step block, each slot from its old value.
//  4. Where the backward starts from a scale: that of the block, read first.
//  5. Where lookups are checked: on how many ranks one was out of range, beside the sums
//     of squares; nothing is updated then. The rank's own index goes into its block.
//
// eval only stores its loss, and checks. O(units) ops. Clipping itself: ApplyOptimizer.cpp.
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include "Programs.h"
#include "fsdp/Options/Options.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/Format.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ADDSTEPBLOCKPASS
#include "fsdp/Update/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The loss scale of this step and the steps since it changed, as scalars; null
/// where nothing is scaled.
struct Scaling {
  Value scale, growth;
};

/// What the checks of a program's lookups say, as scalars; null where there are none.
struct LookupResult {
  Value failed;              ///< 1 where a lookup is out of range; then summed over the ranks
  SmallVector<Value> report; ///< number of the lookup and three parts of its index, in f32
};

/// Picks values by the slot of the block that an element is.
struct SlotSelector {
  ImplicitLocOpBuilder &b;
  Value slot, value;

  void set(StepSlot which, Value newValue) {
    Value index = arith::ConstantIndexOp::create(b, static_cast<int64_t>(which));
    Value isThis = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, slot, index);
    value = arith::SelectOp::create(b, isThis, castFloat(b, newValue, value.getType()), value);
  }
};
struct AddStepBlockPass : fsdp::impl::AddStepBlockPassBase<AddStepBlockPass> {
  using AddStepBlockPassBase::AddStepBlockPassBase;
  void runOnOperation() override;

private:
  LogicalResult run(Program &program);
  SmallVector<Value> measure(OpBuilder &builder, const Program &program, Value &failedLookups);
  Value measureUnit(OpBuilder &builder, UnitOp unit, Value grad, Type type);
  void addOverAxis(OpBuilder &builder, const Program &program, StringRef axis,
                   MutableArrayRef<Value> sums, Value &failedLookups);
  Value updateBlock(OpBuilder &builder, Value block, Value loss, ArrayRef<Value> squares,
                    int64_t tokens, const Scaling &scaling, const LookupResult &lookups);
  Value storeLoss(OpBuilder &builder, const Program &program, Value block, Value loss,
                  LookupResult lookups);
  LogicalResult readOptions();
  void warnOfScale(const Program &program);
  Scaling addScaling(const Program &program, Value block);
  void updateScale(ImplicitLocOpBuilder &b, SlotSelector &slots, Value finite, Value scale,
                   Value growth);

  Programs programs;
  LogicalResult readDivisor();

  double fixedScale = 0; ///< 0: dynamic
  double gradFactor = 1; ///< from the mean that was taken to what was asked for
};

} // namespace

/// Elements of the blocks whose squares are summed first: the largest power of
/// two up to 1024 that divides a shard.
static int64_t getBlockSize(int64_t shardSize) {
  return std::min<int64_t>(1024, shardSize & -shardSize);
}

/// Sums each row of a matrix; `square`: its squares.
static Value createRowSums(OpBuilder &builder, Location loc, Value matrix, Type type, bool square) {
  auto rows = cast<RankedTensorType>(matrix.getType()).getDimSize(0);
  Value zeros = createZeros(builder, loc, RankedTensorType::get({rows}, type));
  MLIRContext *context = builder.getContext();
  AffineMap identity = builder.getMultiDimIdentityMap(2);
  AffineMap row = AffineMap::get(2, 0, getAffineDimExpr(0, context));
  return linalg::GenericOp::create(
             builder, loc, zeros.getType(), matrix, zeros, ArrayRef{identity, row},
             ArrayRef{utils::IteratorType::parallel, utils::IteratorType::reduction},
             [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
               ImplicitLocOpBuilder b(nestedLoc, nested);
               Value x = castFloat(b, args[0], type);
               if (square)
                 x = arith::MulFOp::create(b, x, x);
               linalg::YieldOp::create(b, ValueRange{arith::AddFOp::create(b, args[1], x)});
             })
      .getResult(0);
}

/// A 1-D tensor as rows of `columns` elements: a view.
static Value createRows(OpBuilder &builder, Location loc, Value flat, int64_t columns) {
  auto type = cast<RankedTensorType>(flat.getType());
  SmallVector<int64_t> shape{type.getDimSize(0) / columns, columns};
  return tensor::ExpandShapeOp::create(builder, loc, type.clone(shape), flat,
                                       ArrayRef<ReassociationIndices>{{0, 1}});
}

/// The sum of squares of each shard in a gradient.
static Value createSquares(OpBuilder &builder, Location loc, Value grad, int64_t shardSize,
                           Type type) {
  int64_t block = getBlockSize(shardSize);
  Value blocks = createRowSums(builder, loc, createRows(builder, loc, grad, block), type,
                               /*square=*/true);
  return createRowSums(builder, loc, createRows(builder, loc, blocks, shardSize / block), type,
                       /*square=*/false);
}

/// ((x0 + x1) + x2) + ... of scalars.
static Value createChain(OpBuilder &builder, Location loc, ArrayRef<Value> parts) {
  if (parts.size() == 1)
    return parts.front();
  Value out = createEmpty(builder, loc, parts.front().getType());
  return createElementwise(builder, loc, parts, out,
                           [](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
                             Value sum = args.front();
                             for (Value part : args.drop_front().drop_back())
                               sum = arith::AddFOp::create(b, sum, part);
                             return {sum};
                           })
      .front();
}

/// Scalars as the elements of one tensor.
static Value createVector(OpBuilder &builder, Location loc, ArrayRef<Value> scalars) {
  auto type = cast<RankedTensorType>(scalars.front().getType());
  Value out = createEmpty(builder, loc, type.clone({int64_t(scalars.size())}));
  return createElementwise(builder, loc, scalars, out,
                           [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
                             Value index = linalg::IndexOp::create(b, 0);
                             Value value = args.front();
                             for (auto [i, arg] : llvm::enumerate(args.drop_back().drop_front())) {
                               Value here = arith::ConstantIndexOp::create(b, i + 1);
                               Value isHere =
                                   arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index, here);
                               value = arith::SelectOp::create(b, isHere, arg, value);
                             }
                             return {value};
                           })
      .front();
}

/// at + i · stride.
static OpFoldResult addIndices(OpBuilder &builder, Location loc, OpFoldResult at, OpFoldResult i,
                               int64_t stride) {
  std::optional<int64_t> fixedAt = getConstantIntValue(at), fixedI = getConstantIntValue(i);
  if (fixedAt && fixedI)
    return builder.getIndexAttr(*fixedAt + *fixedI * stride);
  if (fixedI == 0)
    return at;
  Value index = getValueOrCreateConstantIndexOp(builder, loc, i);
  if (stride != 1)
    index = arith::MulIOp::create(builder, loc, index,
                                  arith::ConstantIndexOp::create(builder, loc, stride));
  if (fixedAt == 0)
    return index;
  return arith::AddIOp::create(builder, loc, index,
                               getValueOrCreateConstantIndexOp(builder, loc, at))
      .getResult();
}

/// The sum, in order, of `counts.front()` sums of `counts.drop_front()` elements each, from
/// element `at`: a chain, or a loop where a chain would be long.
static Value createSum(OpBuilder &builder, Location loc, Value vector, ArrayRef<int64_t> counts,
                       OpFoldResult at) {
  constexpr int64_t longestChain = 64;
  if (counts.empty())
    return createElementView(builder, loc, vector, at);
  int64_t stride = llvm::product_of(counts.drop_front());
  auto getPart = [&](OpBuilder &b, OpFoldResult i) {
    OpFoldResult first = addIndices(b, loc, at, i, stride);
    return createSum(b, loc, vector, counts.drop_front(), first);
  };
  if (counts.front() <= longestChain) {
    SmallVector<Value> parts;
    for (int64_t i = 0; i < counts.front(); ++i)
      parts.push_back(getPart(builder, builder.getIndexAttr(i)));
    return createChain(builder, loc, parts);
  }
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Type type = RankedTensorType::get({}, getElementTypeOrSelf(vector));
  Value zero = createZeros(builder, loc, type); // of squares: +0 + x is x
  auto loop =
      scf::ForOp::create(builder, loc, constant(0), constant(counts.front()), constant(1), zero);
  OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
  Value part = getPart(inside, loop.getInductionVar());
  auto add = [](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    return {arith::AddFOp::create(b, args[1], args[0])};
  };
  Value sum = createElementwise(inside, loc, part, loop.getRegionIterArg(0), add).front();
  scf::YieldOp::create(inside, loc, sum);
  return loop.getResult(0);
}

/// The sum of squares of a gradient: of its pieces one after the other, those of
/// one shard first. On a rank there is one piece.
Value AddStepBlockPass::measureUnit(OpBuilder &builder, UnitOp unit, Value grad, Type type) {
  Location loc = grad.getLoc();
  int64_t size = unit.getPieceSize(unit.getOptimizerAxes(), programs.mesh);
  Value pieces = createSquares(builder, loc, grad, size, type);
  int64_t count = cast<RankedTensorType>(pieces.getType()).getDimSize(0);
  int64_t perShard = std::min<int64_t>(count, std::max<int64_t>(1, unit.getShardSize() / size));
  ++numMeasured;
  return createSum(builder, loc, pieces, {count / perShard, perShard}, builder.getIndexAttr(0));
}

/// Adds the sums of other ranks to those units whose gradient is in pieces over
/// the axis, and to the number of ranks with a failed lookup, all in one reduction.
void AddStepBlockPass::addOverAxis(OpBuilder &builder, const Program &program, StringRef axis,
                                   MutableArrayRef<Value> sums, Value &failedLookups) {
  if (!program.isSharded() || programs.mesh.getAxisSize(axis) == 1)
    return;
  SmallVector<unsigned> inPieces;
  SmallVector<Value> parts;
  for (auto [i, unit] :
       llvm::enumerate(sums.empty() ? SmallVector<UnitArgument>() : program.getTrainable()))
    if (UnitOp op = unit.unit; llvm::is_contained(op.getOptimizerAxes(), axis)) {
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

/// The type that squares of gradients are summed in: f64 if there is one of f64.
static Type getSquaresType(const Program &program) {
  bool anyF64 = llvm::any_of(program.getReturn().getOperands().drop_front(),
                             [](Value grad) { return getElementTypeOrSelf(grad).isF64(); });
  Builder builder(func::FuncOp(program.func).getContext());
  return anyF64 ? builder.getF64Type() : builder.getF32Type();
}

/// The sum of squares of each unit's gradient, as scalars in the order of
/// units.
SmallVector<Value> AddStepBlockPass::measure(OpBuilder &builder, const Program &program,
                                             Value &failedLookups) {
  ValueRange grads = program.getReturn().getOperands().drop_front().drop_back(program.numLookups);
  Type type = getSquaresType(program);
  SmallVector<Value> sums;
  for (auto [unit, grad] : llvm::zip_equal(program.getTrainable(), grads))
    sums.push_back(measureUnit(builder, unit.unit, grad, type));
  addOverAxis(builder, program, "replicate", sums, failedLookups);
  addOverAxis(builder, program, "shard", sums, failedLookups);
  return sums;
}

/// Combines the checks of a program: the first lookup that was out of range, and its index in parts
/// that f32 holds.
static LookupResult combineLookups(OpBuilder &builder, const Program &program) {
  LookupResult result;
  if (program.numLookups == 0)
    return result;
  ValueRange checks = program.getReturn().getOperands().take_back(program.numLookups);
  Location loc = checks.front().getLoc();
  auto scalar = [&](Type type) {
    return createEmpty(builder, loc, RankedTensorType::get({}, type));
  };
  SmallVector<Value> outs{scalar(getSquaresType(program))};
  for (unsigned i = 0; i < 4; ++i)
    outs.push_back(scalar(builder.getF32Type()));
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
    };
    Value zero = constant(0), index = zero, number = zero;
    for (unsigned i = program.numLookups; i-- > 0;) {
      Value isBad = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, args[i], zero);
      index = arith::SelectOp::create(b, isBad, args[i], index);
      number = arith::SelectOp::create(b, isBad, constant(i + 1), number);
    }
    Value isBad = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, number, zero);
    Type type = args[program.numLookups].getType(), f32 = b.getF32Type();
    SmallVector<Value> values{arith::SelectOp::create(b, isBad, createConstant(b, type, 1.0),
                                                      createConstant(b, type, 0.0)),
                              arith::SIToFPOp::create(b, f32, number)};
    for (int64_t shift : {42, 21, 0}) {
      Value part = arith::ShRUIOp::create(b, index, constant(shift));
      part = arith::AndIOp::create(b, part, constant(shift == 42 ? 0x3fffff : 0x1fffff));
      values.push_back(arith::SIToFPOp::create(b, f32, part));
    }
    return values;
  };
  SmallVector<Value> made = createElementwise(builder, loc, checks, outs, body);
  result.failed = made.front();
  llvm::append_range(result.report, ArrayRef(made).drop_front());
  return result;
}

/// Writes what the checks say into their slots. `args`: the report, then the number of ranks.
static void setLookups(ImplicitLocOpBuilder &b, SlotSelector &slots, ValueRange args) {
  slots.set(StepSlot::Lookups, args.back());
  for (int64_t i = 0; i < 4; ++i)
    slots.set(static_cast<StepSlot>(static_cast<int64_t>(StepSlot::LookupNumber) + i), args[i]);
}

/// Tokens that one run of the program sees: elements of the batch argument
/// `tokens`, else rows of the first batch argument.
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

/// What the backward starts from: the scale of the block, or the first one.
Scaling AddStepBlockPass::addScaling(const Program &program, Value block) {
  func::FuncOp func = program.func;
  auto isScale = [&](BlockArgument arg) {
    return func.getArgAttr(arg.getArgNumber(), lossScaleAttr);
  };
  auto args = func.getArguments();
  auto found = llvm::find_if(args, isScale);
  if (found == args.end())
    return {};
  BlockArgument seed = *found;
  OpBuilder builder(&func.getBody().front(), func.getBody().front().begin());
  Location loc = seed.getLoc();
  Value ins[] = {createElementView(builder, loc, block, StepSlot::LossScale),
                 createElementView(builder, loc, block, StepSlot::Growth)};
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  Value outs[] = {createEmpty(builder, loc, scalar), createEmpty(builder, loc, scalar),
                  createEmpty(builder, loc, seed.getType())};
  auto made = createElementwise(
      builder, loc, ins, outs, [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
        Type type = args[0].getType();
        Value scale = createConstant(b, type, fixedScale), growth = createConstant(b, type, -1.0);
        if (fixedScale == 0) {
          Value zero = createConstant(b, type, 0.0);
          Value isSet = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, args[0], zero);
          scale =
              arith::SelectOp::create(b, isSet, args[0], createConstant(b, type, lossScaleInit));
          growth = arith::SelectOp::create(b, isSet, args[1], zero);
        }
        return {scale, growth, castFloat(b, scale, getElementTypeOrSelf(seed))};
      });
  seed.replaceAllUsesWith(made[2]);
  return {made[0], made[1]};
}

/// Half the scale after a step that was not finite; twice after enough that were.
/// It stays a normal number, and so does its inverse.
void AddStepBlockPass::updateScale(ImplicitLocOpBuilder &b, SlotSelector &slots, Value finite,
                                   Value scale, Value growth) {
  if (fixedScale == 0) {
    Type type = scale.getType();
    auto constant = [&](double value) { return createConstant(b, type, value); };
    auto times = [&](double factor) -> Value {
      return arith::MulFOp::create(b, scale, constant(factor));
    };
    Value one = constant(1.0), zero = constant(0.0);
    Value next = arith::MulFOp::create(b, arith::AddFOp::create(b, growth, one), finite);
    Value grows =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, next, constant(growthInterval));
    Value larger = arith::MinimumFOp::create(b, times(2.0), constant(0x1p100));
    Value smaller = arith::MaximumFOp::create(b, times(0.5), constant(0x1p-100));
    Value isFinite = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, finite, zero);
    scale = arith::SelectOp::create(b, isFinite, arith::SelectOp::create(b, grows, larger, scale),
                                    smaller);
    growth = arith::SelectOp::create(b, grows, zero, next);
  }
  slots.set(StepSlot::LossScale, scale);
  slots.set(StepSlot::Growth, growth);
}

/// The block after a step; each element from its own old value.
Value AddStepBlockPass::updateBlock(OpBuilder &builder, Value block, Value loss,
                                    ArrayRef<Value> squares, int64_t tokens, const Scaling &scaling,
                                    const LookupResult &lookups) {
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

               auto isFinite = [&](Value value) -> Value {
                 Value infinity =
                     createConstant(b, value.getType(), std::numeric_limits<double>::infinity());
                 return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT,
                                              math::AbsFOp::create(b, value), infinity);
               };
               Value bothFinite =
                   arith::AndIOp::create(b, isFinite(lossValue), isFinite(scaledNorm));
               if (lookups.failed) {
                 Value ranks = args[ins.size() - 1];
                 Value allIn = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, ranks,
                                                     createConstant(b, ranks.getType(), 0.0));
                 bothFinite = arith::AndIOp::create(b, bothFinite, allIn);
               }
               Value finite =
                   arith::SelectOp::create(b, bothFinite, createConstant(b, old.getType(), 1.0),
                                           createConstant(b, old.getType(), 0.0));

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
                 updateScale(b, slots, finite, scale, growth);
               if (lookups.failed)
                 setLookups(b, slots, args.slice(firstLookup, 5));
               return {slots.value};
             })
      .front();
}

/// The block after an evaluation.
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

/// Adds the two blocks as arguments behind the units; the step block.
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
    return mlir::emitError(program.func.getLoc(), "expected the loss as a scalar tensor, found ")
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
      tokens *= programs.mesh.getNumRanks();
    Scaling scaling = addScaling(program, *block);
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

/// A factor that f32 can hold, and its inverse, too.
static bool isScale(double value) { return value >= 1e-30 && value <= 1e30; }

static std::string describe(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

/// A dynamic scale, of which options say something, is there for f16.
void AddStepBlockPass::warnOfScale(const Program &program) {
  func::FuncOp func = program.func;
  bool isScaled = false;
  for (BlockArgument arg : func.getArguments())
    isScaled |= !!func.getArgAttr(arg.getArgNumber(), lossScaleAttr);
  if (program.kind != ProgramKind::Step || (isScaled && fixedScale == 0))
    return;
  auto warn = [&](StringRef option) {
    InFlightDiagnostic diag = mlir::emitWarning(getOperation().getLoc())
                              << option << " has no effect: ";
    if (isScaled)
      diag << "the loss scale is " << lossScale;
    else
      diag << "the loss is not scaled";
    diag << ", not dynamic";
  };
  if (lossScaleInit != UpdateOptions().lossScaleInit)
    warn("loss-scale-init");
  if (growthInterval != UpdateOptions().lossScaleGrowthInterval)
    warn("loss-scale-growth-interval");
}

/// Reads the options that are words; says what is wrong with the others.
LogicalResult AddStepBlockPass::readOptions() {
  Location loc = getOperation().getLoc();
  fixedScale = 0;
  if (!lossScale.empty() && lossScale != "dynamic" && lossScale != "none" &&
      (StringRef(lossScale).getAsDouble(fixedScale) || !isScale(fixedScale)))
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

/// Gradients are means by now; where another divisor is asked for, they are
/// multiplied by a constant where they are measured and applied.
LogicalResult AddStepBlockPass::readDivisor() {
  const BatchLevels &levels = programs.levels;
  double terms = double(levels.replicate) * levels.shard * levels.accumulate, divisor = terms;
  if (gradDivide == "sum")
    divisor = 1;
  else if (gradDivide != "average" &&
           gradDivide != "tokens" && // weights of the losses have done it
           (StringRef(gradDivide).getAsDouble(divisor) || !isScale(divisor)))
    return mlir::emitError(
               getOperation().getLoc(),
               "grad-divide: expected 'average' (over ranks and micro-batches), 'tokens' (that "
               "count in the "
               "loss), 'sum' or a number from 1e-30 to 1e30 to divide the sum by, found '")
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
