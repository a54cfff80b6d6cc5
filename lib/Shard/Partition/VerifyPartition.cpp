//===- VerifyPartition.cpp - Check a program of a split axis ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Derives the state of each value in the order of the program, for each of the axes `tensor` and
// `context` of the mesh:
//
//   state     meaning on the ranks of the axis                 begins at
//   whole     equal values                                     arguments, all_reduce
//   entered   equal values, and cotangents that are parts      reduce_cotangent; on the axis
//                                                              `context`: parameters, all_gather
//   split     slices                                           parameters with a slice, own_piece,
//                                                              flat_reduce_scatter, a part that
//                                                              the coordinate picks
//   partial   terms of a sum                                   a reduced loop that is split
//
//  1. An op with a split operand follows the rule of SplitRules.h. All its operands must have the
//     splits of the rule. On the axis `tensor`, its whole float operands must be entered. On the
//     axis `context`, they must not depend on a sum over the ranks, unless they are entered.
//  2. An op without split operands must have whole operands, or entered operands. Its results are
//     then entered too. On the axis `tensor`, it has no operands of both kinds.
//  3. Only all_reduce and flat_reduce_scatter read a partial sum, or views, copies and roundings of
//     it, and they read nothing else. Over another axis, the result of an all_reduce is a partial
//     sum too.
//  4. The function returns whole values.
//  5. Slices of a dimension may have the size 1, which a reshape does not distinguish from a whole
//     dimension. Accept the program if it is consistent for one of its meanings.
//  6. On the axis `context`, SequenceChecks.cpp checks the rows of attention, that the pieces of
//     ranks have these rows, and the weight of a cross-entropy. On the axis `tensor`,
//     VocabularyChecks.cpp checks lookups in rows of a table, and the classes of a cross-entropy.
//     HeadChecks.cpp checks which part of a whole value a rank reads.
//  7. Rows of the axis `tensor` may cut the blocks of the axis `context`: a rank of both has a part
//     of some block. Until these rows are gathered, they are one block.
//
// This is a check of PartitionTensors.cpp from its result: a missing or additional all_reduce or
// reduce_cotangent is an error. O(uses).
//
//===----------------------------------------------------------------------===//

#include "VerifyPartition.h"
#include "HeadChecks.h"
#include "NarrowSums.h"
#include "SequenceChecks.h"
#include "VocabularyChecks.h"
#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/StopGradient.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
class PartitionChecker {
public:
  PartitionChecker(SplitAxis axis, int64_t stripes, UnitSplit units)
      : axis(axis), stripes(stripes), units(units) {}
  LogicalResult check(func::FuncOp func);

private:
  InFlightDiagnostic fail(Operation *op) {
    return emitError(op->getLoc()) << "after Shard: " << describeOp(op) << " ";
  }
  void addParameter(UnitOp unit, ParamAttr param, Value value);
  LogicalResult checkLookup(Operation *op, int64_t rows);
  LogicalResult checkRowsOfUnit(UnshardRowsOp op);
  void checkUnshard(UnshardOp op);
  LogicalResult checkSplit(Operation *op, unsigned first);
  LogicalResult checkAttention(AttentionOp op);
  LogicalResult checkPart(Operation *op);
  LogicalResult checkWhole(Operation *op);
  LogicalResult checkReads(Operation *op, std::optional<unsigned> &first);
  bool isOverAxis(ArrayAttr axes) {
    return axes.size() == 1 && cast<StringAttr>(axes[0]).getValue() == axis.name;
  }
  LogicalResult checkOrder(Operation *op);
  std::optional<LogicalResult> checkCollective(Operation *op, bool isSplit);
  LogicalResult check(Operation *op);

