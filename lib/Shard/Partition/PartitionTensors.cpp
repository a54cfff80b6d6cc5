//===- PartitionTensors.cpp - Split values over tensor, context -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   before   %y = x · w1            w1: 64 x 256          after   %e = reduce_cotangent x
//            %z = gelu %y                                         %y = e · w1     w1: 64 x 128
//            %o = %z · w2           w2: 256 x 64                  %z = gelu %y
//            %s = x + %o                                          %p = %z · w2    w2: 128 x 64
//                                                                 %o = all_reduce %p sum
//                                                                 %s = x + %o
//
//  1. Declare the mesh.
//  2. Choose the values that are split over the axis `tensor` (TensorSeeds.cpp). Choose how each
//     op with such a value is split (SplitGroup.cpp). Report the choice (TensorRemarks.cpp). Then
//     rewrite the function (SplitRewrite.cpp).
//  3. Do the same for the axis `context` (SequenceSeeds.cpp), with the program of one rank of the
//     axis `tensor`.
//  4. With `sequence-parallel`, split the rows of values that are still whole on the axis `tensor`
//     (RowSeeds.cpp, RowRewrite.cpp).
//
// O(uses of split values), apart from the choice.
//
//===----------------------------------------------------------------------===//

#include "RowSeeds.h"
#include "SequenceSeeds.h"
#include "SplitRewrite.h"
#include "TensorRemarks.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Shard/MeshSpec.h"
#include "fsdp/Shard/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PARTITIONTENSORSPASS
#include "fsdp/Shard/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct PartitionTensorsPass : fsdp::impl::PartitionTensorsPassBase<PartitionTensorsPass> {
  using PartitionTensorsPassBase::PartitionTensorsPassBase;
  void runOnOperation() override;

private:
  LogicalResult splitTensors(func::FuncOp loss, int64_t ranks);
  LogicalResult splitSequence(func::FuncOp loss, int64_t ranks, int64_t stride);
  FailureOr<bool> chooseRing(func::FuncOp loss, const SplitAxis &axis, int64_t stride);
  LogicalResult splitRowsOver(func::FuncOp loss, int64_t ranks);
  LogicalResult checkRowParameters(func::FuncOp loss, const RowRegion &region);
  void rewrite(func::FuncOp loss, const SplitGroup &group, bool hasRing = false);
  LogicalResult checkPlan(const MeshSpec &spec);

  bool keepsWideSums = false; ///< whether --keep-f32 has the word `sums`
  TensorPlan plan;            ///< of --tensor-parallel=FILE
};
} // namespace

void PartitionTensorsPass::rewrite(func::FuncOp loss, const SplitGroup &group, bool hasRing) {
  SplitRewrite rewrite(loss, group);
  rewrite.hasRing = hasRing;
  rewrite.keepsWideSums = keepsWideSums;
  rewrite.run();
  numReduced += rewrite.numReduced;
  numEntered += rewrite.numEntered;
}

/// Splits heads and features over the axis `tensor`.
LogicalResult PartitionTensorsPass::splitTensors(func::FuncOp loss, int64_t ranks) {
  bool isAuto = tensorParallel == "auto";
  plan = {}; // the pass may run again
  if (!isAuto && failed(plan.read(tensorParallel, &getContext())))
    return failure();
  SmallVector<WholeGroup> whole;
  FailureOr<SplitGroup> group = chooseSplits(loss, ranks, isAuto ? nullptr : &plan, whole);
  if (failed(group))
    return failure();
  if (remarks)
    remarkSplits(loss, *group, whole, ranks);
  auto splitParams = llvm::make_filter_range(
      group->splits, [](auto &entry) { return isa<BlockArgument>(entry.first); });
  if (splitParams.empty() && !isAuto)
    return mlir::emitError(plan.getBegin())
           << "tensor-parallel: the file keeps all parameters whole, so that the " << ranks
           << " ranks of axis 'tensor' would compute the same; expected \"colwise\" or "
              "\"rowwise\" for a pattern, or --mesh without the axis";
  if (splitParams.empty()) {
    InFlightDiagnostic diag =
        mlir::emitError(loss.getLoc())
        << "axis 'tensor' of " << ranks
        << " ranks splits no parameter, so that its ranks would compute the same; remove the axis "
           "from --mesh, or select parameters by --tensor-parallel=FILE.json";
    for (const WholeGroup &some : ArrayRef(whole).take_front(4))
      diag.attachNote(some.op->getLoc()) << "not split: " << some.why;
    return diag;
  }
  if (isAuto)
    warnOfWholeAttention(whole, ranks);
  Builder b(&getContext());
  for (auto &[value, split] : splitParams) {
    loss.setArgAttr(cast<BlockArgument>(value).getArgNumber(), tensorSplitAttr,
                    split.toAttribute(&getContext()));
    ++numSplit;
  }
  rewrite(loss, *group);
  return success();
}

