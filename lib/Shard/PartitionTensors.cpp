//===- PartitionTensors.cpp - Split values over the axis tensor -*- C++ -*-===//
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
//  1. Choose the values that are split (TensorSeeds.cpp), and how each op with such a value is
//     split (SplitGroup.cpp). Report them (TensorRemarks.cpp).
//  2. Declare the mesh, and give each split value the shape of a slice. Slices have new offsets and
//     sizes, and reshapes have new shapes. Fills are computed again with the shape of a slice.
//  3. Put a reduce_cotangent before the split ops that read a whole value: each rank computes a
//     part of its cotangent. All these ops read the same reduce_cotangent, so that ranks add the
//     cotangent of a value once.
//  4. Put an all_reduce after each op whose result is a partial sum.
//
// O(uses of split values), apart from step 1.
//
//===----------------------------------------------------------------------===//

#include "TensorRemarks.h"
#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/StopGradient.h"
#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Shard/MeshSpec.h"
#include "fsdp/Shard/Passes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PARTITIONTENSORSPASS
#include "fsdp/Shard/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Returns `type` with the size that one of `ranks` ranks has of the split dimension.
static RankedTensorType getSliceType(Type type, const TensorSplit &split, int64_t ranks) {
  auto tensor = cast<RankedTensorType>(type);
  auto shape = llvm::to_vector(tensor.getShape());
  shape[split.dim] /= ranks;
  return tensor.clone(shape);
}

namespace {
/// Rewrites a function to the program of one rank of the axis `tensor`.
class Partition {
public:
  Partition(func::FuncOp func, const SplitGroup &group, int64_t ranks)
      : func(func), group(group), ranks(ranks), b(func.getContext()) {}

  void run();

  int64_t numReduced = 0, numEntered = 0;

private:
  void resize(Operation *op, const OpSplits &splits);
  void setOperands(Operation *op, const OpSplits &splits);
  Value sliceUniform(Value value, const TensorSplit &split);
  Value enter(Value value);
  void addResults(Operation *op);

  func::FuncOp func;
  const SplitGroup &group;
  int64_t ranks;
  OpBuilder b;
  DenseMap<Value, Value> entered; ///< the reduce_cotangent of each whole value
};

struct PartitionTensorsPass : fsdp::impl::PartitionTensorsPassBase<PartitionTensorsPass> {
  using PartitionTensorsPassBase::PartitionTensorsPassBase;
  void runOnOperation() override;

private:
  LogicalResult partition(func::FuncOp loss, const MeshSpec &spec);
};
} // namespace

/// Computes a uniform value again with the shape of a slice.
Value Partition::sliceUniform(Value value, const TensorSplit &split) {
  RankedTensorType type = getSliceType(value.getType(), split, ranks);
  Location loc = value.getLoc();
  if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
    Value empty = sliceUniform(fill.getDpsInitOperand(0)->get(), split);
    return linalg::FillOp::create(b, loc, fill.getInputs()[0], empty).getResult(0);
  }
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    return arith::ConstantOp::create(
        b, loc, cast<DenseElementsAttr>(constant.getValue()).resizeSplat(type));
  return tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
}

/// Returns the reduce_cotangent of a whole value, which is directly after the op that computes it.
Value Partition::enter(Value value) {
  Value &result = entered[value];
  if (result)
    return result;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(value);
  result = ReduceCotangentOp::create(b, value.getLoc(), value.getType(), value,
                                     FlatSymbolRefAttr::get(b.getContext(), "mesh"),
                                     b.getStrArrayAttr({tensorAxis}));
  ++numEntered;
  return result;
}

/// Replaces the operands of a split op that are uniform or whole. Initial values of sums are zero
/// and stay.
void Partition::setOperands(Operation *op, const OpSplits &splits) {
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  b.setInsertionPoint(op);
  for (auto [operand, split] : llvm::zip_equal(op->getOpOperands(), splits.operands)) {
    Value value = operand.get();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (split && isUniform(value))
      operand.set(sliceUniform(value, *split));
    else if (!split && type && isa<FloatType>(type.getElementType()) &&
             !isConstantOrUniform(value) && !(destination && destination.isDpsInit(&operand)))
      operand.set(enter(value));
  }
}

/// Changes the attributes of an op that depend on the shapes of its operands and results.
void Partition::resize(Operation *op, const OpSplits &splits) {
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    expand.setStaticOutputShape(
        getSliceType(expand.getResultType(), *splits.results[0], ranks).getShape());
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice)
    return;
  // The dimension of the source before it is resized, with offset and size in whole blocks.
  int64_t dim = splits.operands[0]->dim;
  auto offsets = llvm::to_vector(slice.getStaticOffsets()),
       sizes = llvm::to_vector(slice.getStaticSizes());
  offsets[dim] /= ranks;
  sizes[dim] /= ranks;
  slice.setStaticOffsets(offsets);
  slice.setStaticSizes(sizes);
}

/// Adds the partial sums of all ranks.
void Partition::addResults(Operation *op) {
  b.setInsertionPointAfter(op);
  for (Value partial : op->getResults()) {
    auto sum = AllReduceOp::create(b, partial.getLoc(), partial.getType(), partial,
                                   FlatSymbolRefAttr::get(b.getContext(), "mesh"),
                                   b.getStrArrayAttr({tensorAxis}),
                                   ReductionKindAttr::get(b.getContext(), ReductionKind::sum));
    partial.replaceAllUsesExcept(sum.getResult(), sum);
    ++numReduced;
  }
}

void Partition::run() {
  SmallVector<Operation *> ops;
  for (Operation &op : func.getBody().front())
    if (group.ops.contains(&op))
      ops.push_back(&op);
  for (Operation *op : ops) {
    const OpSplits &splits = group.ops.find(op)->second;
    setOperands(op, splits);
    resize(op, splits);
    if (splits.partial)
      addResults(op);
  }
  for (auto &[value, split] : group.splits)
    Value(value).setType(getSliceType(value.getType(), split, ranks));
  // Erase the fills of whole values that no op reads any more.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  func.setFunctionType(
      b.getFunctionType(func.getBody().getArgumentTypes(), func.getFunctionType().getResults()));
}

LogicalResult PartitionTensorsPass::partition(func::FuncOp loss, const MeshSpec &spec) {
  int64_t ranks = llvm::product_of(spec.tensor);
  TensorPlan plan;
  bool isAuto = tensorParallel == "auto";
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
  OpBuilder builder(loss);
  MeshOp::create(builder, loss.getLoc(), "mesh", builder.getArrayAttr(spec.getAxes(&getContext())));
  Partition rewrite(loss, *group, ranks);
  rewrite.run();
  numReduced += rewrite.numReduced;
  numEntered += rewrite.numEntered;
  return success();
}

void PartitionTensorsPass::runOnOperation() {
  ModuleOp module = getOperation();
  auto spec = parseMeshSpec(mesh, [&] { return mlir::emitError(module.getLoc()); });
  if (failed(spec))
    return signalPassFailure();
  if (llvm::product_of(spec->tensor) == 1) {
    // A file for --config may have a plan for other meshes.
    if (tensorParallel == "auto" || !StringRef(mesh).contains("tensor="))
      return;
    mlir::emitError(module.getLoc())
        << "--tensor-parallel=" << tensorParallel
        << " has no effect, because axis 'tensor' has one rank; expected at least 2";
    return signalPassFailure();
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
  if (failed(partition(functions[0], *spec)))
    signalPassFailure();
}