  SplitAxis axis;
  int64_t stripes;                     ///< rows of a block that a rank has, if these are stripes
  DenseMap<Value, TensorSplit> splits; ///< splits of slices: blocks have the sizes of one rank
  DenseSet<Value> partial, entered;
  DenseMap<Value, int64_t> lookups; ///< rows of slices of tables, and the sizes of the slices
  DenseSet<Value> sums;             ///< values that depend on a sum over the ranks of the axis
  DenseMap<Value, size_t> cuts;     ///< numbers of blocks that rows of the axis `tensor` cut
  UnitSplit units;                  ///< which dimensions of size 1 are split (SplitRules.h)
};
} // namespace

/// Finds the split of `value`, which is a parameter of `unit`, or rows of a table. The columns of
/// both are the last dimension.
void PartitionChecker::addParameter(UnitOp unit, ParamAttr param, Value value) {
  std::optional<TensorSplit> split = getTensorSplit(unit, param.getName());
  if (!split)
    return;
  RankedTensorType type = param.getType();
  TensorSplit own = split->divide(split->getSize() / type.getDimSize(split->dim));
  own.dim += cast<RankedTensorType>(value.getType()).getRank() - type.getRank();
  splits[value] = own;
}

/// Finds the splits of the parameters of a unit.
void PartitionChecker::checkUnshard(UnshardOp op) {
  auto unit = SymbolTable::lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  if (axis.isContext())
    entered.insert_range(op.getResults());
  else
    for (auto [i, result] : llvm::enumerate(op.getResults()))
      addParameter(unit, unit.getParam(i), result);
}

/// Checks a lookup in a table of which each rank has `rows` rows.
LogicalResult PartitionChecker::checkLookup(Operation *op, int64_t rows) {
  partial.insert(op->getResult(0));
  lookups[op->getResult(0)] = rows;
  return checkOwnIds(op, rows, [&] { return fail(op); });
}

/// Checks a lookup in the table of a unit, of which a rank may have some rows or some columns.
LogicalResult PartitionChecker::checkRowsOfUnit(UnshardRowsOp op) {
  auto unit = SymbolTable::lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  ParamAttr table = unit.getParam(0);
  std::optional<TensorSplit> split = getTensorSplit(unit, table.getName());
  if (split && split->dim == 0)
    return checkLookup(op, table.getType().getDimSize(0));
  addParameter(unit, table, op.getRows());
  return success();
}

static bool isFloatTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// Checks attention on the axis `context`: a rank has its rows of queries, and all keys and values
/// or, with a ring, its rows of these.
LogicalResult PartitionChecker::checkAttention(AttentionOp op) {
  TensorSplit rows{2, {cast<RankedTensorType>(op.getQ().getType()).getDimSize(2)}};
  auto query = splits.find(op.getQ());
  if (query == splits.end() || !(query->second == rows))
    return fail(op) << "expected queries of which dimension 2 is split over axis '" << axis.name
                    << "'";
  auto isSplit = [&](Value value, const TensorSplit &split) {
    auto found = splits.find(value);
    return found != splits.end() && found->second == split;
  };
  if (op.getRing() && failed(checkRing(op, axis, isSplit, [&] { return fail(op); })))
    return failure();
  for (unsigned i : {1, 2})
    if (!op.getRing() &&
        (splits.contains(op->getOperand(i)) || !entered.contains(op->getOperand(i))))
      return fail(op) << "expected operand " << i << ", the " << (i == 1 ? "keys" : "values")
                      << ", to be gathered by an 'fsdp.all_gather' over axis '" << axis.name << "'";
  for (Value result : op->getResults()) // each insertion can move the other entries
    splits[result] = rows;
  return checkIndices(op, /*dim=*/2, axis, [&] { return fail(op); });
}

