//===- AccumulateGradients.cpp - Means over the global batch ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   before   step       f(x) -> loss, reduce_scatter g
//            reference  f(x) -> loss, g
//
//   after    step       for a: all_reduce(loss, shard), reduce_scatter g, add
//                       reduce(loss, g over replicate)
//            reference  for r, for a, for s: f(x[(r·S + s)·A + a]), add
//
//   no_sync  step       for a: lay out g, add
//                       reduce(loss, g over shard), reduce(.. over replicate)
//            reference  for r, for s, for a: ...
//
// 1. Sharded programs: average loss and gradients over the axis shard. If the optimizer state of a
//    unit is sharded, the unit's reduce_scatter averages the gradient. If the state is whole, the
//    reduce_scatter only copies the gradient to the layout of the flat buffer, and an all_reduce
//    averages the gradient. With no_sync, step 2 precedes step 1.
// 2. Put the body in a nest of loops. There is one loop for each level (replicate, accumulate,
//    shard) that has more than one iteration. The loops carry the sums of loss and gradients, which
//    begin at +0. After a loop of n iterations, its sums are multiplied by 1/n.
//    - Gathers of hoisted units remain before the nest.
//    - Gradients of looked-up rows have separate sums over the axis shard, because separate ops
//      exchange them. After the loop over shards, these sums are added to the gradient of the
//      table.
//    - For the checks of lookups, a loop computes the unsigned maximum, not the mean.
//    - The weight of a loss is computed from the number of all counted targets. This number is
//      computed before the loops (LossWeights.cpp).
//    - If a sample is computed by C ranks of the axis context, an iteration of the reference's loop
//      over shards yields the results of C ranks as parts, and adds them in order.
// 3. Sharded programs: average loss and gradients over the axis replicate. The averaged gradient is
//    in pieces if the optimizer state is in pieces, and whole otherwise.
//
// At each level, step and reference add the same numbers in the same order, and round them in the
// same way. O(ops).
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include "LossWeights.h"
#include "Programs.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ACCUMULATEGRADIENTSPASS
#include "fsdp/Update/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// A level at which means are computed. A level becomes a loop of the nest. The number of a
/// micro-batch is the sum of index · `stride` over all levels.
struct Level {
  int64_t size, stride; ///< number of iterations of the loop
  /// Whether a sum over ranks replaces the loop of this level in the program step.
  bool crossesRanks;
  /// Whether the gradients of rows are added to the gradients of tables after this loop.
  bool addsRows = false;
  /// Number of parts of the results of an iteration, which are separate terms of the mean.
  int64_t parts = 1;
};

} // namespace

/// If a reduction over ranks computes `value`, or the pieces of which it consists, returns the
/// element type in which the reduction adds. Otherwise returns the element type of `value`.
static Type getReduceType(Value value) {
  while (isa_and_nonnull<tensor::ConcatOp, tensor::ExpandShapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  if (auto rows = value.getDefiningOp<ReduceRowsOp>())
    return getElementTypeOrSelf(rows.getRows());
  auto reduce = value.getDefiningOp<ReduceScatterOp>();
  return getElementTypeOrSelf(reduce && !reduce.getGrads().empty() ? reduce.getGrads().front()
                                                                   : value);
}

namespace {

/// Builds the loops of one program.
class NestBuilder {
public:
  NestBuilder(func::FuncOp func, ArrayRef<Level> levels, ArrayRef<Type> reduceTypes,
              ArrayRef<unsigned> rowOwners)
      : func(func), levels(levels), rowOwners(rowOwners),
        ret(cast<func::ReturnOp>(func.getBody().front().getTerminator())),
        types(ret.getOperandTypes()), reduceTypes(reduceTypes) {}

  SmallVector<Value> build();

private:
  bool hasParts(unsigned level);
  SmallVector<Value> buildLevel(OpBuilder &builder, unsigned level, Value number);
  SmallVector<Value> buildInnermost(OpBuilder &builder, Value number);
  void addBatchDimension();
  void numberSamples(OpBuilder &builder, int64_t count, int64_t samples);

  func::FuncOp func;
  ArrayRef<Level> levels;
  ArrayRef<unsigned> rowOwners; ///< indices of the results to which gradients of rows are added
  func::ReturnOp ret;
  SmallVector<Type> types; ///< types of the loss and the gradients of one micro-batch
  /// Element type in which reductions over ranks add the value of each element of `types`.
  ArrayRef<Type> reduceTypes;
  /// Number of the first sample of each micro-batch, or null if the program uses no random numbers.
  Value numbers;
  SmallVector<Operation *> body;
};

struct AccumulateGradientsPass : fsdp::impl::AccumulateGradientsPassBase<AccumulateGradientsPass> {
  using AccumulateGradientsPassBase::AccumulateGradientsPassBase;
  void runOnOperation() override;

private:
  LogicalResult run(const Program &program);
  void layOut(const Program &program);
  void average(const Program &program, StringRef axis);

  Programs programs;
  /// Element types in which reductions over ranks add the loss and the gradients.
  SmallVector<Type> reduceTypes;
};

} // namespace

/// The last elements of `values` are gradients of rows. Adds these gradients to the elements of
/// `values` with the indices `rowOwners`, and then removes the gradients from `values`.
static void addRows(OpBuilder &builder, SmallVectorImpl<Value> &values,
                    ArrayRef<unsigned> rowOwners) {
  auto rows = llvm::to_vector(ArrayRef<Value>(values).take_back(rowOwners.size()));
  values.truncate(values.size() - rows.size());
  for (auto [owner, row] : llvm::zip_equal(rowOwners, rows)) {
    Type type = values[owner].getType();
    auto add = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
      Type wide = getComputeType(args[0].getType());
      Value sum =
          arith::AddFOp::create(b, castFloat(b, args[0], wide), castFloat(b, args[1], wide));
      return {castFloat(b, sum, args[2].getType())};
    };
    values[owner] = createElementwise(builder, row.getLoc(), {values[owner], row},
                                      createEmpty(builder, row.getLoc(), type), add)
                        .front();
  }
}