/// Returns "1.5 us".
static std::string microseconds(double seconds) {
  return llvm::formatv("{0:f1} us", seconds * 1e6).str();
}

/// Decides whether keys and values travel from rank to rank, or are gathered.
FailureOr<bool> PartitionTensorsPass::chooseRing(func::FuncOp loss, const SplitAxis &axis,
                                                 int64_t stride) {
  auto way = readOption<ContextAttention>(loss.getLoc(), "context-attention", contextAttention);
  if (failed(way) || *way != ContextAttention::Auto)
    return failed(way) ? FailureOr<bool>(failure()) : *way == ContextAttention::Ring;
  FailureOr<Cluster> machines = loadCluster(&getContext(), cluster);
  if (failed(machines))
    return failure();
  RingStep step = estimateRing(llvm::to_vector(loss.getBody().front().getOps<AttentionOp>()), axis,
                               stride, *machines);
  if (remarks)
    emitRemark(loss.getLoc()) << "axis 'context': keys and values "
                              << (step.isHidden() ? "travel in a ring" : "are gathered")
                              << ", because attention to a block takes "
                              << microseconds(step.attention) << ", sending the next one "
                              << microseconds(step.transfer) << " and merging "
                              << microseconds(step.merge) << "; a gather keeps " << step.gathered
                              << " bytes of other ranks";
  return step.isHidden();
}

/// Splits the sequence over the axis `context`, whose neighbours are `stride` ranks apart.
LogicalResult PartitionTensorsPass::splitSequence(func::FuncOp loss, int64_t ranks,
                                                  int64_t stride) {
  FailureOr<SplitGroup> group = chooseSequence(loss, ranks);
  if (failed(group))
    return failure();
  FailureOr<bool> hasRing = chooseRing(loss, group->getAxis(), stride);
  if (failed(hasRing))
    return failure();
  if (remarks)
    emitRemark(loss.getLoc()) << "axis 'context': a rank has "
                              << (group->getAxis().striped
                                      ? "every row whose number modulo " + std::to_string(ranks) +
                                            " is its coordinate, because attention of neighbouring "
                                            "rows would be unbalanced"
                                      : "neighbouring rows");
  rewrite(loss, *group, *hasRing);
  return success();
}

/// Fails if an op that reads a parameter with the word `sequence_parallel` is not computed on rows.
LogicalResult PartitionTensorsPass::checkRowParameters(func::FuncOp loss, const RowRegion &region) {
  SmallVector<StringRef> names;
  SmallVector<BlockArgument> arguments;
  for (BlockArgument argument : loss.getArguments())
    if (auto name =
            loss.getArgAttrOfType<StringAttr>(argument.getArgNumber(), FSDPDialect::paramAttr)) {
      names.push_back(name);
      arguments.push_back(argument);
    }
  auto owners = plan.match(names);
  if (failed(owners))
    return failure();
  for (auto [name, argument, owner] : llvm::zip_equal(names, arguments, *owners)) {
    if (!owner || owner->word != TensorWord::SequenceParallel)
      continue;
    for (Operation *user : argument.getUsers())
      if (!region.group.ops.contains(user)) {
        InFlightDiagnostic diag = emitError(owner->loc)
                                  << "tensor-parallel: '" << name << "' is " << nameOf(owner->word)
                                  << ", but " << describeOp(user)
                                  << " that reads it is not computed on rows; use \"replicate\"";
        diag.attachNote(user->getLoc()) << "the op is here; --remarks prints why it stays whole";
        return diag;
      }
  }
  return success();
}