/// Returns whether all slices of `value` along `dim` are equal, as those of a head that all heads
/// read. A part of the slices is then the same on each rank.
static bool repeats(Value value, int64_t dim) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumParallelLoops() != generic.getNumLoops() ||
      llvm::any_of(generic.getRegionOutputArgs(), [](Value init) { return !init.use_empty(); }))
    return false;
  unsigned result = cast<OpResult>(value).getResultNumber();
  AffineExpr loop =
      generic.getMatchingIndexingMap(generic.getDpsInitOperand(result)).getResult(dim);
  auto reads = [&](OpOperand *input) {
    return generic.getMatchingIndexingMap(input).isFunctionOfDim(
        cast<AffineDimExpr>(loop).getPosition());
  };
  return isa<AffineDimExpr>(loop) && !llvm::any_of(generic.getDpsInputOperands(), reads) &&
         !generic.hasIndexSemantics();
}

/// Checks an op whose operand `first` is split.
LogicalResult PartitionChecker::checkSplit(Operation *op, unsigned first) {
  if (auto attention = dyn_cast<AttentionOp>(op); attention && axis.isContext())
    return checkAttention(attention);
  std::string why;
  TensorSplit split = splits.find(op->getOperand(first))->second;
  std::optional<OpSplits> derived =
      deriveSplits(axis, op, {/*isResult=*/false, first}, split, why, units);
  if (!derived)
    return fail(op) << why << ", but operand " << first << " is split over axis '" << axis.name
                    << "'";
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    auto keys = splits.find(attention.getK());
    expectKeys(attention, keys == splits.end() ? nullptr : &keys->second, *derived);
  }
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  for (auto [operand, expected] : llvm::zip_equal(op->getOpOperands(), derived->operands)) {
    Value value = operand.get();
    auto found = splits.find(value);
    bool isSplit = found != splits.end();
    bool isInit = destination && destination.isDpsInit(&operand);
    if (isUniform(value) || !isa<RankedTensorType>(value.getType()) ||
        (!expected && isConstantOrUniform(value)))
      continue;
    bool isRepeated = expected && !isSplit && repeats(value, expected->dim);
    if (!isRepeated &&
        (expected.has_value() != isSplit || (isSplit && !(found->second == *expected))))
      return fail(op) << "expected operand " << operand.getOperandNumber() << " to be "
                      << (expected ? "split" : "whole") << " over axis '" << axis.name
                      << "' as the other operands require";
    bool isEntered = axis.isContext() ? !sums.contains(value) : entered.contains(value);
    if ((!expected || isRepeated) && !isInit && isFloatTensor(value) && !isEntered)
      return fail(op) << "expected whole operand " << operand.getOperandNumber()
                      << " of an op that is split over axis '" << axis.name
                      << "' to be the result of an 'fsdp.reduce_cotangent', because each rank "
                         "computes a part of its cotangent";
  }
  // A leading dimension of size 1 may be split heads. Then functions must not read their index.
  if (auto attention = dyn_cast<AttentionOp>(op);
      attention && (split.dim == 1 || attention.getO().getType().getDimSize(0) == 1) &&
      failed(checkIndices(attention, /*dim=*/1, axis, [&] { return fail(op); })))
    return failure();
  if (auto attention = dyn_cast<AttentionOp>(op);
      attention && split.dim == 0 && attention.getO().getType().getDimSize(0) > 1 &&
      failed(checkIndices(attention, /*dim=*/0, axis, [&] { return fail(op); })))
    return failure();
  if (auto lookup = dyn_cast<GatherRowsOp>(op); lookup && derived->partial)
    return checkLookup(op, cast<RankedTensorType>(lookup.getTable().getType()).getDimSize(0));
  if (auto loss = dyn_cast<CrossEntropyOp>(op); loss && !axis.isContext())
    return checkClasses(loss, [&] { return fail(op); });
  for (Value operand : op->getOperands())
    if (auto cut = cuts.find(operand); cut != cuts.end()) {
      size_t blocks = cut->second;
      for (Value result : op->getResults())
        cuts[result] = blocks;
    }
  for (auto [result, expected] : llvm::zip_equal(op->getResults(), derived->results)) {
    if (expected && axis.striped && !cuts.contains(result) &&
        !llvm::all_of(op->getUsers(),
                      llvm::IsaPred<AllGatherOp, FlatReduceScatterOp, OwnPieceOp>) &&
        llvm::any_of(expected->blocks, [&](int64_t block) { return block != stripes; }))
      return fail(op) << "expected blocks of " << stripes
                      << " rows in its results, because the rows of a rank are stripes";
    if (expected)
      splits[result] = *expected;
    else if (derived->partial)
      partial.insert(result);
  }
  return success();
}