/// Returns true if a result of this type is the check of a lookup. Only checks are integers.
static bool isLookup(Type type) { return isa<IntegerType>(getElementTypeOrSelf(type)); }

/// Builds the unsigned max(largest, value), whose result overwrites `largest`.
static Value createLargest(OpBuilder &builder, Location loc, Value largest, Value value) {
  auto body = [](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    return {arith::MaxUIOp::create(b, args[1], args[0])};
  };
  return createElementwise(builder, loc, value, largest, body).front();
}

/// Returns the type of a sum of tensors that have the type `type`. The elements of these tensors
/// are rounded to `rounded` before they are added.
static RankedTensorType getSumType(Type type, Type rounded) {
  auto tensor = cast<RankedTensorType>(type);
  Type wide = getComputeType(tensor.getElementType());
  return tensor.clone(rounded.isF64() ? rounded : wide);
}

/// Builds sum + value, where the value is first rounded to `rounded`. The result overwrites `sum`.
static Value createAdd(OpBuilder &builder, Location loc, Value sum, Value value, Type rounded) {
  return createElementwise(builder, loc, value, sum,
                           [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
                             Value term =
                                 castFloat(b, castFloat(b, args[0], rounded), args[1].getType());
                             return {arith::AddFOp::create(b, args[1], term)};
                           })
      .front();
}

/// Converts the elements of `value` to another type.
static Value createCast(OpBuilder &builder, Location loc, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  Value out = createEmpty(builder, loc, type.clone(element));
  return createElementwise(builder, loc, value, out,
                           [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
                             return {castFloat(b, args[0], element)};
                           })
      .front();
}

/// Builds sum · 1/n, rounds it to `rounded`, and converts the result to `type`.
static Value createMean(OpBuilder &builder, Location loc, Value sum, int64_t n, Type rounded,
                        Type type) {
  return createElementwise(builder, loc, sum, createEmpty(builder, loc, type),
                           [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
                             Value factor = createConstant(b, args[0].getType(), 1.0 / n);
                             Value mean = arith::MulFOp::create(b, args[0], factor);
                             mean = castFloat(b, mean, rounded);
                             return {castFloat(b, mean, args[1].getType())};
                           })
      .front();
}

/// Builds `numbers`, the number of the first sample of each micro-batch, from the argument
/// `sample`.
void NestBuilder::numberSamples(OpBuilder &builder, int64_t count, int64_t samples) {
  for (BlockArgument arg : func.getArguments()) {
    auto key = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::keyAttr);
    if (!key || key.getValue() != "sample" || arg.use_empty())
      continue;
    auto type = RankedTensorType::get({count}, builder.getI64Type());
    numbers =
        createElementwise(
            builder, arg.getLoc(), arg, createEmpty(builder, arg.getLoc(), type),
            [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
              Value index =
                  arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, 0));
              Value step = arith::ConstantIntOp::create(b, samples, 64);
              return {arith::AddIOp::create(b, args[0], arith::MulIOp::create(b, index, step))};
            })
            .front();
  }
}

