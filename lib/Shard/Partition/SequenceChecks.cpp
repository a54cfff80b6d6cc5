//===- SequenceChecks.cpp - Checks of ops on parts of a sequence -*- C++ -*-==//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   mask_mod(%b, %h, %i, %j, %c):                 loss · 1/C, or
//     %row = %i + (%c[] mod C) · rows             loss · count(own targets) / max(count(targets),
//     .. %row ..                                                             1)
//
//   stripes: %row = %i · C + (%c[] mod C)         .. x n/C x C x .. → C x n/C x ..   own_piece
//
// Recognises what SequenceRewrite.cpp builds. The captured tensor %c must be the argument with
// `fsdp.key = "context"`, and the targets that are counted must be those of the cross-entropy, and
// a value with as many elements as those of all ranks.
//
//===----------------------------------------------------------------------===//

#include "SequenceChecks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isCoordinate(Value value, StringRef axis) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto func =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  auto key = func ? func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), FSDPDialect::keyAttr)
                  : StringAttr();
  return key && key.getValue() == axis;
}

/// Returns true if `value`, in a function of attention, is the coordinate of the rank.
static bool isRank(AttentionOp op, Value value, const SplitAxis &axis) {
  APInt divisor;
  auto remainder = value.getDefiningOp<arith::RemUIOp>();
  if (!remainder || !matchPattern(remainder.getRhs(), m_ConstantInt(&divisor)) ||
      divisor != axis.ranks)
    return false;
  auto cast = remainder.getLhs().getDefiningOp<arith::IndexCastOp>();
  auto read = cast ? cast.getIn().getDefiningOp<tensor::ExtractOp>() : tensor::ExtractOp();
  auto capture = read ? dyn_cast<BlockArgument>(read.getTensor()) : BlockArgument();
  if (!capture)
    return false;
  unsigned first = capture.getOwner()->getNumArguments() - op.getCaptures().size();
  return capture.getArgNumber() >= first &&
         isCoordinate(op.getCaptures()[capture.getArgNumber() - first], axis.name);
}

/// Returns the other operand of a commutative op of type Op that reads `operand`, else null.
template <typename Op>
static Value getOther(Operation *op, Value operand) {
  auto binary = dyn_cast<Op>(op);
  return !binary ? Value() : binary.getLhs() == operand ? binary.getRhs() : binary.getLhs();
}

/// Returns true if `value` is `factor` multiplied by a constant `size`.
static bool isProduct(Value value, int64_t size, function_ref<bool(Value)> isFactor) {
  auto product = value.getDefiningOp<arith::MulIOp>();
  APInt constant;
  return product && ((matchPattern(product.getRhs(), m_ConstantInt(&constant)) &&
                      constant == size && isFactor(product.getLhs())) ||
                     (matchPattern(product.getLhs(), m_ConstantInt(&constant)) &&
                      constant == size && isFactor(product.getRhs())));
}

/// Returns true if `user`, which reads `own`, the index of the rank in a dimension of which it has
/// `size`, is an op on the way to the index in the whole dimension.
static bool countsInWhole(AttentionOp op, Operation *user, Value own, int64_t size,
                          const SplitAxis &axis) {
  auto isOwnRank = [&](Value value) { return isRank(op, value, axis); };
  if (!axis.striped) {
    Value first = getOther<arith::AddIOp>(user, own);
    return first && isProduct(first, size, isOwnRank);
  }
  auto isOwn = [&](Value value) { return value == own; };
  return user->getNumResults() == 1 && isProduct(user->getResult(0), axis.ranks, isOwn) &&
         llvm::all_of(user->getUsers(), [&](Operation *sum) {
           Value rank = getOther<arith::AddIOp>(sum, user->getResult(0));
           return rank && isOwnRank(rank);
         });
}

LogicalResult fsdp::checkIndices(AttentionOp op, int64_t dim, const SplitAxis &axis,
                                 function_ref<InFlightDiagnostic()> fail) {
  int64_t size = cast<RankedTensorType>(op.getQ().getType()).getDimSize(dim);
  std::pair<Region *, int64_t> functions[] = {
      {&op.getScoreMod(), 1 + dim}, {&op.getMaskMod(), dim}, {&op.getWeightMod(), dim}};
  for (auto [region, argument] : functions) {
    if (region->empty())
      continue;
    BlockArgument own = region->front().getArgument(argument);
    for (Operation *user : own.getUsers())
      if (!countsInWhole(op, user, own, size, axis))
        return fail() << "expected its functions to read the index of a "
                      << (axis.isContext() ? "row " : "head ")
                      << (axis.striped ? "times " + std::to_string(axis.ranks) + " plus the"
                                       : "plus " + std::to_string(size) + " times the")
                      << " coordinate of the rank on axis '" << axis.name << "', found '"
                      << user->getName() << "' with another "
                      << (axis.isContext() ? "row" : "head");
  }
  return success();
}