/// Splits the rows of values that are whole on the axis `tensor`.
LogicalResult PartitionTensorsPass::splitRowsOver(func::FuncOp loss, int64_t ranks) {
  FailureOr<RowRegion> region = chooseRows(loss, ranks, remarks);
  if (failed(region))
    return failure();
  if (failed(checkRowParameters(loss, *region)))
    return failure();
  numRows += region->group.ops.size();
  splitRows(loss, *region);
  return success();
}

/// Reports options for the axis `tensor` that have no effect without it. A file for --config may
/// have a plan for other meshes.
LogicalResult PartitionTensorsPass::checkPlan(const MeshSpec &spec) {
  if (llvm::product_of(spec.tensor) > 1 || tensorParallel == "auto" ||
      !StringRef(mesh).contains("tensor="))
    return success();
  return mlir::emitError(getOperation().getLoc())
         << "--tensor-parallel=" << tensorParallel
         << " has no effect, because axis 'tensor' has one rank; expected at least 2";
}

/// Fails if the function reads an element of a computed tensor as a float scalar. Cotangents of
/// scalars are not added over the ranks.
static LogicalResult checkScalars(func::FuncOp func, StringRef axes) {
  for (auto read : func.getOps<tensor::ExtractOp>()) {
    if (!isa<FloatType>(read.getType()) || read.getTensor().getDefiningOp<arith::ConstantOp>())
      continue;
    return read.emitError("reads an element of a tensor as a scalar, which --mesh=")
           << axes << " does not support; keep the element as a tensor of rank 0, by "
           << "'tensor.collapse_shape' or as an operand of 'linalg.generic'";
  }
  return success();
}

void PartitionTensorsPass::runOnOperation() {
  ModuleOp module = getOperation();
  auto spec = parseMeshSpec(mesh, [&] { return mlir::emitError(module.getLoc()); });
  keepsWideSums =
      llvm::any_of(llvm::split(keepF32, ','), [](StringRef word) { return word.trim() == "sums"; });
  if (failed(spec) || failed(checkPlan(*spec)))
    return signalPassFailure();
  if (spec->getReaders() == 1) {
    if (keepsWideSums)
      mlir::emitWarning(module.getLoc())
          << "keep-f32=sums has no effect: --mesh has no axis 'tensor' of several ranks";
    return;
  }
  auto functions = llvm::to_vector(llvm::make_filter_range(
      module.getOps<func::FuncOp>(), [](func::FuncOp func) { return func.isPublic(); }));
  if (functions.size() != 1 || !functions[0].getBody().hasOneBlock() ||
      !module.getOps<MeshOp>().empty()) {
    mlir::emitError(module.getLoc(), "expected one public function with a body of one block, and "
                                     "no mesh, found ")
        << describeCount(functions.size(), "public function", "public functions")
        << (module.getOps<MeshOp>().empty() ? "" : " and a mesh") << "; run the Import stage first";
    return signalPassFailure();
  }
  if (failed(checkScalars(functions[0], mesh)))
    return signalPassFailure();
  OpBuilder builder(functions[0]);
  spec->declare(builder, functions[0].getLoc());
  int64_t tensor = llvm::product_of(spec->tensor), context = llvm::product_of(spec->context);
  if ((tensor > 1 && failed(splitTensors(functions[0], tensor))) ||
      (context > 1 && failed(splitSequence(functions[0], context, tensor))) ||
      (tensor > 1 && (sequenceParallel || plan.has(TensorWord::SequenceParallel)) &&
       failed(splitRowsOver(functions[0], tensor))))
    signalPassFailure();
}
