//===- RowSeeds.cpp - Which rows the axis tensor splits ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   split products → all_reduce │ + residual → norm → │ reduce_cotangent → split products
//                               └── region of rows ───┘
//
//  1. Find the values that are not whole: split values, partial sums, and values with a cotangent
//     in parts. They begin at slices of parameters, coordinates and reduce_cotangents, and end at
//     all_reduces over the axis `tensor` and at cross-entropies of split classes.
//  2. The seeds are the results of these all_reduces. A seed is split along its first dimension of
//     several rows or, if that fails for all seeds, along a later one, except the last.
//  3. Spread from a seed to whole values that depend on parameters and on the batch, in both
//     directions, by the rules of SplitRules.h. An op joins if all its values can be split as the
//     rule says. Products with parameters do not join: ranks would have to add their gradients.
//  4. An op that does not join stays whole. If it computes a value that ops on rows read, each rank
//     takes its rows of the value (a piece). If it reads rows, they are gathered.
//
// O(uses of whole values).
//
//===----------------------------------------------------------------------===//

#include "RowSeeds.h"
#include "TensorSeeds.h"
#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/StopGradient.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// A sum over the ranks, and the dimension of its rows.
struct RowSeed {
  AllReduceOp sum;
  int64_t dim;
};

class RowChooser {
public:
  RowChooser(func::FuncOp func, int64_t ranks)
      : func(func), region{SplitGroup(func, makeAxis(ranks)), {}} {}

  FailureOr<RowRegion> run(bool remarks);

private:
  static SplitAxis makeAxis(int64_t ranks) {
    SplitAxis axis{tensorAxis, ranks};
    axis.rows = true;
    return axis;
  }
  bool isOwn(Operation *op);
  void findOwn();
  void findSeeds();
  std::string checkRows(Value value, const TensorSplit &split);
  bool canJoin(Operation *op);
  std::string join(Operation *op, ValuePlace place, const TensorSplit &split);
  bool spread(RowSeed seed);
  void findWholeUses();
  void remark();

  const TensorSplit *findRows(Value value) {
    auto piece = pieces.find(value);
    return piece == pieces.end() ? region.group.find(value) : &piece->second;
  }

  func::FuncOp func;
  RowRegion region;
  DenseSet<Value> own; ///< values that depend on slices of parameters and are not whole
  llvm::MapVector<Value, TensorSplit> pieces;      ///< whole values of which a rank reads its rows
  llvm::MapVector<Operation *, std::string> whole; ///< ops that do not join, and the reasons
  SmallVector<Value> open;
  SmallVector<RowSeed> seeds; ///< of rows that are neighbours in memory
  SmallVector<RowSeed> later; ///< of other rows
};

} // namespace

/// Returns true if `op` reads a value that is not whole.
bool RowChooser::isOwn(Operation *op) {
  llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), operands);
  return llvm::any_of(operands, [&](Value operand) { return own.contains(operand); });
}

void RowChooser::findOwn() {
  for (BlockArgument argument : func.getArguments()) {
    auto key = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), FSDPDialect::keyAttr);
    if (func.getArgAttr(argument.getArgNumber(), tensorSplitAttr) ||
        (key && key.getValue() == tensorAxis))
      own.insert(argument);
  }
  for (Operation &op : func.getBody().front()) {
    auto loss = dyn_cast<CrossEntropyOp>(op);
    if (isOverTensor<AllReduceOp>(&op) || (loss && loss.getCoordinate()))
      continue;
    if (isOverTensor<ReduceCotangentOp>(&op) || isOwn(&op))
      own.insert_range(op.getResults());
  }
}

void RowChooser::findSeeds() {
  for (auto sum : func.getBody().front().getOps<AllReduceOp>()) {
    auto type = dyn_cast<RankedTensorType>(sum.getResult().getType());
    if (!isOverTensor<AllReduceOp>(sum) || !type || !region.group.isActivation(sum.getResult()))
      continue;
    bool isLeading = true;
    for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim) {
      if (type.getDimSize(dim) == 1)
        continue;
      (isLeading ? seeds : later).push_back({sum, dim});
      isLeading = false;
    }
  }
}

/// Returns the reason why `value` cannot be split, or an empty text.
std::string RowChooser::checkRows(Value value, const TensorSplit &split) {
  int64_t ranks = region.group.getAxis().ranks;
  for (int64_t block : split.blocks)
    if (block % ranks != 0 || block == ranks)
      return "axis 'tensor' of " + std::to_string(ranks) +
             (block == ranks ? " ranks would leave size 1 of dimension "
                             : " ranks does not divide dimension ") +
             std::to_string(split.dim) + " of " + describeSplitValue(func, value) + ", " +
             std::to_string(block) +
             " rows; sizes of the axis that divide it: " + listDivisors(block);
  return llvm::all_equal(split.blocks) ? "" : "its rows are blocks of different sizes";
}

/// Returns true if `op` can be computed on rows, as far as its kind tells.
bool RowChooser::canJoin(Operation *op) {
  if (op->getBlock() != &func.getBody().front() ||
      !isa<linalg::LinalgOp, linalg::SoftmaxOp, StopGradientOp, tensor::ExpandShapeOp,
           tensor::CollapseShapeOp, tensor::ExtractSliceOp, tensor::ConcatOp>(op))
    return false;
  bool readsParameter = llvm::any_of(op->getOperands(), [&](Value operand) {
    return operand.getType().isIntOrIndexOrFloat() ? false : bool(findParameter(func, operand));
  });
  return !(addsProducts(op) && readsParameter) && !isOwn(op);
}

