//===- SplitViews.cpp - Splits through views and slices ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A group of a reshape maps one dimension of the collapsed type to several dimensions of the
// expanded type:
//
//   collapsed   [192]         blocks {192}           blocks {64, 64, 64}
//   expanded    [3, 4, 16]    dimension 0: {3}       dimension 1: {4}
//
// If a block covers whole entries of the first dimension of the group, the first dimension is
// split. Otherwise each entry of the first dimension consists of the same blocks, and the next
// dimension is split in the same way.
//
// A slice along a split dimension must consist of whole blocks. If only the result of a slice is
// known, the blocks of its source are the slices of all readers of the source.
//
//===----------------------------------------------------------------------===//

#include "SplitRules.h"
#include <numeric>

using namespace mlir;
using namespace mlir::fsdp;

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Returns the split of the expanded type. `group` lists the dimensions of the expanded type, of
/// shape `shape`, into which the split dimension is expanded.
static std::optional<TensorSplit> expandSplit(const TensorSplit &split, ArrayRef<int64_t> group,
                                              ArrayRef<int64_t> shape, UnitSplit units) {
  SmallVector<int64_t> blocks = split.blocks;
  for (auto [i, dim] : llvm::enumerate(group)) {
    int64_t inner = 1;
    for (int64_t other : group.drop_front(i + 1))
      inner *= shape[other];
    bool isLast = i + 1 == group.size();
    if (shape[dim] == 1 && !isLast &&
        (units == UnitSplit::None || (units == UnitSplit::Last && shape[group[i + 1]] == 1)))
      continue;
    if (llvm::all_of(blocks, [&](int64_t block) { return block % inner == 0; }) &&
        (blocks.size() == 1 || llvm::any_of(blocks, [&](int64_t b) { return b != inner; }))) {
      TensorSplit result{dim, {}};
      for (int64_t block : blocks)
        result.blocks.push_back(block / inner);
      return result;
    }
    // The blocks of one entry. All entries must have the same ones.
    size_t each = blocks.size() / shape[dim];
    auto first = ArrayRef(blocks).take_front(each);
    if (int64_t(each) * shape[dim] != int64_t(blocks.size()) ||
        std::accumulate(first.begin(), first.end(), int64_t(0)) != inner)
      return std::nullopt;
    for (size_t i = each; i < blocks.size(); ++i)
      if (blocks[i] != blocks[i - each])
        return std::nullopt;
    blocks.resize(each);
  }
  return std::nullopt;
}

/// Returns the split of the collapsed type, whose dimension `into` contains dimensions `group` of
/// the expanded type, of shape `shape`. The inverse of expandSplit.
static std::optional<TensorSplit> collapseSplit(const TensorSplit &split, ArrayRef<int64_t> group,
                                                ArrayRef<int64_t> shape, int64_t into) {
  int64_t outer = 1, inner = 1;
  for (int64_t dim : group)
    (dim < split.dim ? outer : inner) *= dim == split.dim ? 1 : shape[dim];
  TensorSplit result{into, {}};
  if (outer > 1 && split.blocks.size() > 1)
    return std::nullopt;
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t block : split.blocks)
      result.blocks.push_back(block * inner);
  return result;
}

/// Derives the splits of a reshape. `groups` maps each dimension of the collapsed type to
/// dimensions of the expanded type.
static std::optional<OpSplits> deriveReshape(Operation *op, ArrayRef<ReassociationIndices> groups,
                                             bool expands, ValuePlace place,
                                             const TensorSplit &split, std::string &why,
                                             UnitSplit units) {
  ArrayRef<int64_t> shape = getShape(expands ? op->getResult(0) : op->getOperand(0));
  std::optional<TensorSplit> other;
  bool isExpanded = expands == place.isResult;
  for (auto [dim, group] : llvm::enumerate(groups)) {
    if (isExpanded && llvm::is_contained(group, split.dim))
      other = collapseSplit(split, group, shape, dim);
    else if (!isExpanded && int64_t(dim) == split.dim)
      other = expandSplit(split, group, shape, units);
  }
  if (!other) {
    why = "reshapes the dimension to other dimensions than the split ones";
    return std::nullopt;
  }
  OpSplits splits(op);
  splits.operands[0] = place.isResult ? *other : split;
  splits.results[0] = place.isResult ? split : *other;
  return splits;
}

/// Returns those of `blocks` that [offset, offset + size) consists of, or nothing if it does not
/// consist of whole blocks.
static SmallVector<int64_t> takeBlocks(ArrayRef<int64_t> blocks, int64_t offset, int64_t size) {
  SmallVector<int64_t> taken;
  int64_t begin = 0, covered = 0;
  for (int64_t block : blocks) {
    if (begin >= offset && begin + block <= offset + size) {
      taken.push_back(block);
      covered += block;
    }
    begin += block;
  }
  return covered == size ? taken : SmallVector<int64_t>();
}