/// Adds a leading dimension to the batch arguments. The size of this dimension is the number of
/// micro-batches.
void NestBuilder::addBatchDimension() {
  int64_t count = 1;
  for (const Level &level : levels)
    count *= level.size;
  for (BlockArgument arg : func.getArguments()) {
    if (count == 1 || !func.getArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr))
      continue;
    auto type = cast<RankedTensorType>(arg.getType());
    SmallVector<int64_t> shape{count};
    llvm::append_range(shape, type.getShape());
    arg.setType(type.clone(shape));
  }
  func.setType(FunctionType::get(func.getContext(), func.getBody().getArgumentTypes(),
                                 func.getResultTypes()));
}

/// Moves the body to the innermost loop, and replaces the batch arguments by the slices of
/// micro-batch `number`.
SmallVector<Value> NestBuilder::buildInnermost(OpBuilder &builder, Value number) {
  bool hasDimension = llvm::any_of(levels, [](const Level &level) { return level.size > 1; });
  for (BlockArgument arg : func.getArguments()) {
    if (!hasDimension || !func.getArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr))
      continue;
    auto type = cast<RankedTensorType>(arg.getType());
    auto sliceType = type.clone(type.getShape().drop_front());
    SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
    SmallVector<OpFoldResult> ones(type.getRank(), builder.getIndexAttr(1));
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, arg.getLoc(), arg);
    offsets[0] = number;
    sizes[0] = builder.getIndexAttr(1);
    auto slice =
        tensor::ExtractSliceOp::create(builder, arg.getLoc(), sliceType, arg, offsets, sizes, ones);
    arg.replaceAllUsesExcept(slice, slice);
  }
  for (BlockArgument arg : func.getArguments())
    if (auto key = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::keyAttr);
        numbers && key && key.getValue() == "sample")
      arg.replaceAllUsesExcept(
          createElementView(builder, arg.getLoc(), numbers, OpFoldResult(number)),
          numbers.getDefiningOp());
  for (Operation *op : body)
    op->moveBefore(builder.getInsertionBlock(), builder.getInsertionPoint());
  return llvm::to_vector_of<Value>(ret.getOperands());
}

/// Returns true if loop `level`, or a loop around it, adds the parts of results.
bool NestBuilder::hasParts(unsigned level) {
  return llvm::any_of(levels.take_front(level + 1), [](const Level &l) { return l.parts > 1; });
}

/// Builds loop `level` and the loops inside it. `number` is the sum of index times stride over the
/// outer loops, or null if there is no outer loop.
SmallVector<Value> NestBuilder::buildLevel(OpBuilder &builder, unsigned level, Value number) {
  if (level == levels.size())
    return buildInnermost(builder, number);
  Location loc = func.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto [size, stride, crossesRanks, addsRows, parts] = levels[level];
  // If an inner loop has already added the gradients of rows to the gradients of tables, this level
  // has no separate sums for the gradients of rows.
  bool within =
      llvm::any_of(levels.drop_front(level + 1), [](const Level &inner) { return inner.addsRows; });
  auto types = llvm::to_vector(ArrayRef(this->types).drop_back(within ? rowOwners.size() : 0));
  // An outer loop adds the parts of the results of an inner loop.
  bool isInner = level > 0 && hasParts(level - 1), haveParts = hasParts(levels.size() - 1);
  if (haveParts && !isInner)
    llvm::transform(types, types.begin(), getPartType);
  SmallVector<Value> zeros, means;
  // At a level that crosses ranks, values are rounded to the type in which collectives add.
  bool crosses = crossesRanks; // a lambda cannot capture a structured binding
  auto roundingOf = [&, crosses](unsigned i) {
    return crosses ? reduceTypes[i] : getElementTypeOrSelf(types[i]);
  };
  for (auto [i, type] : llvm::enumerate(types))
    zeros.push_back(
        createZeros(builder, loc, isLookup(type) ? type : getSumType(type, roundingOf(i))));
  Value zero = constant(0), one = constant(1), bound = constant(size);
  auto loop = scf::ForOp::create(builder, loc, zero, bound, one, zeros);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value index = loop.getInductionVar();
    if (stride != 1)
      index = arith::MulIOp::create(builder, loc, index, constant(stride));
    if (number)
      index = arith::AddIOp::create(builder, loc, number, index);
    SmallVector<Value> sums;
    SmallVector<Value> values = buildLevel(builder, level + 1, index);
    for (auto [i, carried, value] : llvm::enumerate(loop.getRegionIterArgs(), values)) {
      Value sum = carried;
      for (int64_t part = 0, numParts = parts; part < numParts; ++part) {
        Value term = numParts > 1 ? createPart(builder, value.getLoc(), value, part) : value;
        sum = isLookup(types[i]) ? createLargest(builder, value.getLoc(), sum, term)
                                 : createAdd(builder, value.getLoc(), sum, term, roundingOf(i));
      }
      sums.push_back(sum);
    }
    scf::YieldOp::create(builder, loc, sums);
  }
  for (auto [i, sum] : llvm::enumerate(loop.getResults()))
    means.push_back(isLookup(types[i])
                        ? Value(sum)
                        : createMean(builder, loc, sum, size * parts, roundingOf(i), types[i]));
  if (addsRows)
    addRows(builder, means, rowOwners);
  return means;
}

