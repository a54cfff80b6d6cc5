//===- SplitRewrite.cpp - The program of one rank of an axis ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   value read by a split op        axis `tensor`          axis `context`
//   uniform                         filled again           filled again
//   parameter                       slice, or entered      own slice, or as it is
//   depends on no parameter         as it is               own slice, or as it is
//   sum over the ranks              entered                entered
//
//  1. Give each split value the shape of a slice. Slices have new offsets and sizes, and reshapes
//     have new shapes. Fills are computed again with the shape of a slice.
//  2. Put a reduce_cotangent ("entered") before the split ops that read a whole value, if all
//     ranks need its cotangent: each rank computes a part of it. All these ops read the same
//     reduce_cotangent, so that ranks add the cotangent of a value once.
//  3. Put an all_reduce after each op whose result is a partial sum. NarrowSums.cpp chooses the
//     type in which ranks send the terms.
//  4. On the axis `context`, the cotangents of parameters stay parts: the gradients of units are
//     added over this axis with those of other samples. If an op that is not split reads both a sum
//     over the ranks and such a value, put a share_cotangent before the latter.
//  5. On the axis `context`, a split op reads the own slice of a whole value that has the split
//     dimension. SequenceRewrite.cpp has these slices, attention and the cross-entropy.
//  6. On the axis `tensor`, VocabularyRewrite.cpp has lookups in rows of a table, and the
//     cross-entropy. HeadRewrite.cpp has the parts that a rank reads of whole values.
//
// O(uses of values).
//
//===----------------------------------------------------------------------===//

#include "SplitRewrite.h"
#include "NarrowSums.h"
#include "fsdp/IR/StopGradient.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::fsdp;

RankedTensorType fsdp::getSliceType(Type type, const TensorSplit &split, const SplitAxis &axis) {
  auto tensor = cast<RankedTensorType>(type);
  auto shape = llvm::to_vector(tensor.getShape());
  shape[split.dim] /= axis.countParts(split);
  return tensor.clone(shape);
}

static bool isFloatTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// Computes a uniform value again with the shape of a slice.
Value SplitRewrite::sliceUniform(Value value, const TensorSplit &split) {
  RankedTensorType type = getSliceType(value.getType(), split, axis);
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

SplitRewrite::Cotangent SplitRewrite::getCotangent(Value value) {
  if (!isFloatTensor(value) || isConstantOrUniform(value))
    return Cotangent::None;
  if (!axis.isContext() || sums.contains(value))
    return Cotangent::Whole;
  return group.dependsOnParameters(value) ? Cotangent::Part : Cotangent::None;
}

/// Returns the result of an op of the type Op that reads `value`. If it is not in `known`, creates
/// the op directly after `value`, or before the first reader of a parameter, whose unit is gathered
/// there.
template <typename Op>
Value SplitRewrite::createOnce(DenseMap<Value, Value> &known, Value value) {
  Value &result = known[value];
  if (result)
    return result;
  OpBuilder::InsertionGuard guard(b);
  if (!isa<BlockArgument>(value))
    b.setInsertionPointAfterValue(value);
  return result = Op::create(b, value.getLoc(), value.getType(), value, getMesh(), getAxes());
}

Value SplitRewrite::enter(Value value) { return createOnce<ReduceCotangentOp>(entered, value); }

Value SplitRewrite::share(Value value) { return createOnce<ShareCotangentOp>(shared, value); }

/// Replaces the operands of a split op that are uniform or whole. Initial values of sums are zero
/// and stay.
void SplitRewrite::setOperands(Operation *op, const OpSplits &splits) {
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  b.setInsertionPoint(op);
  for (auto [operand, split] : llvm::zip_equal(op->getOpOperands(), splits.operands)) {
    Value value = operand.get();
    if (split && isUniform(value))
      operand.set(sliceUniform(value, *split));
    else if (split && group.isSliced(value))
      operand.set(axis.isContext() || axis.rows ? slice(value, *split) : pick(value, *split));
    else if (!split && getCotangent(value) == Cotangent::Whole &&
             !(destination && destination.isDpsInit(&operand)))
      operand.set(enter(value));
  }
}

/// Changes the attributes of an op that depend on the shapes of its operands and results.
void SplitRewrite::resize(Operation *op, const OpSplits &splits) {
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    expand.setStaticOutputShape(
        getSliceType(expand.getResultType(), *splits.results[0], axis).getShape());
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice)
    return;
  // The dimension of the source before it is resized, with offset and size in whole blocks.
  int64_t dim = splits.operands[0]->dim;
  auto offsets = llvm::to_vector(slice.getStaticOffsets()),
       sizes = llvm::to_vector(slice.getStaticSizes());
  offsets[dim] /= axis.countParts(*splits.operands[0]);
  sizes[dim] /= axis.countParts(*splits.operands[0]);
  slice.setStaticOffsets(offsets);
  slice.setStaticSizes(sizes);
}

