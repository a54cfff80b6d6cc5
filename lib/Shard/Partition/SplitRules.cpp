//===- SplitRules.cpp - How an op ties the splits of its values -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements SplitRules.h for linalg ops, attention, lookups and softmax.
//
//===----------------------------------------------------------------------===//

#include "SplitRules.h"
#include "fsdp/IR/StopGradient.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isUniform(Value value) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return false;
  if (isa<tensor::EmptyOp>(def))
    return true;
  if (auto fill = dyn_cast<linalg::FillOp>(def))
    return isa<tensor::EmptyOp>(fill.getDpsInitOperand(0)->get().getDefiningOp());
  DenseElementsAttr constant;
  return matchPattern(value, m_Constant(&constant)) && constant.isSplat();
}

bool fsdp::isConstantOrUniform(Value value) {
  if (isUniform(value) || value.getDefiningOp<arith::ConstantOp>())
    return true;
  // The own slice of a constant over another axis.
  Operation *def = value.getDefiningOp();
  auto copy = dyn_cast_or_null<linalg::GenericOp>(def);
  bool isView =
      isa_and_nonnull<OwnPieceOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(def) ||
      (copy && copy.getNumDpsInputs() == 1 && copy.getBody()->without_terminator().empty());
  return isView && isConstantOrUniform(def->getOperand(0));
}

bool fsdp::isZero(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
  return matchPattern(value, m_AnyZeroFloat());
}

bool fsdp::addsProducts(Operation *op) {
  auto structured = dyn_cast_or_null<linalg::LinalgOp>(op);
  return structured && structured.getNumDpsInputs() >= 2 && structured.getNumReductionLoops() > 0;
}

/// Returns true if result `index` of `op` is `init + f(inputs)`, added over the reduced loops.
static bool isSum(linalg::LinalgOp op, unsigned index) {
  Block *body = op.getBlock();
  BlockArgument init = body->getArgument(op.getNumDpsInputs() + index);
  auto add = body->getTerminator()->getOperand(index).getDefiningOp<arith::AddFOp>();
  return add && init.hasOneUse() && (add.getLhs() == init || add.getRhs() == init) &&
         add->hasOneUse();
}

/// Returns why the body of `op` prevents a split along `loop`: it reads the index of the loop, or a
/// value from outside that is not constant. Returns an empty text if it does neither.
static std::string findForeignReads(linalg::LinalgOp op, unsigned loop) {
  std::string why;
  op.getBlock()->walk([&](linalg::IndexOp index) {
    if (index.getDim() == loop)
      why = "reads the index of the dimension";
  });
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (!matchPattern(value, m_Constant()))
      why = "reads a tensor at computed indices";
  for (Value input : op.getDpsInputs())
    if (!isa<RankedTensorType>(input.getType()) && !matchPattern(input, m_Constant()))
      why = "reads a scalar that is not constant";
  return why;
}

/// Returns whether each index is a loop of its own, or 0 for all loops.
static bool readsOwnElements(AffineMap map) {
  SmallVector<AffineExpr> loops;
  for (AffineExpr index : map.getResults())
    if (isa<AffineDimExpr>(index))
      loops.push_back(index);
    else if (index != 0)
      return false;
  return AffineMap::get(map.getNumDims(), 0, loops, map.getContext()).isProjectedPermutation();
}

static std::optional<OpSplits> deriveLinalg(linalg::LinalgOp op, ValuePlace place,
                                            const TensorSplit &split, std::string &why) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  unsigned operand = place.isResult ? op.getNumDpsInputs() + place.index : place.index;
  if (!llvm::all_of(maps, readsOwnElements) ||
      !isa<AffineDimExpr>(maps[operand].getResult(split.dim))) {
    why = "has indices that are not dimensions of a loop";
    return std::nullopt;
  }
  OpSplits splits(op);
  splits.loop = maps[operand].getDimPosition(split.dim);
  if (why = findForeignReads(op, splits.loop); !why.empty())
    return std::nullopt;
  for (OpOperand &other : op->getOpOperands())
    for (auto [dim, expr] : llvm::enumerate(op.getMatchingIndexingMap(&other).getResults()))
      if (expr == getAffineDimExpr(splits.loop, op.getContext()))
        splits.operands[other.getOperandNumber()] = TensorSplit{int64_t(dim), split.blocks};
  splits.partial = op.getIteratorTypesArray()[splits.loop] == utils::IteratorType::reduction;
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    if (!splits.partial) {
      splits.results[i] = splits.operands[op.getNumDpsInputs() + i];
      continue;
    }
    if (!isSum(op, i))
      why = "reduces the dimension by another function than a sum";
    else if (!isZero(op.getDpsInits()[i]))
      why = "adds to an initial value that is not zero";
    if (!why.empty())
      return std::nullopt;
  }
  return splits;
}

