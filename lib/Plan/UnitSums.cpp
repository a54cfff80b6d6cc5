//===- UnitSums.cpp - The sums of a unit by one all-reduce ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// With --sequence-parallel, each rank of the axis `tensor` has a part of the gradients of norms.
// These parts are added over the axis before the gradients of the unit are scattered:
//
//   a -> | x |  all_reduce | da |                    a, b -> | x | y | . |     kernels write here
//   b -> | y |  all_reduce | db |              ->              \_____/  all_reduce in place
//   copies   | da | db | . |  reduce_scatter                 | da | db | . |  reduce_scatter
//
//  1. findUnitSum() finds an all-reduce whose result only a reduce-scatter reads, or only a kernel
//     whose result the reduce-scatter reads (a cast). No later op may read its operand.
//  2. joinUnitSums() places the operands in the flat buffer of the reduce-scatter, so that kernels
//     write there (reserveFlatBuffers). Before casts, they have a buffer of their own.
//  3. Sums whose places follow each other are joined if no op reads one of them before the last one
//     is complete. planAllReduce() emits one all-reduce, in place, at the last one.
//
// Contributions are added in rank order, so results have the same bits as with one all-reduce for
// each gradient. The bytes sent are the same too. O(gradients).
//
// Not done: sums that are added to those of other micro-batches before they are scattered.
//
//===----------------------------------------------------------------------===//

#include "FunctionPlan.h"

using namespace mlir;
using namespace mlir::fsdp;

static RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Returns the value before reshapes that nothing else reads; null if another op reads one of them.
static Value skipReshapes(Value value) {
  while (value.hasOneUse()) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      return value;
    value = op->getOperand(0);
  }
  return {};
}

/// Returns the all-reduce whose result is `gradient` or, if `isCast`, the only sum that a kernel
/// computes `gradient` from; null if others read the sum, or if its operand is read later.
AllReduceOp FunctionPlan::findUnitSum(ReduceScatterOp op, Value gradient, bool isCast) {
  Value value = skipReshapes(gradient);
  if (value && isCast) {
    auto call = value.getDefiningOp<KernelCallOp>();
    value = call && call.getInputs().size() == 1 ? skipReshapes(call.getInputs()[0]) : Value();
  }
  auto sum = value ? value.getDefiningOp<AllReduceOp>() : AllReduceOp();
  bool isPrivate = sum && sum->getBlock() == op->getBlock() && !aliasing.getViewSource(sum) &&
                   aliasing.getEnd(sum.getInput()) <= aliasing.getPosition(sum);
  Type element = getTensorType(op.getShard()).getElementType();
  return isPrivate && (isCast || getTensorType(value).getElementType() == element) ? sum
                                                                                   : AllReduceOp();
}

void FunctionPlan::joinUnitSums(ReduceScatterOp op, const Place &flat) {
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  int64_t width = flat.bytes / std::max<int64_t>(1, unit.getFlatSize()), bytes = 0;
  SmallVector<std::pair<AllReduceOp, Place>> direct, cast;
  for (auto [gradient, index] : llvm::zip_equal(op.getGrads(), op.getParams())) {
    if (AllReduceOp sum = findUnitSum(op, gradient, /*isCast=*/false)) {
      direct.push_back({sum,
                        {flat.buffer, unit.getParam(index).getOffset() * width,
                         getStorageBytes(getTensorType(gradient))}});
    } else if (AllReduceOp before = findUnitSum(op, gradient, /*isCast=*/true)) {
      int64_t size = getStorageBytes(getTensorType(before.getResult()));
      cast.push_back({before, {{}, bytes, size}});
      bytes += size;
    }
  }
  joinUnitSums(direct);
  bool isAligned = llvm::all_of(cast, [](auto &sum) { return sum.second.isAligned(); });
  if (cast.size() < 2 || !isAligned)
    return;
  Place all = addBuffer("sums of " + unit.getSymName(), Category::staging, bytes, op.getLoc());
  for (auto &[sum, place] : cast) {
    place.buffer = all.buffer;
    Value root = traceRoot(op, sum.getInput());
    if (root && !reserved.contains(root))
      reserved[root] = place;
  }
  joinUnitSums(cast);
}

void FunctionPlan::joinUnitSums(ArrayRef<std::pair<AllReduceOp, Place>> sums) {
  while (!sums.empty()) {
    auto [first, range] = sums.front();
    AllReduceOp last = first;
    size_t joined = 1;
    int64_t firstRead = aliasing.getPosition(*first->user_begin());
    for (auto [sum, place] : sums.drop_front()) {
      AllReduceOp later = aliasing.getPosition(sum) > aliasing.getPosition(last) ? sum : last;
      int64_t read = std::min(firstRead, aliasing.getPosition(*sum->user_begin()));
      if (sum.getAxes() != first.getAxes() || sum.getReduction() != first.getReduction() ||
          sum.getMeshAttr() != first.getMeshAttr() || place.offset != range.offset + range.bytes ||
          getTensorType(sum.getResult()).getElementType() !=
              getTensorType(first.getResult()).getElementType() ||
          read < aliasing.getPosition(later))
        break;
      range.bytes += place.bytes;
      last = later;
      firstRead = read;
      ++joined;
    }
    for (auto [sum, place] : sums.take_front(joined))
      unitSums[sum] = place;
    unitSumRanges[last] = range;
    sums = sums.drop_front(joined);
  }
}

LogicalResult FunctionPlan::planAllReduce(AllReduceOp op) {
  auto planned = unitSums.find(op);
  if (planned == unitSums.end())
    return planCollective(op, CollectiveKind::all_reduce, op.getAxes(), op.getReduction(), 0);
  if (!(getPlace(op.getInput()) == planned->second))
    materialise(op.getInput(), planned->second, op.getLoc());
  setPlace(op.getResult(), planned->second);
  if (auto range = unitSumRanges.find(op); range != unitSumRanges.end())
    emitCollective(op, CollectiveKind::all_reduce, range->second, range->second,
                   getTensorType(op.getResult()).getElementType(), op.getAxes(), op.getReduction(),
                   {}, 0);
  return success();
}