/// Checks an op of which each rank reads a part of the first operand, on the axis `tensor`.
LogicalResult PartitionChecker::checkPart(Operation *op) {
  auto split = checkPick(op, axis.ranks, [&] { return fail(op); });
  if (failed(split))
    return failure();
  if (!entered.contains(op->getOperand(0)))
    return fail(op) << "expected operand 0 to be the result of an 'fsdp.reduce_cotangent', because "
                       "each rank computes a part of its cotangent";
  splits[op->getResult(0)] = *split;
  return success();
}

/// Checks an op without split operands.
LogicalResult PartitionChecker::checkWhole(Operation *op) {
  std::optional<unsigned> part, sum, whole;
  for (OpOperand &operand : op->getOpOperands()) {
    if (entered.contains(operand.get()))
      part = operand.getOperandNumber();
    else if (isFloatTensor(operand.get()) && !isConstantOrUniform(operand.get()))
      whole = operand.getOperandNumber();
    if (sums.contains(operand.get()))
      sum = operand.getOperandNumber();
  }
  if (part && ((!axis.isContext() && whole) || isa<func::ReturnOp>(op)))
    return fail(op) << (axis.isContext() ? "returns operand " + std::to_string(*part) +
                                               ", of which a rank computes parts of the cotangent"
                                         : "reads the result of an 'fsdp.reduce_cotangent'")
                    << ", but is not split over axis '" << axis.name
                    << "', so that its cotangent would be added several times";
  if (part && sum)
    return fail(op) << "reads a sum over axis '" << axis.name << "', operand " << *sum
                    << ", and a value of whose cotangent each rank has a part, operand " << *part
                    << "; expected an 'fsdp.share_cotangent' before the latter";
  if (part && !axis.isContext() && failed(checkCover(op, [&] { return fail(op); })))
    return failure();
  for (Value result : op->getResults())
    if (isFloatTensor(result) && (part || sum))
      (part ? entered : sums).insert(result);
  return success();
}

/// Checks that the rows of a piece are stripes if the functions of attention expect stripes.
LogicalResult PartitionChecker::checkOrder(Operation *op) {
  auto own = dyn_cast<OwnPieceOp>(op);
  auto gather = dyn_cast<AllGatherOp>(op);
  if (!axis.isContext() || (!own && !gather))
    return success();
  bool striped = own ? isStriped(own, axis.ranks) : isStriped(gather, axis.ranks);
  if (striped == axis.striped)
    return success();
  return fail(op) << "expected pieces of " << (axis.striped ? "stripes of" : "neighbouring")
                  << " rows, because the functions of attention count rows so";
}

