//===- BindKeys.cpp - Keys of random numbers --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Some arguments are keys of random numbers. This pass replaces these arguments by values from the
// rank block.
//
//   func @step(.., %rank,                     func @step(.., %rank, ..)
//              %seed {fsdp.key = "seed"},       %seed = %rank[4], %step = %rank[5]
//              %step {.. "step"},         =>    %first = %rank[0] · samples of a rank and step
//              %first {.. "sample"})
//              %part {.. "context"},                %part = %rank[1] mod ranks of context
//              %slice {.. "tensor"})                %slice = %rank[0] mod ranks of tensor
//
// 1. Replace seed and step by views of the rank block.
// 2. Replace sample by the number of the rank's first sample in the global batch, which is 0 in the
//    reference. (AccumulateGradients.cpp counts micro-batches.)
// 3. Replace context and tensor by the coordinate of the rank on this axis of the mesh. The ranks
//    of tensor are neighbours, and those of context are neighbours on the axis shard.
// 4. Erase the arguments. O(arguments).
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include "Programs.h"
#include "fsdp/IR/StepBlock.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Update/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_BINDKEYSPASS
#include "fsdp/Update/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the number of samples that a run of the program processes in all its micro-batches.
static int64_t countAllSamples(func::FuncOp func) {
  auto microBatches = func->getAttrOfType<IntegerAttr>(FSDPDialect::microBatchesAttr);
  // If there are micro-batches, the size of the leading dimension of the batch is the number of
  // micro-batches.
  int64_t samples = countSamples(func);
  if (!microBatches || microBatches.getInt() <= 1)
    return samples;
  for (BlockArgument arg : func.getArguments()) {
    auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::batchAttr);
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (name && type && type.getRank() > 1 && type.getDimSize(0) == samples)
      return samples * type.getDimSize(1);
  }
  return samples;
}

/// Builds the number of the first sample of a rank that runs `samples` samples. `readers`
/// consecutive ranks read the same samples.
static Value createSample(OpBuilder &builder, Location loc, Value rank, int64_t samples,
                          int64_t readers) {
  Value index = createElementView(builder, loc, rank, static_cast<int64_t>(RankSlot::Rank));
  return createElementwise(builder, loc, index, createEmpty(builder, loc, index.getType()),
                           [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
                             Value each = arith::ConstantIntOp::create(b, samples, 64);
                             Value reader = args[0];
                             if (readers > 1)
                               reader = arith::DivUIOp::create(
                                   b, reader, arith::ConstantIntOp::create(b, readers, 64));
                             return {arith::MulIOp::create(b, reader, each)};
                           })
      .front();
}

/// Builds the coordinate of a rank on an axis of `ranks` ranks, which are neighbours in the numbers
/// of `slot`.
static Value createCoordinate(OpBuilder &builder, Location loc, Value rank, RankSlot slot,
                              int64_t ranks) {
  Value index = createElementView(builder, loc, rank, static_cast<int64_t>(slot));
  return createElementwise(builder, loc, index, createEmpty(builder, loc, index.getType()),
                           [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
                             Value size = arith::ConstantIntOp::create(b, ranks, 64);
                             return {arith::RemUIOp::create(b, args[0], size)};
                           })
      .front();
}

static MeshOp getMesh(func::FuncOp func) {
  auto name = func->getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::meshAttr);
  return name ? SymbolTable::lookupNearestSymbolFrom<MeshOp>(func, name) : MeshOp();
}

namespace {
struct BindKeysPass : fsdp::impl::BindKeysPassBase<BindKeysPass> {
  LogicalResult run(func::FuncOp func) {
    bool isReference =
        func->getAttrOfType<StringAttr>(FSDPDialect::programAttr).getValue() == "reference";
    BlockArgument rank;
    for (BlockArgument arg : func.getArguments())
      if (func.getArgAttr(arg.getArgNumber(), FSDPDialect::rankAttr))
        rank = arg;
    MeshOp mesh = getMesh(func);
    OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
    llvm::BitVector bound(func.getNumArguments());
    for (BlockArgument arg : func.getArguments()) {
      auto key = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::keyAttr);
      if (!key)
        continue;
      bound.set(arg.getArgNumber());
      ++numBound;
      if (arg.use_empty())
        continue;
      if (!rank)
        return func.emitError("expected an argument for the rank block, from which '")
               << FSDPDialect::keyAttr << "' is read";
      if (key.getValue() == "sample" && isReference)
        arg.replaceAllUsesWith(
            arith::ConstantOp::create(builder, arg.getLoc(),
                                      DenseElementsAttr::get(cast<RankedTensorType>(arg.getType()),
                                                             builder.getI64IntegerAttr(0))));
      else if (key.getValue() == "sample")
        arg.replaceAllUsesWith(createSample(builder, arg.getLoc(), rank, countAllSamples(func),
                                            mesh ? mesh.getNumReaders() : 1));
      else if (key.getValue() == contextAxis || key.getValue() == tensorAxis)
        arg.replaceAllUsesWith(
            createCoordinate(builder, arg.getLoc(), rank,
                             key.getValue() == contextAxis ? RankSlot::ShardIndex : RankSlot::Rank,
                             mesh ? mesh.getAxisSize(key.getValue()) : 1));
      else
        arg.replaceAllUsesWith(createElementView(builder, arg.getLoc(), rank,
                                                 static_cast<int64_t>(key.getValue() == "seed"
                                                                          ? RankSlot::Seed
                                                                          : RankSlot::StepNumber)));
    }
    return func.eraseArguments(bound);
  }

  void runOnOperation() override {
    for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (func->hasAttr(FSDPDialect::programAttr) && failed(run(func)))
        return signalPassFailure();
  }
};
} // namespace