/// Returns true if the op remains before the loops, because all micro-batches use its result: the
/// gather of a hoisted unit, or the slice of a flat buffer that is gathered (it moves last).
static bool isHoisted(Operation &op) {
  if (auto unshard = dyn_cast<UnshardOp>(op))
    return SymbolTable::lookupNearestSymbolFrom<UnitOp>(&op, unshard.getUnitAttr()).getHoisted();
  return isa<tensor::ExtractSliceOp>(op) && isa<BlockArgument>(op.getOperand(0)) &&
         !op.use_empty() && llvm::all_of(op.getUsers(), [](Operation *user) {
           return isa<UnshardOp>(user) && isHoisted(*user);
         });
}

SmallVector<Value> NestBuilder::build() {
  Block &block = func.getBody().front();
  SmallVector<Operation *> hoisted;
  for (Operation &op : block.without_terminator())
    (isHoisted(op) ? hoisted : body).push_back(&op);
  llvm::stable_sort(hoisted,
                    [](auto *a, auto *b) { return isa<UnshardOp>(a) > isa<UnshardOp>(b); });
  for (Operation *op : hoisted)
    op->moveBefore(&block, block.begin());
  OpBuilder builder(ret);
  int64_t samples = countSamples(func);
  addBatchDimension();
  int64_t count = 1;
  for (const Level &level : levels)
    count *= level.size;
  numberSamples(builder, count, samples);
  return buildLevel(builder, 0, Value());
}

/// Sets the types of the gradients that the backward returns. If each micro-batch reduces a
/// gradient over the axis shard, the gradient has the type of one piece of the flat buffer.
/// Otherwise the gradient has the type of the whole flat buffer.
void AccumulateGradientsPass::layOut(const Program &program) {
  ValueRange grads = program.getReturn().getOperands().drop_front().drop_back(
      program.numLookups + program.rowOwners.size());
  for (auto [unit, grad] : llvm::zip_equal(program.getTrainable(), grads)) {
    UnitOp op = unit.unit;
    bool pieces = !programs.levels.sumFirst && !op.getOptimizerAxes().empty();
    int64_t size = pieces ? op.getShardSize() : op.getFlatSize();
    auto type = cast<RankedTensorType>(grad.getType());
    grad.setType(type.clone({size}));
  }
}