SmallVector<int64_t> fsdp::findBlocks(Value source, int64_t dim) {
  SmallVector<std::pair<int64_t, int64_t>> ranges;
  for (Operation *user : source.getUsers())
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
        slice && slice.getStaticStride(dim) == 1)
      ranges.push_back({slice.getStaticOffset(dim), slice.getStaticSize(dim)});
  llvm::sort(ranges);
  ranges.erase(llvm::unique(ranges), ranges.end());
  SmallVector<int64_t> blocks;
  int64_t end = 0;
  for (auto [offset, size] : ranges) {
    if (offset != end)
      return {};
    blocks.push_back(size);
    end += size;
  }
  return end == getShape(source)[dim] ? blocks : SmallVector<int64_t>();
}

/// Keeps dimension `dim` of size 1 of a slice in its result. If the slice drops one of several
/// adjacent dimensions of size 1, it may drop any of them.
static void keepDimension(llvm::SmallBitVector &dropped, ArrayRef<int64_t> sizes, int64_t dim) {
  for (int64_t step : {1, -1})
    for (int64_t other = dim + step;
         other >= 0 && other < int64_t(sizes.size()) && sizes[other] == 1; other += step)
      if (!dropped[other]) {
        dropped.set(other);
        dropped.reset(dim);
        return;
      }
}

static std::optional<OpSplits> deriveSlice(tensor::ExtractSliceOp op, ValuePlace place,
                                           const TensorSplit &split, std::string &why) {
  if (!op.getOffsets().empty() || !op.getSizes().empty() || !op.getStrides().empty()) {
    why = "is a slice at a computed place";
    return std::nullopt;
  }
  llvm::SmallBitVector dropped = op.getDroppedDims();
  if (!place.isResult && dropped[split.dim] && op.getSourceType().getDimSize(split.dim) == 1)
    keepDimension(dropped, op.getStaticSizes(), split.dim);
  SmallVector<int64_t> kept; // dimension of the source of each dimension of the result
  for (int64_t dim = 0; dim < op.getSourceType().getRank(); ++dim)
    if (!dropped[dim])
      kept.push_back(dim);
  int64_t dim = place.isResult ? kept[split.dim] : split.dim;
  if (op.getStaticStride(dim) != 1) {
    why = "is a slice of the dimension with a stride";
    return std::nullopt;
  }
  auto resultDim = llvm::find(kept, dim);
  int64_t size = op.getStaticSize(dim), whole = op.getSourceType().getDimSize(dim);
  SmallVector<int64_t> source = split.blocks, result = split.blocks;
  if (size != whole) {
    if (place.isResult)
      source = findBlocks(op.getSource(), dim);
    result = takeBlocks(source, op.getStaticOffset(dim), size);
  }
  if (resultDim == kept.end() || source.empty() || result.empty() ||
      (place.isResult && result != split.blocks)) {
    why = "takes a slice of the dimension that does not consist of whole blocks";
    return std::nullopt;
  }
  OpSplits splits(op);
  splits.operands[0] = TensorSplit{dim, source};
  splits.results[0] = TensorSplit{resultDim - kept.begin(), result};
  return splits;
}

static std::optional<OpSplits> deriveConcat(tensor::ConcatOp op, ValuePlace place,
                                            const TensorSplit &split, std::string &why) {
  OpSplits splits(op);
  if (split.dim != int64_t(op.getDim())) {
    llvm::fill(splits.operands, split);
    splits.results[0] = split;
    return splits;
  }
  TensorSplit all{split.dim, {}};
  int64_t begin = 0;
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    int64_t size = getShape(input)[split.dim];
    TensorSplit part{split.dim, {size}};
    if (place.isResult)
      part.blocks = takeBlocks(split.blocks, begin, size);
    else if (place.index == i)
      part = split;
    begin += size;
    if (part.blocks.empty()) {
      why = "joins tensors along the dimension at places that are not between blocks";
      return std::nullopt;
    }
    llvm::append_range(all.blocks, part.blocks);
    splits.operands[i] = part;
  }
  splits.results[0] = all;
  return splits;
}

std::optional<OpSplits> fsdp::deriveViewSplits(Operation *op, ValuePlace place,
                                               const TensorSplit &split, std::string &why,
                                               UnitSplit units) {
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return deriveReshape(op, expand.getReassociationIndices(), /*expands=*/true, place, split, why,
                         units);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return deriveReshape(op, collapse.getReassociationIndices(), /*expands=*/false, place, split,
                         why, units);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return deriveSlice(slice, place, split, why);
  return deriveConcat(cast<tensor::ConcatOp>(op), place, split, why);
}
