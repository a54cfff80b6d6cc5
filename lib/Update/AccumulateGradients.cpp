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
//                       all_reduce(loss, g over replicate)
//            reference  for r, for a, for s: f(x[(r·S + s)·A + a]), add
//
//  1. Sharded programs: average the loss over the axis shard, where the
//     gradients already are (reduce_scatter).
//  2. Put the body in a nest of loops, one per level that is more than one
//  long;
//     a loop carries sums from +0 and is followed by · 1/n.
//  3. Sharded programs: average everything over the axis replicate.
//
// Both programs add the same numbers in the same order and round at the same
// places: level by level, shard innermost. O(ops).
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
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

/// A loop of the nest: its length, and what its index is multiplied by in the
/// number of the micro-batch.
struct Level {
  int64_t size, stride;
};

/// Builds the loops of one program.
class NestBuilder {
public:
  NestBuilder(func::FuncOp func, ArrayRef<Level> levels)
      : func(func), levels(levels),
        ret(cast<func::ReturnOp>(func.getBody().front().getTerminator())),
        types(ret.getOperandTypes()) {}

  /// Puts everything before the return into the loops; the means.
  SmallVector<Value> build();

private:
  SmallVector<Value> buildLevel(OpBuilder &builder, unsigned level,
                                Value number);
  SmallVector<Value> buildInnermost(OpBuilder &builder, Value number);
  void addBatchDimension();

  func::FuncOp func;
  ArrayRef<Level> levels;
  func::ReturnOp ret;
  SmallVector<Type> types; ///< of the loss and the gradients
  SmallVector<Operation *> body;
};

struct AccumulateGradientsPass
    : fsdp::impl::AccumulateGradientsPassBase<AccumulateGradientsPass> {
  using AccumulateGradientsPassBase::AccumulateGradientsPassBase;
  void runOnOperation() override;

private:
  void run(const Program &program);
  void average(MutableArrayRef<OpOperand> values, StringRef axis);

  Programs programs;
};

} // namespace

/// The type in which numbers of `type`'s elements are added.
static RankedTensorType getSumType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.clone(getComputeType(tensor.getElementType()));
}

/// sum + value, in place of the sum.
static Value createAdd(OpBuilder &builder, Location loc, Value sum,
                       Value value) {
  return createElementwise(builder, loc, value, sum,
                           [](ImplicitLocOpBuilder &b,
                              ValueRange args) -> SmallVector<Value> {
                             Value wide =
                                 castFloat(b, args[0], args[1].getType());
                             return {arith::AddFOp::create(b, args[1], wide)};
                           })
      .front();
}

/// sum · 1/n as `type`.
static Value createMean(OpBuilder &builder, Location loc, Value sum, int64_t n,
                        Type type) {
  return createElementwise(builder, loc, sum, createEmpty(builder, loc, type),
                           [&](ImplicitLocOpBuilder &b,
                               ValueRange args) -> SmallVector<Value> {
                             Value factor =
                                 createConstant(b, args[0].getType(), 1.0 / n);
                             Value mean =
                                 arith::MulFOp::create(b, args[0], factor);
                             return {castFloat(b, mean, args[1].getType())};
                           })
      .front();
}

/// The batch arguments get a leading dimension: all micro-batches.
void NestBuilder::addBatchDimension() {
  int64_t count = 1;
  for (const Level &level : levels)
    count *= level.size;
  for (BlockArgument arg : func.getArguments()) {
    if (!func.getArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr))
      continue;
    auto type = cast<RankedTensorType>(arg.getType());
    SmallVector<int64_t> shape{count};
    llvm::append_range(shape, type.getShape());
    arg.setType(type.clone(shape));
  }
  func.setType(FunctionType::get(func.getContext(),
                                 func.getBody().getArgumentTypes(),
                                 func.getResultTypes()));
}

/// The body itself, on micro-batch `number`.
SmallVector<Value> NestBuilder::buildInnermost(OpBuilder &builder,
                                               Value number) {
  for (BlockArgument arg : func.getArguments()) {
    if (!func.getArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr))
      continue;
    auto type = cast<RankedTensorType>(arg.getType());
    auto sliceType = type.clone(type.getShape().drop_front());
    SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
    SmallVector<OpFoldResult> ones(type.getRank(), builder.getIndexAttr(1));
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(builder, arg.getLoc(), arg);
    offsets[0] = number;
    sizes[0] = builder.getIndexAttr(1);
    auto slice = tensor::ExtractSliceOp::create(
        builder, arg.getLoc(), sliceType, arg, offsets, sizes, ones);
    arg.replaceAllUsesExcept(slice, slice);
  }
  for (Operation *op : body)
    op->moveBefore(builder.getInsertionBlock(), builder.getInsertionPoint());
  return llvm::to_vector_of<Value>(ret.getOperands());
}

/// Loop `level` and those in it; `number` is the part of the micro-batch's
/// number that the loops around give, null for none.
SmallVector<Value> NestBuilder::buildLevel(OpBuilder &builder, unsigned level,
                                           Value number) {
  if (level == levels.size())
    return buildInnermost(builder, number);
  Location loc = func.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto [size, stride] = levels[level];
  SmallVector<Value> zeros, means;
  for (Type type : types)
    zeros.push_back(createZeros(builder, loc, getSumType(type)));
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
    for (auto [sum, value] : llvm::zip_equal(loop.getRegionIterArgs(), values))
      sums.push_back(createAdd(builder, value.getLoc(), sum, value));
    scf::YieldOp::create(builder, loc, sums);
  }
  for (auto [sum, type] : llvm::zip_equal(loop.getResults(), types))
    means.push_back(createMean(builder, loc, sum, size, type));
  return means;
}

SmallVector<Value> NestBuilder::build() {
  for (Operation &op : func.getBody().front().without_terminator())
    body.push_back(&op);
  addBatchDimension();
  OpBuilder builder(ret);
  return buildLevel(builder, 0, Value());
}

/// Replaces each value by its mean over the ranks of the axis.
void AccumulateGradientsPass::average(MutableArrayRef<OpOperand> values,
                                      StringRef axis) {
  if (programs.mesh.getAxisSize(axis) == 1)
    return;
  for (OpOperand &use : values) {
    OpBuilder builder(use.getOwner());
    use.set(createAllReduce(builder, use.getOwner()->getLoc(), use.get(),
                            programs.mesh, axis, ReductionKind::avg));
    ++numReductions;
  }
}

void AccumulateGradientsPass::run(const Program &program) {
  const BatchLevels &batch = programs.levels;
  func::ReturnOp ret = program.getReturn();
  SmallVector<Level> levels;
  auto addLevel = [&](int64_t size, int64_t stride) {
    if (size > 1)
      levels.push_back({size, stride});
  };
  if (program.isSharded()) {
    average(ret->getOpOperands().take_front(1), "shard");
    addLevel(batch.accumulate, 1);
  } else {
    addLevel(batch.replicate, batch.shard * batch.accumulate);
    addLevel(batch.accumulate, 1);
    addLevel(batch.shard, batch.accumulate);
  }
  if (!levels.empty()) {
    SmallVector<Value> means = NestBuilder(program.func, levels).build();
    ret->setOperands(means);
    numLoops += levels.size();
  }
  if (program.isSharded())
    average(ret->getOpOperands(), "replicate");
}

void AccumulateGradientsPass::runOnOperation() {
  FailureOr<Programs> read = readPrograms(getOperation(), "the loss");
  if (failed(read))
    return signalPassFailure();
  programs = std::move(*read);
  for (const Program &program : programs.list)
    run(program);
}