/// Checks a collective over the axis, or an op that determines cotangents. Returns nothing if `op`
/// is another op. `isSplit` tells whether its operand is split.
std::optional<LogicalResult> PartitionChecker::checkCollective(Operation *op, bool isSplit) {
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  if (!axes || !isOverAxis(axes))
    return std::nullopt;
  if (isa<CrossEntropyOp>(op))
    return isSplit ? std::nullopt
                   : std::optional<LogicalResult>(fail(op) << "expected logits whose classes are "
                                                              "split over axis '"
                                                           << axis.name << "'");
  Value input = op->getOperand(0), result = op->getResult(0);
  if (isa<AllReduceOp>(op)) {
    if (!partial.contains(input))
      return fail(op) << "expected a partial sum, found " << describeValue(input)
                      << " that is none";
    sums.insert(result);
    return success();
  }
  if (auto scatter = dyn_cast<FlatReduceScatterOp>(op)) {
    if (!partial.contains(input))
      return fail(op) << "expected a partial sum, found " << describeValue(input)
                      << " that is none";
    splits[result] = TensorSplit{0, {scatter.getResult().getType().getDimSize(0)}};
    return success();
  }
  if (isSplit != isa<AllGatherOp>(op))
    return fail(op) << "expected a " << (isSplit ? "whole" : "split") << " operand, found operand 0"
                    << " that is " << (isSplit ? "split" : "whole") << " over axis '" << axis.name
                    << "'";
  if (isa<AllGatherOp>(op) && splits.find(input)->second.blocks.size() > 1)
    return fail(op) << "expected an operand that is one block, found several";
  if (failed(checkOrder(op)))
    return failure();
  if (isa<OwnPieceOp>(op)) {
    if (axis.isContext() && sums.contains(input))
      return fail(op) << "expected no sum over axis '" << axis.name
                      << "', because each rank computes a part of its cotangent";
    if (!axis.isContext() && entered.contains(input))
      return fail(op) << "expected no result of an 'fsdp.reduce_cotangent', because each rank has "
                         "the whole cotangent of its piece";
    splits[result] = TensorSplit{0, {cast<RankedTensorType>(result.getType()).getDimSize(0)}};
  } else if (isa<ShareCotangentOp>(op)) {
    if (!entered.contains(input))
      return fail(op) << "expected a value of whose cotangent each rank has a part";
    sums.insert(result);
  } else {
    entered.insert(result);
  }
  return success();
}

/// Checks that `op` reads no partial sum except by an all_reduce, and split values only as
/// operands. Sets `first` to the first operand that is split.
LogicalResult PartitionChecker::checkReads(Operation *op, std::optional<unsigned> &first) {
  WalkResult walk = op->walk([&](Operation *nested) {
    for (OpOperand &operand : nested->getOpOperands()) {
      if (partial.contains(operand.get())) {
        fail(nested) << "reads a partial sum, operand " << operand.getOperandNumber()
                     << ", before an 'fsdp.all_reduce' over axis '" << axis.name
                     << "' adds those of all ranks";
        return WalkResult::interrupt();
      }
      if (!splits.contains(operand.get()))
        continue;
      if (nested != op) {
        fail(nested) << "reads a tensor that is split over axis '" << axis.name
                     << "' at computed indices";
        return WalkResult::interrupt();
      }
      if (!first)
        first = operand.getOperandNumber();
    }
    return WalkResult::advance();
  });
  return success(!walk.wasInterrupted());
}