/// Adds the partial sums of all ranks.
void SplitRewrite::addResults(Operation *op) {
  const OpSplits &splits = group.ops.find(op)->second;
  for (auto [result, split] : llvm::zip_equal(op->getResults(), splits.results)) {
    if (split)
      continue;
    // The loss of a cross-entropy has been multiplied by its weight, and rows have been masked.
    Value partial = result;
    if (isa<CrossEntropyOp, GatherRowsOp>(op))
      partial = result.getUsers().begin()->getResult(0);
    b.setInsertionPointAfterValue(partial);
    FloatType narrow = keepsWideSums ? FloatType() : getTermType(op, partial);
    auto readers = llvm::to_vector(partial.getUsers());
    Value term = narrow ? roundTerm(b, partial, narrow) : partial;
    auto sum = AllReduceOp::create(b, partial.getLoc(), term.getType(), term, getMesh(), getAxes(),
                                   ReductionKindAttr::get(b.getContext(), ReductionKind::sum));
    if (!narrow)
      partial.replaceAllUsesExcept(sum.getResult(), sum);
    else
      for (Operation *reader : readers) {
        readNarrowSum(cast<linalg::GenericOp>(reader), partial, sum);
        narrowReaders.insert(cast<linalg::GenericOp>(reader));
      }
    sums.insert(sum.getResult());
    ++numReduced;
  }
}

/// Finds the cotangents of the results of an op that is not split.
void SplitRewrite::visitWhole(Operation *op) {
  bool isWhole = llvm::any_of(
      op->getOperands(), [&](Value operand) { return getCotangent(operand) == Cotangent::Whole; });
  if (!axis.isContext() || !isWhole)
    return;
  b.setInsertionPoint(op);
  for (OpOperand &operand : op->getOpOperands())
    if (getCotangent(operand.get()) == Cotangent::Part)
      operand.set(share(operand.get()));
  sums.insert_range(op->getResults());
}

void SplitRewrite::run() {
  if (needsCoordinate())
    addCoordinate();
  SmallVector<Operation *> ops;
  for (Operation &op : func.getBody().front()) {
    ops.push_back(&op);
    if (auto split = group.ops.find(&op); split != group.ops.end())
      resize(&op, split->second);
    if (auto loss = dyn_cast<CrossEntropyOp>(op))
      targets[loss] = loss.getTargets();
  }
  for (auto &[value, split] : group.splits)
    Value(value).setType(getSliceType(value.getType(), split, axis));
  for (Operation *op : ops) {
    auto split = group.ops.find(op);
    if (split == group.ops.end()) {
      visitWhole(op);
      continue;
    }
    setOperands(op, split->second);
    if (auto attention = dyn_cast<AttentionOp>(op); attention && axis.isContext())
      readKeys(attention);
    else if (attention)
      shiftIndices(attention, split->second.results[0]->dim);
    if (auto loss = dyn_cast<CrossEntropyOp>(op); loss && axis.isContext())
      weighLoss(loss, targets[loss]);
    else if (loss)
      shareClasses(loss);
    if (auto lookup = dyn_cast<GatherRowsOp>(op); lookup && split->second.partial)
      maskRows(lookup);
    if (split->second.partial)
      addResults(op);
  }
  numEntered = static_cast<int64_t>(entered.size());
  for (linalg::GenericOp reader : narrowReaders)
    if (isIdentity(reader))
      reader.getResult(0).replaceAllUsesWith(reader.getDpsInputs()[0]);
  // Erase the fills and maps that no op reads any more.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  func.setFunctionType(
      b.getFunctionType(func.getBody().getArgumentTypes(), func.getFunctionType().getResults()));
}