bool fsdp::readsIndex(AttentionOp op, int64_t dim) {
  std::pair<Region *, unsigned> functions[] = {
      {&op.getScoreMod(), 1}, {&op.getMaskMod(), 0}, {&op.getWeightMod(), 0}};
  return llvm::any_of(functions, [&](auto &function) {
    return !function.first->empty() &&
           !function.first->front().getArgument(function.second + dim).use_empty();
  });
}

/// Sets the splits of keys and values of attention that is split along heads. Several ranks have
/// copies of a head if there are fewer heads than ranks, and all ranks have a single head. Returns
/// false if the heads that a rank reads are not a part of equal parts.
static bool shareKeys(const SplitAxis &axis, AttentionOp op, OpSplits &splits) {
  int64_t heads = splits.operands[1]->blocks[0];
  if (heads % axis.ranks == 0)
    return true;
  if (axis.ranks % heads != 0)
    return false;
  for (unsigned i : {1, 2})
    if (heads == 1)
      splits.operands[i].reset();
    else
      splits.operands[i]->copies = axis.ranks / heads;
  return true;
}

/// Derives the splits of attention along heads (dimension 1), or along the leading dimension, which
/// is not the batch of the model if Import has folded the heads of keys and values into it.
static std::optional<OpSplits> deriveAttention(const SplitAxis &axis, AttentionOp op,
                                               ValuePlace place, const TensorSplit &split,
                                               std::string &why) {
  bool isRows = axis.isContext();
  if (!place.isResult && place.index > 2)
    why = "reads it in a score or mask function";
  else if (isRows && split.dim != 2)
    why = "can be split along its third dimension (the sequence) only";
  else if (isRows && split.blocks.size() > 1)
    why = "has a sequence that consists of several blocks";
  else if (isRows)
    ; // functions read the index of a row in the whole sequence
  else if (split.dim > 1)
    why = "can be split along its first two dimensions (batch and heads) only";
  else if (split.blocks.size() > 1)
    why = "has heads that consist of several blocks";
  if (!why.empty())
    return std::nullopt;
  OpSplits splits(op);
  auto along = [&](Value value) {
    int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(split.dim);
    return TensorSplit{split.dim, {size}};
  };
  for (unsigned i = 0; i < 3; ++i)
    splits.operands[i] = along(op->getOperand(i));
  for (unsigned i = 0; i < 2; ++i)
    splits.results[i] = along(op->getResult(i));
  if (isRows || axis.isRank)
    return splits;
  if (split.dim == 1 && !shareKeys(axis, op, splits)) {
    why = "has " + std::to_string(splits.operands[1]->blocks[0]) +
          " heads of keys and values, which neither divide the ranks nor are divided by them";
    return std::nullopt;
  }
  if (!place.isResult && !(splits.operands[place.index] == split)) {
    why = "has fewer heads of keys and values than there are ranks";
    return std::nullopt;
  }
  return splits;
}

/// Derives the splits of a lookup of rows at ids. Operand 0 is the table, or a shard of it.
static std::optional<OpSplits> deriveLookup(const SplitAxis &axis, Operation *op, ValuePlace place,
                                            const TensorSplit &split, std::string &why) {
  int64_t last = cast<RankedTensorType>(op->getResult(0).getType()).getRank() - 1;
  if (axis.isContext() && (place.isResult ? split.dim < last : place.index == 1)) {
    OpSplits splits(op);
    splits.operands[1] = splits.results[0] = split;
    return splits;
  }
  if (isa<GatherRowsOp>(op) && !axis.isContext() && !place.isResult && place.index == 0 &&
      split.dim == 0 && split.blocks.size() == 1) {
    OpSplits splits(op);
    splits.operands[0] = split;
    splits.partial = true;
    splits.loop = 1; // not that of the columns
    return splits;
  }
  bool isColumns = isa<GatherRowsOp>(op) &&
                   (place.isResult ? split.dim == last : place.index == 0 && split.dim == 1);
  if (!isColumns) {
    why = "looks up rows of a table, whose result can be split along the columns only";
    return std::nullopt;
  }
  OpSplits splits(op);
  splits.operands[0] = TensorSplit{1, split.blocks};
  splits.results[0] = TensorSplit{last, split.blocks};
  return splits;
}