/// Replaces loss and gradients by their means over the ranks of the axis. The mean of a gradient is
/// in pieces if the optimizer state is in pieces.
void AccumulateGradientsPass::average(const Program &program, StringRef axis) {
  int64_t ranks = programs.mesh.getAxisSize(axis);
  if (ranks == 1)
    return;
  func::ReturnOp ret = program.getReturn();
  OpBuilder builder(ret);
  auto mesh = FlatSymbolRefAttr::get(programs.mesh.getSymNameAttr());
  auto avg = ReductionKindAttr::get(&getContext(), ReductionKind::avg);
  auto reduce = [&](Value value, bool pieces) -> Value {
    auto type = cast<RankedTensorType>(value.getType());
    if (!pieces)
      return createAllReduce(builder, value.getLoc(), value, programs.mesh, axis,
                             ReductionKind::avg);
    return FlatReduceScatterOp::create(builder, value.getLoc(),
                                       type.clone({type.getDimSize(0) / ranks}), value, mesh,
                                       builder.getStrArrayAttr({axis}), avg);
  };
  ret->setOperand(0, reduce(ret.getOperand(0), false));
  ++numReductions;
  if (program.kind == ProgramKind::Eval)
    return;
  for (auto [index, unit] : llvm::enumerate(program.getTrainable())) {
    Value grad = ret.getOperand(index + 1);
    UnitOp op = unit.unit;
    bool pieces = llvm::is_contained(op.getOptimizerAxes(), axis);
    // The reduce_scatter of the backward has already averaged this gradient.
    if (pieces && axis == "shard" &&
        cast<RankedTensorType>(grad.getType()).getDimSize(0) == int64_t(op.getShardSize()))
      continue;
    Type element = getElementTypeOrSelf(grad), rounded = reduceTypes[index + 1];
    Value mean = reduce(createCast(builder, grad.getLoc(), grad, rounded), pieces);
    ret->setOperand(index + 1, createCast(builder, grad.getLoc(), mean, element));
    ++numReductions;
  }
}

LogicalResult AccumulateGradientsPass::run(const Program &program) {
  const BatchLevels &batch = programs.levels;
  func::ReturnOp ret = program.getReturn();
  SmallVector<Level> levels;
  int64_t parts = program.numParts,
          terms = batch.replicate * batch.shard / parts * batch.accumulate;
  FailureOr<LossWeight> weight = createLossWeight(program.func, terms, batch.context);
  if (failed(weight))
    return failure();
  reduceTypes = llvm::map_to_vector(ret.getOperands(), getReduceType);
  auto addLevel = [&](int64_t size, int64_t stride, bool crosses = false, bool addsRows = false,
                      int64_t parts = 1) {
    if (size * parts > 1)
      levels.push_back({size, stride, crosses, addsRows, parts});
  };
  if (program.kind == ProgramKind::Step)
    layOut(program);
  if (!program.rowOwners.empty() && (batch.sumFirst || batch.shard == 1))
    return func::FuncOp(program.func)
        .emitError(
            "found gradients of rows of a sharded table; expected gradients to be reduced over "
            "the axis 'shard' with every micro-batch");
  if (program.isSharded() && !program.rowOwners.empty()) {
    OpBuilder builder(ret);
    auto values = llvm::to_vector_of<Value>(ret.getOperands());
    addRows(builder, values, program.rowOwners);
    ret->setOperands(values);
  }
  if (program.isSharded()) {
    if (!batch.sumFirst)
      average(program, "shard");
    addLevel(batch.accumulate, 1);
  } else {
    int64_t readers = batch.shard / parts; // ranks with different samples
    addLevel(batch.replicate, readers * batch.accumulate, /*crosses=*/true);
    if (batch.sumFirst)
      addLevel(readers, batch.accumulate, /*crosses=*/true, /*addsRows=*/false, parts);
    addLevel(batch.accumulate, 1);
    if (!batch.sumFirst)
      addLevel(readers, batch.accumulate, /*crosses=*/true, /*addsRows=*/true, parts);
  }
  if (!levels.empty()) {
    ArrayRef<unsigned> rowOwners = program.isSharded() ? ArrayRef<unsigned>() : program.rowOwners;
    SmallVector<Value> means = NestBuilder(program.func, levels, reduceTypes, rowOwners).build();
    ret->setOperands(means);
    numLoops += levels.size();
  }
  if (program.isSharded()) {
    if (batch.sumFirst)
      average(program, "shard");
    average(program, "replicate");
  }
  if (*weight &&
      failed(createTotalCount(program, *weight, program.isSharded() ? batch.accumulate : terms,
                              programs.mesh)))
    return failure();
  func::FuncOp func = program.func;
  llvm::BitVector added(func.getNumResults());
  if (!program.rowOwners.empty())
    added.set(func.getNumResults() - program.rowOwners.size(), func.getNumResults());
  if (failed(func.eraseResults(added)))
    return failure();
  func.setType(
      FunctionType::get(&getContext(), func.getBody().getArgumentTypes(), ret.getOperandTypes()));
  return success();
}

void AccumulateGradientsPass::runOnOperation() {
  FailureOr<Programs> read = readPrograms(getOperation(), "the loss", GradientForm::Adjoint);
  if (failed(read))
    return signalPassFailure();
  programs = std::move(*read);
  for (const Program &program : programs.list)
    if (failed(run(program)))
      return signalPassFailure();
}