int64_t fsdp::countStripes(func::FuncOp func) {
  for (auto op : func.getBody().front().getOps<AttentionOp>())
    for (auto [region, argument] :
         {std::pair(&op.getScoreMod(), 3u), std::pair(&op.getMaskMod(), 2u),
          std::pair(&op.getWeightMod(), 2u)})
      if (!region->empty())
        for (Operation *user : region->front().getArgument(argument).getUsers())
          return isa<arith::MulIOp>(user)
                     ? cast<RankedTensorType>(op.getQ().getType()).getDimSize(2)
                     : 0;
  return 0;
}

/// Returns the order of dimensions of a copy: dimension i of the result is dimension order[i] of
/// the operand. Returns an empty order for other ops.
static SmallVector<unsigned> getOrder(Operation *op) {
  auto copy = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!copy || copy.getNumDpsInputs() != 1 || copy.getNumResults() != 1 ||
      copy.getNumReductionLoops() ||
      copy.getBody()->getTerminator()->getOperand(0) != copy.getBody()->getArgument(0))
    return {};
  AffineMap source = copy.getIndexingMapsArray()[0], target = copy.getIndexingMapsArray()[1];
  if (!source.isPermutation() || !target.isPermutation())
    return {};
  SmallVector<unsigned> dims;
  for (AffineExpr loop : target.getResults())
    dims.push_back(*source.getResultPosition(loop));
  return dims;
}

bool fsdp::isCopy(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) || !getOrder(op).empty();
}

/// Returns true if a reshape joins or divides exactly the dimensions `first` and `first` + 1 of the
/// larger shape, possibly after dimensions of blocks.
static bool dividesDim(ArrayRef<ReassociationIndices> groups, int64_t first) {
  return llvm::any_of(groups, [&](const ReassociationIndices &group) {
    return group.size() > 1 && group.back() == first + 1;
  });
}

bool fsdp::isStriped(OwnPieceOp op, int64_t ranks) {
  Value value = op->getOperand(0);
  if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>())
    value = collapse.getSrc();
  SmallVector<unsigned> order = getOrder(value.getDefiningOp());
  if (order.size() < 2 || order[0] != order[1] + 1 ||
      cast<RankedTensorType>(value.getType()).getDimSize(0) != ranks)
    return false;
  auto divided = value.getDefiningOp()->getOperand(0).getDefiningOp<tensor::ExpandShapeOp>();
  return divided && dividesDim(divided.getReassociationIndices(), order[1]);
}

bool fsdp::isStriped(AllGatherOp op, int64_t ranks) {
  auto all = op->hasOneUse() ? dyn_cast<tensor::ExpandShapeOp>(*op->user_begin())
                             : tensor::ExpandShapeOp();
  if (!all || !all->hasOneUse() || all.getResultType().getDimSize(0) != ranks)
    return false;
  Operation *copy = *all->user_begin();
  SmallVector<unsigned> order = getOrder(copy);
  auto *first = llvm::find(order, 0u);
  if (first == order.end() || first == order.begin() || *(first - 1) != 1 || !copy->hasOneUse())
    return false;
  auto joined = dyn_cast<tensor::CollapseShapeOp>(*copy->user_begin());
  return joined && dividesDim(joined.getReassociationIndices(), first - order.begin() - 1);
}