/// Derives the splits of a cross-entropy along rows, on the axis `context`, or along the classes of
/// logits, on the axis `tensor`. The op itself adds over the ranks of the latter.
static std::optional<OpSplits> deriveCrossEntropy(const SplitAxis &axis, CrossEntropyOp op,
                                                  ValuePlace place, const TensorSplit &split,
                                                  std::string &why) {
  OpSplits splits(op);
  bool isLogits = !place.isResult && place.index == 0;
  if (!axis.isContext() && isLogits && split.dim == 1 && split.blocks.size() == 1) {
    splits.operands[0] = split;
    return splits;
  }
  if (!axis.isContext() || split.dim != 0) {
    why = axis.isContext() ? "is a cross-entropy, which needs whole rows of logits"
                           : "is a cross-entropy, of which only the classes of the logits can be "
                             "split, as one block";
    return std::nullopt;
  }
  splits.operands[0] = splits.operands[1] = splits.results[1] = split;
  splits.partial = true;
  return splits;
}

/// Derives the splits of a gather over another axis of `ranks` ranks, of a reduce-scatter, or of an
/// own piece.
static std::optional<OpSplits> deriveGather(Operation *op, ValuePlace place,
                                            const TensorSplit &split, std::string &why) {
  auto whole = isa<AllGatherOp>(op) ? op->getResult(0) : op->getOperand(0);
  auto piece = isa<AllGatherOp>(op) ? op->getOperand(0) : op->getResult(0);
  int64_t ranks = cast<RankedTensorType>(whole.getType()).getDimSize(0) /
                  cast<RankedTensorType>(piece.getType()).getDimSize(0);
  bool fromWhole = place.isResult == isa<AllGatherOp>(op);
  size_t size = split.blocks.size() / (fromWhole ? ranks : 1);
  TensorSplit part{0, SmallVector<int64_t>(ArrayRef(split.blocks).take_front(size))}, all{0, {}};
  for (int64_t i = 0; i < ranks; ++i)
    llvm::append_range(all.blocks, part.blocks);
  if (fromWhole && !(all == split)) {
    why = "gathers pieces that do not consist of equal blocks";
    return std::nullopt;
  }
  OpSplits splits(op);
  splits.operands[0] = isa<AllGatherOp>(op) ? part : all;
  splits.results[0] = isa<AllGatherOp>(op) ? all : part;
  return splits;
}

/// Derives the splits of an op whose operands and result have equal dimensions.
static OpSplits deriveEqual(Operation *op, const TensorSplit &split) {
  OpSplits splits(op);
  llvm::fill(splits.operands, split);
  llvm::fill(splits.results, split);
  return splits;
}

/// Derives the splits of an op, except of attention, if each part of a split has one copy.
static std::optional<OpSplits> deriveParts(const SplitAxis &axis, Operation *op, ValuePlace place,
                                           const TensorSplit &split, std::string &why,
                                           UnitSplit units) {
  using Result = std::optional<OpSplits>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case(
          [&](linalg::LinalgOp structured) { return deriveLinalg(structured, place, split, why); })
      .Case<GatherRowsOp, UnshardRowsOp>(
          [&](Operation *lookup) { return deriveLookup(axis, lookup, place, split, why); })
      .Case([&](CrossEntropyOp loss) { return deriveCrossEntropy(axis, loss, place, split, why); })
      .Case<AllGatherOp, FlatReduceScatterOp, OwnPieceOp>(
          [&](Operation *gather) { return deriveGather(gather, place, split, why); })
      .Case([&](linalg::SoftmaxOp softmax) -> Result {
        if (split.dim != int64_t(softmax.getDimension()))
          return deriveEqual(op, split);
        why = "is a softmax over the dimension";
        return std::nullopt;
      })
      .Case<StopGradientOp, AllReduceOp, ReduceCotangentOp, ShareCotangentOp>(
          [&](Operation *same) { return deriveEqual(same, split); })
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
            tensor::ConcatOp>(
          [&](Operation *view) { return deriveViewSplits(view, place, split, why, units); })
      .Default([&](Operation *) -> Result {
        why = isa<func::ReturnOp>(op) ? "returns it" : "has no rule for split operands";
        return std::nullopt;
      });
}

std::optional<OpSplits> fsdp::deriveSplits(const SplitAxis &axis, Operation *op, ValuePlace place,
                                           const TensorSplit &split, std::string &why,
                                           UnitSplit units) {
  why.clear();
  if (auto attention = dyn_cast<AttentionOp>(op))
    return deriveAttention(axis, attention, place, split, why);
  TensorSplit part = split;
  part.copies = 1;
  std::optional<OpSplits> splits = deriveParts(axis, op, place, part, why, units);
  if (!splits || split.copies == 1)
    return splits;
  if (splits->partial || isa<CrossEntropyOp>(op)) {
    why = "adds over heads of keys and values, of which several ranks have copies";
    return std::nullopt;
  }
  for (auto *values : {&splits->operands, &splits->results})
    for (std::optional<TensorSplit> &value : *values)
      if (value)
        value->copies = split.copies;
  return splits;
}