/// Lets `op` join the region, whose value at `place` has the split `split`. Returns the reason why
/// the op stays whole, or an empty text.
std::string RowChooser::join(Operation *op, ValuePlace place, const TensorSplit &split) {
  if (region.group.ops.contains(op))
    return "";
  std::string why;
  if (!canJoin(op))
    return addsProducts(op) ? "is a product with a parameter" : "has no rule for rows";
  auto derived = deriveSplits(region.group.getAxis(), op, place, split, why);
  if (!derived)
    return why;
  if (derived->partial)
    return "adds rows of several ranks";
  SmallVector<std::pair<Value, TensorSplit>> added;
  auto check = [&](Value value, const std::optional<TensorSplit> &part) {
    if (!why.empty() || !part || isUniform(value))
      return;
    const TensorSplit *known = findRows(value);
    if (known && !(*known == *part))
      why = "would be split along two dimensions";
    else if (!isa<FloatType>(getElementTypeOrSelf(value)))
      why = "reads integers of rows";
    else if (!known && (why = checkRows(value, *part)).empty())
      added.push_back({value, *part});
  };
  for (auto [operand, part] : llvm::zip_equal(op->getOperands(), derived->operands))
    check(operand, part);
  for (auto [result, part] : llvm::zip_equal(op->getResults(), derived->results))
    check(result, part);
  if (!why.empty())
    return why;
  region.group.ops.insert({op, *derived});
  for (const auto &[value, part] : added)
    if (region.group.isActivation(value) && !isa<BlockArgument>(value)) {
      region.group.splits.insert({value, part});
      open.push_back(value);
    }
  return "";
}

/// Spreads from a sum. Returns false if no op joins.
bool RowChooser::spread(RowSeed seed) {
  Value sum = seed.sum.getResult();
  size_t numOps = region.group.ops.size();
  if (findRows(sum))
    return true;
  auto type = cast<RankedTensorType>(sum.getType());
  TensorSplit rows{seed.dim, {type.getDimSize(seed.dim)}};
  if (std::string why = checkRows(sum, rows); !why.empty()) {
    whole.insert({seed.sum, why});
    return false;
  }
  region.group.splits.insert({sum, rows});
  open.push_back(sum);
  while (!open.empty()) {
    Value value = open.pop_back_val();
    TensorSplit split = *findRows(value);
    Operation *def = value.getDefiningOp();
    ValuePlace result{/*isResult=*/true, cast<OpResult>(value).getResultNumber()};
    if (!isOverTensor<AllReduceOp>(def))
      if (std::string why = join(def, result, split); !why.empty()) {
        whole.insert({def, why});
        region.group.splits.erase(value);
        pieces.insert({value, split});
      }
    for (OpOperand &use : value.getUses())
      if (!isOverTensor<ReduceCotangentOp>(use.getOwner()))
        if (std::string why = join(use.getOwner(), {false, use.getOperandNumber()}, split);
            !why.empty())
          whole.insert({use.getOwner(), why});
  }
  if (region.group.ops.size() > numOps)
    return true;
  region.group.splits.erase(sum);
  return false;
}

void RowChooser::findWholeUses() {
  for (auto &[value, split] : region.group.splits)
    for (OpOperand &use : Value(value).getUses())
      if (!region.group.ops.contains(use.getOwner()) &&
          !isOverTensor<ReduceCotangentOp>(use.getOwner()))
        region.wholeUses.push_back({&use, isOwn(use.getOwner())});
}

/// Reports what is computed on rows, and what stays whole.
void RowChooser::remark() {
  emitRemark(func.getLoc()) << "axis 'tensor': a rank computes 1/" << region.group.getAxis().ranks
                            << " of the rows of "
                            << describeCount(region.group.ops.size(), "op", "ops")
                            << " between split products";
  for (auto &[op, why] : whole)
    if (!region.group.ops.contains(op))
      emitRemark(op->getLoc()) << describeOp(op)
                               << " stays whole on each rank of axis 'tensor': " << why;
}

FailureOr<RowRegion> RowChooser::run(bool remarks) {
  findOwn();
  findSeeds();
  for (const RowSeed &seed : seeds)
    spread(seed);
  if (region.group.ops.empty())
    for (const RowSeed &seed : later)
      spread(seed);
  if (region.group.ops.empty()) {
    InFlightDiagnostic diag =
        emitError(seeds.empty() ? func.getLoc() : seeds.front().sum.getLoc())
        << "--sequence-parallel: no op between split products can be computed on the rows of one "
           "rank of axis 'tensor' of "
        << region.group.getAxis().ranks << " ranks";
    for (auto &[op, why] : ArrayRef(whole.begin(), whole.end()).take_front(2))
      diag.attachNote(op->getLoc()) << describeOp(op) << ": " << why;
    diag.attachNote() << "without the option, each rank computes norms and residuals whole";
    return diag;
  }
  findWholeUses();
  if (remarks)
    remark();
  return std::move(region);
}

FailureOr<RowRegion> fsdp::chooseRows(func::FuncOp func, int64_t ranks, bool remarks) {
  return RowChooser(func, ranks).run(remarks);
}