LogicalResult fsdp::checkRing(AttentionOp op, const SplitAxis &axis,
                              function_ref<bool(Value, const TensorSplit &)> isSplit,
                              function_ref<InFlightDiagnostic()> fail) {
  if (static_cast<int64_t>(*op.getRing()) != axis.ranks || op.getStriped() != axis.striped)
    return fail() << "expected a ring of " << axis.ranks << " ranks and "
                  << (axis.striped ? "stripes" : "neighbouring rows")
                  << ", as on axis 'context', found one of " << *op.getRing() << " and "
                  << (op.getStriped() ? "stripes" : "neighbouring rows");
  TensorSplit block{2, {cast<RankedTensorType>(op.getK().getType()).getDimSize(2)}};
  for (unsigned i : {1, 2})
    if (!isSplit(op->getOperand(i), block))
      return fail() << "expected operand " << i << ", the " << (i == 1 ? "keys" : "values")
                    << ", to be the block of the rank: split along dimension 2 over axis '"
                    << axis.name << "'";
  for (auto [region, key] : {std::pair(&op.getScoreMod(), 4), std::pair(&op.getMaskMod(), 3),
                             std::pair(&op.getWeightMod(), 3)})
    if (!region->empty() && !region->front().getArgument(key).use_empty() &&
        (op.getCaptures().empty() || !isCoordinate(op.getCaptures().back(), axis.name)))
      return fail() << "has functions that read the index of a key; expected the last captured "
                       "tensor to be the coordinate of the rank on axis '"
                    << axis.name << "'";
  return success();
}

std::optional<TensorSplit> fsdp::cutRows(Operation *op, const TensorSplit &split,
                                         DenseMap<Value, size_t> &cuts) {
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  if (!isa<AllGatherOp, FlatReduceScatterOp, OwnPieceOp>(op) || axes.size() != 1 ||
      cast<StringAttr>(axes[0]).getValue() != tensorAxis)
    return std::nullopt;
  int64_t from = cast<RankedTensorType>(op->getOperand(0).getType()).getDimSize(0),
          to = cast<RankedTensorType>(op->getResult(0).getType()).getDimSize(0);
  size_t count = split.blocks.size();
  if (isa<AllGatherOp>(op)) {
    auto cut = cuts.find(op->getOperand(0));
    count = cut == cuts.end() ? count * (to / from) : cut->second;
  } else if (count % (from / to) == 0) {
    count /= from / to;
  } else {
    cuts[op->getResult(0)] = count;
    count = 1;
  }
  return TensorSplit{0, SmallVector<int64_t>(count, to / static_cast<int64_t>(count))};
}

/// Returns the tensor whose elements a generic counts that differ from `ignored`, or null.
static Value findCounted(Value count, int64_t ignored) {
  auto generic = count.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumReductionLoops() != 1 || generic.getNumDpsInputs() != 1 ||
      !isZero(generic.getDpsInits()[0]))
    return {};
  APInt constant;
  for (auto compare : generic.getBody()->getOps<arith::CmpIOp>())
    if (compare.getPredicate() == arith::CmpIPredicate::ne &&
        matchPattern(compare.getRhs(), m_ConstantInt(&constant)) &&
        constant.getSExtValue() == ignored)
      return generic.getDpsInputs()[0];
  return {};
}

LogicalResult fsdp::checkWeight(Operation *op, int64_t ranks,
                                function_ref<InFlightDiagnostic()> fail) {
  auto loss = op->getOperand(0).getDefiningOp<CrossEntropyOp>();
  auto generic = dyn_cast<linalg::GenericOp>(op);
  Value yielded = generic && generic.getNumLoops() == 0 && generic.getNumResults() == 1
                      ? generic.getBody()->getTerminator()->getOperand(0)
                      : Value();
  auto product = yielded ? yielded.getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  bool multiplies = product && product.getLhs() == generic.getBody()->getArgument(0);
  std::optional<int64_t> ignored = loss.getIgnoreIndex();
  FloatAttr weight;
  if (multiplies && !ignored && matchPattern(product.getRhs(), m_Constant(&weight)) &&
      weight == FloatAttr::get(weight.getType(), 1.0 / double(ranks)))
    return success();
  if (multiplies && ignored && generic.getNumDpsInputs() == 3) {
    Value own = findCounted(op->getOperand(1), *ignored),
          all = findCounted(op->getOperand(2), *ignored);
    if (own == loss.getTargets() && all &&
        cast<RankedTensorType>(all.getType()).getNumElements() ==
            cast<RankedTensorType>(own.getType()).getNumElements() * ranks)
      return success();
  }
  return fail() << "expected to multiply the loss of an 'fsdp.cross_entropy' by "
                << (ignored ? "the part of the targets that count on this rank"
                            : "1/" + std::to_string(ranks))
                << ", because the mean over all rows is a sum over axis 'context'";
}