LogicalResult PartitionChecker::check(Operation *op) {
  // Of the loss of a cross-entropy, only the product with its weight is a term of a sum.
  if (axis.isContext() && op->getNumOperands() && partial.contains(op->getOperand(0)) &&
      op->getOperand(0).getDefiningOp<CrossEntropyOp>()) {
    partial.insert_range(op->getResults());
    return checkWeight(op, axis.ranks, [&] { return fail(op); });
  }
  // Of rows that are looked up in a slice of a table, only those of own ids are a term of a sum.
  if (auto rows = op->getNumOperands() ? lookups.find(op->getOperand(0)) : lookups.end();
      rows != lookups.end()) {
    partial.insert_range(op->getResults());
    return checkMask(op, rows->second, [&] { return fail(op); });
  }
  if (op->getNumOperands() && partial.contains(op->getOperand(0)) &&
      (isCopy(op) || isRounding(op))) {
    partial.insert_range(op->getResults());
    return success();
  }
  if (auto scatter = dyn_cast<FlatReduceScatterOp>(op); scatter && isOverAxis(scatter.getAxes()))
    return *checkCollective(op, /*isSplit=*/false);
  if (auto sum = dyn_cast<AllReduceOp>(op)) {
    if (isOverAxis(sum.getAxes()))
      return *checkCollective(op, /*isSplit=*/false);
    // The sum over another axis of terms of a sum is a term of the sum over both axes.
    if (partial.contains(sum.getInput()) && sum.getReduction() == ReductionKind::sum) {
      partial.insert(sum.getResult());
      return success();
    }
  }
  if (!axis.isContext() && readsCoordinate(op) && !isa<CrossEntropyOp, AttentionOp>(op))
    return checkPart(op);
  std::optional<unsigned> first;
  if (failed(checkReads(op, first)))
    return failure();
  if (auto unshard = dyn_cast<UnshardOp>(op)) {
    checkUnshard(unshard);
    return success();
  }
  if (auto lookup = dyn_cast<UnshardRowsOp>(op)) {
    if (!axis.isContext())
      return checkRowsOfUnit(lookup);
    if (!first) {
      entered.insert(lookup.getRows());
      return success();
    }
  }
  if (auto split = op->getNumOperands() ? splits.find(op->getOperand(0)) : splits.end();
      axis.isContext() && split != splits.end())
    if (std::optional<TensorSplit> rows = cutRows(op, split->second, cuts)) {
      splits[op->getResult(0)] = *rows;
      return success();
    }
  if (std::optional<LogicalResult> checked = checkCollective(op, first.has_value()))
    return *checked;
  if (first && isa<func::ReturnOp>(op))
    return fail(op) << "expected whole operands, found operand " << *first
                    << " that is split over axis '" << axis.name << "'";
  return first ? checkSplit(op, *first) : checkWhole(op);
}

LogicalResult PartitionChecker::check(func::FuncOp func) {
  for (Operation &op : func.getBody().front())
    if (failed(check(&op)))
      return failure();
  return success();
}

/// Returns true if the program is consistent for one meaning of dimensions of size 1. Emits
/// nothing.
static bool isConsistent(func::FuncOp func, SplitAxis axis, int64_t stripes, UnitSplit units) {
  ScopedDiagnosticHandler quiet(func.getContext(), [](Diagnostic &) { return success(); });
  return succeeded(PartitionChecker(axis, stripes, units).check(func));
}

/// Returns attention of which a rank of the axis `context` has one row of queries, or null.
static AttentionOp findSingleRow(func::FuncOp func, const SplitAxis &axis) {
  for (auto op : func.getBody().front().getOps<AttentionOp>())
    if (axis.isContext() && op.getQ().getType().getDimSize(2) == 1)
      return op;
  return {};
}

LogicalResult fsdp::verifyPartition(ModuleOp module, MeshOp mesh) {
  for (auto func : module.getOps<func::FuncOp>()) {
    auto program = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
    if (!program || program.getValue() != "step" || !func.getBody().hasOneBlock())
      continue;
    for (StringRef name : {tensorAxis, contextAxis}) {
      SplitAxis axis{name, mesh.getAxisSize(name)};
      int64_t stripes = axis.isContext() ? countStripes(func) : 0;
      axis.striped = stripes > 0;
      axis.isRank = true;
      if (axis.ranks == 1 || isConsistent(func, axis, stripes, UnitSplit::First) ||
          isConsistent(func, axis, stripes, UnitSplit::Last))
        continue;
      AttentionOp single = findSingleRow(func, axis);
      if (single && !isConsistent(func, axis, stripes, UnitSplit::None))
        return emitError(single.getLoc())
               << "a rank of axis 'context' has one of " << axis.ranks
               << " rows of this attention, so that split dimensions of size 1 cannot be told from "
                  "whole ones; expected at least 2 rows on each rank; use an axis of at most "
               << axis.ranks / 2 << " ranks";
      if (failed(PartitionChecker(axis, stripes, UnitSplit::None).check(func)))
        return failure();
    }
  }
  return success();
}
