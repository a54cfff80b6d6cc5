//===- TensorSeeds.cpp - Which values the axis tensor splits ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. The seeds are the heads of each attention, the output features of each product with a
//     parameter, and the rows of each table with as many rows as a cross-entropy has classes.
//     Spread each seed (SplitGroup.cpp).
//  2. If the seed of an attention cannot be spread to its operands, spread it from the result only:
//     attention is split alone, and reads the rank's heads of whole operands.
//  3. With `auto`, keep the group of an attention. Keep another group if all partial sums are
//     products with parameters of the group, as in an MLP, or lookups in them, or if it ends in the
//     classes of a cross-entropy: then ranks add one tensor per group, instead of sums of every
//     norm.
//  4. With a plan, keep the groups with a parameter that the plan splits along the same dimension.
//     Spread each other parameter that the plan splits from the parameter itself. Then verify that
//     all words of the plan hold. The weights of heads that several ranks have stay whole.
//
//===----------------------------------------------------------------------===//

#include "TensorSeeds.h"
#include "SharedHeads.h"
#include "fsdp/Analysis/LocatedJson.h"
#include "fsdp/IR/DiagnosticText.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// Candidates for the split of a group of values, of which the first one that is possible is taken.
struct Seed {
  Operation *op; ///< attention, a product with a parameter, or a lookup in one
  Value value;
  SmallVector<TensorSplit> splits;
  bool isAttention;
};

struct Parameter {
  StringRef name;
  BlockArgument value;
  const TensorPlanEntry *entry;
  /// The dimension that the plan splits, or nothing if the plan wants the whole parameter.
  std::optional<int64_t> dim = std::nullopt;

  bool isWeight() const { return cast<RankedTensorType>(value.getType()).getRank() > 1; }
};

/// Number of splits and of ops of a group.
struct Extent {
  size_t splits, ops;
};

/// Returns the number of characters with which both texts begin.
static size_t commonPrefix(StringRef a, StringRef b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

class SplitChooser {
public:
  SplitChooser(func::FuncOp func, int64_t ranks, const TensorPlan *plan,
               SmallVectorImpl<WholeGroup> &whole)
      : func(func), ranks(ranks), plan(plan), whole(whole), chosen(func, {tensorAxis, ranks}) {}

  FailureOr<SplitGroup> run();

private:
  LogicalResult readPlan();
  LogicalResult findDim(Parameter &param);
  std::optional<bool> isOutput(Value value, int64_t dim);
  SmallVector<Seed> findSeeds();
  LogicalResult checkHeads(AttentionOp op, ArrayRef<TensorSplit> splits);
  LogicalResult spread(const Seed &seed);
  std::string judge(const SplitGroup &group, const Seed &seed);
  bool addsOtherSums(const SplitGroup &group, Operation *op, const OpSplits &splits);
  void warnOfSums(Extent before, Extent after);
  LogicalResult spreadPlan();
  LogicalResult checkPlan();

  func::FuncOp func;
  int64_t ranks;
  const TensorPlan *plan;
  SmallVectorImpl<WholeGroup> &whole;
  SplitGroup chosen;
  SmallVector<Extent> extents; ///< of `chosen`, before each group was added
  SmallVector<Parameter> parameters;
};

} // namespace

BlockArgument fsdp::findParameter(func::FuncOp func, Value value) {
  while (Operation *def = value.getDefiningOp()) {
    auto structured = dyn_cast<linalg::LinalgOp>(def);
    bool isCopy = structured && structured.getNumDpsInputs() == 1 &&
                  structured.getNumReductionLoops() == 0 && structured.getNumDpsInits() == 1;
    if (!isCopy && !isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(def))
      return {};
    value = def->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  return func.getArgAttr(argument.getArgNumber(), FSDPDialect::paramAttr) ? argument
                                                                          : BlockArgument();
}

/// Follows dimension `dim` of a parameter to a product that reads it. Returns true if the dimension
/// is a dimension of the product's result (output features), false if the product reduces it
/// (input features), or nothing if there is no such product. Columns of a table are output
/// features, and its rows are input features.
std::optional<bool> SplitChooser::isOutput(Value value, int64_t dim) {
  int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  std::vector<std::pair<Value, TensorSplit>> open{{value, {dim, {size}}}};
  llvm::DenseSet<Value> seen{value};
  std::optional<bool> lookup;
  while (!open.empty()) {
    auto [from, split] = open.back();
    open.pop_back();
    for (OpOperand &use : from.getUses()) {
      Operation *user = use.getOwner();
      ValuePlace place{/*isResult=*/false, use.getOperandNumber()};
      std::string why;
      if (isa<GatherRowsOp>(user))
        lookup = split.dim == 1;
      std::optional<OpSplits> derived = deriveSplits(chosen.getAxis(), user, place, split, why);
      if (derived && addsProducts(user))
        return !derived->partial;
      if (!derived || user->getNumResults() != 1 || !derived->results[0] ||
          !findParameter(func, user->getResult(0)) || !seen.insert(user->getResult(0)).second)
        continue;
      open.push_back({user->getResult(0), *derived->results[0]});
    }
  }
  return lookup;
}

/// Sets the dimension of `param` that its entry of the plan splits.
LogicalResult SplitChooser::findDim(Parameter &param) {
  auto type = cast<RankedTensorType>(param.value.getType());
  TensorWord word = param.entry->word;
  // A rowwise bias is added to the sum of all ranks.
  if (keepsWhole(word) || (type.getRank() < 2 && word == TensorWord::Rowwise))
    return success();
  if (type.getRank() == 1) {
    param.dim = 0;
    return success();
  }
  if (type.getRank() == 2)
    param.dim = param.entry->dim;
  for (int64_t dim = 0; dim < type.getRank() && !param.dim; ++dim)
    if (std::optional<bool> output = isOutput(param.value, dim);
        output && *output == (word == TensorWord::Colwise))
      param.dim = dim;
  if (param.dim)
    return success();
  InFlightDiagnostic diag = emitError(param.entry->loc)
                            << "tensor-parallel: '" << param.name << "' of type " << type
                            << " cannot be " << nameOf(word) << ": no product has its "
                            << (word == TensorWord::Colwise ? "output" : "input") << " features";
  diag.attachNote(param.value.getLoc()) << "the parameter is here";
  return diag;
}

LogicalResult SplitChooser::readPlan() {
  for (BlockArgument arg : func.getArguments())
    if (auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::paramAttr))
      parameters.push_back({name, arg, nullptr});
  if (!plan)
    return success();
  auto owners = plan->match(
      llvm::map_to_vector(parameters, [](const Parameter &param) { return param.name; }));
  if (failed(owners))
    return failure();
  llvm::MapVector<const TensorPlanEntry *, bool> splits; // whether an entry splits a parameter
  for (auto [param, owner] : llvm::zip_equal(parameters, *owners)) {
    param.entry = owner;
    if (owner && failed(findDim(param)))
      return failure();
    if (owner)
      splits[owner] |= param.dim.has_value();
  }
  // Errors name a weight if its bias has the same problem.
  llvm::stable_sort(parameters, [](const Parameter &a, const Parameter &b) {
    return a.isWeight() > b.isWeight();
  });
  for (auto [entry, isSplit] : splits)
    if (!keepsWhole(entry->word) && !isSplit)
      return emitError(entry->loc)
             << "tensor-parallel: pattern '" << shortText(entry->pattern) << "' is "
             << nameOf(entry->word)
             << ", but it selects only vectors, which have no input features; expected "
                "\"colwise\", "
                "or \"replicate\" to keep them whole";
  return success();
}

SmallVector<Seed> SplitChooser::findSeeds() {
  SmallVector<Seed> seeds;
  llvm::SmallDenseSet<int64_t> classes;
  for (auto loss : func.getBody().front().getOps<CrossEntropyOp>())
    classes.insert(cast<RankedTensorType>(loss.getLogits().getType()).getDimSize(1));
  for (Operation &op : func.getBody().front()) {
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      ArrayRef<int64_t> shape = attention.getO().getType().getShape();
      seeds.push_back({&op, attention.getO(), {{1, {shape[1]}}, {0, {shape[0]}}}, true});
    }
    if (auto lookup = dyn_cast<GatherRowsOp>(op);
        lookup && findParameter(func, lookup.getTable())) {
      int64_t rows = cast<RankedTensorType>(lookup.getTable().getType()).getDimSize(0);
      if (classes.contains(rows))
        seeds.push_back({&op, lookup.getTable(), {TensorSplit{0, {rows}}}, false});
    }
    auto product = dyn_cast<linalg::LinalgOp>(op);
    if (!addsProducts(&op) || op.getNumResults() != 1)
      continue;
    AffineMap result = product.getMatchingIndexingMap(product.getDpsInitOperand(0));
    ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getResult(0).getType()).getShape();
    for (OpOperand *input : product.getDpsInputOperands()) {
      AffineMap map = product.getMatchingIndexingMap(input);
      if (!findParameter(func, input->get()) || !map.isProjectedPermutation() ||
          !result.isProjectedPermutation())
        continue;
      for (auto [dim, expr] : llvm::enumerate(result.getResults()))
        if (map.getResultPosition(expr))
          seeds.push_back({&op, op.getResult(0), {TensorSplit{int64_t(dim), {shape[dim]}}}, false});
    }
  }
  return seeds;
}

/// Lets the operands of attention stay whole, so that it can be split along heads alone. Returns
/// false if `op` is no such attention, or another op splits an operand.
static bool keepOperands(SplitGroup &group, Operation *op, const TensorSplit &split) {
  if (!isa<AttentionOp>(op) || split.dim != 1)
    return false;
  for (Value operand : op->getOperands().take_front(3)) {
    if (group.find(operand))
      return false;
    group.keepWhole(operand);
  }
  return true;
}

/// Returns true if Import has joined the heads of keys and values with the batch, and a rank would
/// have one head of queries for each of them. fsdp-verify-sharded could not tell which dimension of
/// size 1 is split.
static bool isJoinedWithBatch(func::FuncOp func, AttentionOp op, int64_t ranks) {
  ArrayRef<int64_t> queries = op.getQ().getType().getShape();
  auto isBatch = [&](BlockArgument argument) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    return func.getArgAttr(argument.getArgNumber(), FSDPDialect::batchAttr) && type &&
           type.getRank() > 0;
  };
  auto *batch = llvm::find_if(func.getArguments(), isBatch);
  return batch != func.getArguments().end() && queries[1] == ranks &&
         queries[0] > cast<RankedTensorType>(batch->getType()).getDimSize(0);
}

/// Emits an error if attention can be split, but only for other numbers of ranks.
LogicalResult SplitChooser::checkHeads(AttentionOp op, ArrayRef<TensorSplit> splits) {
  SmallVector<int64_t> best;
  int64_t dim = 0;
  for (const TensorSplit &split : splits) {
    auto canSpread = [&](bool alone) {
      SplitGroup group(func, {tensorAxis, /*ranks=*/1});
      return (!alone || keepOperands(group, op, split)) &&
             succeeded(group.spread(op.getO(), split));
    };
    if (!canSpread(false) && !canSpread(true))
      continue; // the dimension has no heads, or an op prevents the split for any number of ranks
    int64_t queries = op.getQ().getType().getDimSize(split.dim),
            keys = op.getK().getType().getDimSize(split.dim);
    if (dividesHeads(queries, keys, ranks))
      return success();
    SmallVector<int64_t> sizes;
    for (int64_t size = 1; size <= queries; ++size)
      if (dividesHeads(queries, keys, size))
        sizes.push_back(size);
    if (best.empty() || sizes.back() > best.back()) {
      best = sizes;
      dim = split.dim;
    }
  }
  if (best.empty())
    return success();
  InFlightDiagnostic diag = emitError(op.getLoc())
                            << "axis 'tensor' of " << ranks
                            << " ranks does not divide the heads of attention (dimension " << dim
                            << "): " << op.getQ().getType().getDimSize(dim) << " heads of queries, "
                            << op.getK().getType().getDimSize(dim)
                            << " heads of keys and values; sizes of the axis that divide them: ";
  llvm::interleaveComma(ArrayRef(best).take_front(12), diag);
  diag.attachNote() << "or give a file to --tensor-parallel that does not split attention";
  return diag;
}

/// Returns true if ranks add the results of `op`, and it is neither a product with a split
/// parameter nor a lookup in one.
bool SplitChooser::addsOtherSums(const SplitGroup &group, Operation *op, const OpSplits &splits) {
  return splits.partial && !((addsProducts(op) || isa<GatherRowsOp>(op)) &&
                             llvm::any_of(op->getOperands(), [&](Value operand) {
                               return group.find(operand) && findParameter(func, operand);
                             }));
}

/// Returns the reason why the group of `seed`, the new ops of `group`, is not useful. Returns an
/// empty text if it is to be split.
std::string SplitChooser::judge(const SplitGroup &group, const Seed &seed) {
  if (plan) {
    bool isWanted = llvm::any_of(parameters, [&](const Parameter &param) {
      const TensorSplit *split = group.find(param.value);
      return param.dim && split && split->dim == *param.dim && !chosen.find(param.value);
    });
    return isWanted ? "" : "the plan of --tensor-parallel does not split it";
  }
  unsigned numSums = 0;
  for (auto &[op, splits] : group.ops) {
    if ((!splits.partial && !isa<CrossEntropyOp>(op)) || chosen.ops.contains(op))
      continue;
    ++numSums;
    if (addsOtherSums(group, op, splits) && !seed.isAttention)
      return "ranks would have to add the results of an op that is no product with a parameter";
  }
  return numSums ? "" : "no product reduces the dimension";
}

LogicalResult SplitChooser::spread(const Seed &seed) {
  if (chosen.find(seed.value))
    return success();
  if (seed.isAttention && !plan && failed(checkHeads(cast<AttentionOp>(seed.op), seed.splits)))
    return failure();
  std::string why;
  for (bool alone : {false, true})
    for (const TensorSplit &split : seed.splits) {
      SplitGroup group = chosen;
      if (alone && !keepOperands(group, seed.op, split))
        continue;
      if (seed.isAttention && split.dim == 1 &&
          isJoinedWithBatch(func, cast<AttentionOp>(seed.op), ranks)) {
        why = "its batch is joined with heads of keys and values that the axis does not divide; "
              "give the batch a dimension of its own";
        continue;
      }
      std::string reason =
          succeeded(group.spread(seed.value, split)) ? judge(group, seed) : group.why;
      if (reason.empty()) {
        extents.push_back({chosen.splits.size(), chosen.ops.size()});
        chosen = std::move(group);
        return success();
      }
      if (why.empty())
        why = reason;
    }
  whole.push_back({seed.op, why});
  return success();
}

/// Emits a warning if a word of the plan has split values far from its parameter, such as all that
/// the layers add. This is so if the added group has other sums than those of products, and
/// parameters that the plan does not name.
void SplitChooser::warnOfSums(Extent before, Extent after) {
  auto isNew = [&](const Parameter &param) {
    size_t index = chosen.splits.find(param.value) - chosen.splits.begin();
    return index >= before.splits && index < after.splits;
  };
  const Parameter *named =
      llvm::find_if(parameters, [&](const Parameter &param) { return param.dim && isNew(param); });
  SmallVector<StringRef> others;
  for (const Parameter &param : parameters)
    if (!param.entry && isNew(param))
      others.push_back(param.name);
  SmallVector<Operation *> sums;
  for (auto &[op, splits] :
       llvm::make_range(chosen.ops.begin() + before.ops, chosen.ops.begin() + after.ops))
    if (addsOtherSums(chosen, op, splits))
      sums.push_back(op);
  if (named == parameters.end() || others.empty() || sums.empty())
    return;
  InFlightDiagnostic diag =
      emitWarning(named->entry->loc)
      << "tensor-parallel: '" << named->name << "' is " << nameOf(named->entry->word)
      << ", which also splits " << describeCount(others.size(), "parameter", "parameters")
      << " that the plan does not name ('" << others.front() << "'"
      << (others.size() > 1 ? " to '" + others.back().str() + "'" : "")
      << "), and ranks must also add the results of "
      << describeCount(sums.size(), "op that is", "ops that are") << " no product with a parameter";
  diag.attachNote(sums.front()->getLoc()) << "such as " << describeOp(sums.front());
  diag.attachNote() << "a word for each of these parameters confirms the split; without '"
                    << shortText(named->entry->pattern) << "' they stay whole";
}

/// Spreads from the parameters that the plan splits and that are not split yet.
LogicalResult SplitChooser::spreadPlan() {
  auto shared = findSharedHeads(func, chosen, /*all=*/false);
  for (const Parameter &param : parameters) {
    bool isColwise = param.entry && param.entry->word == TensorWord::Colwise;
    if (!param.dim || chosen.find(param.value) || (isColwise && shared.contains(param.value)))
      continue;
    int64_t size = cast<RankedTensorType>(param.value.getType()).getDimSize(*param.dim);
    Extent before{chosen.splits.size(), chosen.ops.size()};
    if (succeeded(chosen.spread(param.value, {*param.dim, {size}}))) {
      extents.push_back(before);
      continue;
    }
    InFlightDiagnostic diag = emitError(param.entry->loc)
                              << "tensor-parallel: parameter '" << param.name << "' cannot be "
                              << nameOf(param.entry->word) << " (dimension " << *param.dim
                              << " split over axis 'tensor' of " << ranks
                              << " ranks): " << chosen.why;
    diag.attachNote(chosen.where) << "here";
    diag.attachNote(param.value.getLoc()) << "the parameter is here; \"replicate\" keeps it whole";
    return diag;
  }
  return success();
}

/// Verifies that the chosen splits contradict no word of the plan.
LogicalResult SplitChooser::checkPlan() {
  for (const Parameter &param : parameters) {
    const TensorSplit *split = chosen.find(param.value);
    if (!param.entry || !split || param.dim == split->dim)
      continue;
    InFlightDiagnostic diag =
        emitError(param.entry->loc)
        << "tensor-parallel: the plan contradicts itself: '" << param.name << "' is "
        << nameOf(param.entry->word)
        << (param.dim ? " (dimension " + std::to_string(*param.dim) + ")" : "")
        << ", but other parameters of the plan split it along dimension " << split->dim;
    // The other parameter is in the same module, if there are several.
    const Parameter *nearest = nullptr;
    size_t most = 0;
    for (const Parameter &other : parameters) {
      const TensorSplit *its = chosen.find(other.value);
      size_t common = commonPrefix(other.name, param.name);
      if (its && other.dim == its->dim && (!nearest || common > most)) {
        nearest = &other;
        most = common;
      }
    }
    if (nearest)
      diag.attachNote(nearest->entry->loc)
          << "such as '" << nearest->name << "', which is " << nameOf(nearest->entry->word);
    TensorWord word = !param.isWeight() || isOutput(param.value, split->dim).value_or(true)
                          ? TensorWord::Colwise
                          : TensorWord::Rowwise;
    diag.attachNote(param.value.getLoc())
        << "\"" << nameOf(word) << "\" for this parameter agrees with the other words; to keep it "
        << "whole, keep all of them whole by \"replicate\"";
    return diag;
  }
  return success();
}

FailureOr<SplitGroup> SplitChooser::run() {
  if (failed(readPlan()))
    return failure();
  for (const Seed &seed : findSeeds())
    if (failed(spread(seed)))
      return failure();
  // Check before other parameters are spread, so that errors name the parameters of products.
  if (plan && (failed(checkPlan()) || failed(spreadPlan()) || failed(checkPlan())))
    return failure();
  extents.push_back({chosen.splits.size(), chosen.ops.size()});
  for (size_t i = 0; plan && i + 1 < extents.size(); ++i)
    warnOfSums(extents[i], extents[i + 1]);
  return std::move(chosen);
}

FailureOr<SplitGroup> fsdp::chooseSplits(func::FuncOp func, int64_t ranks, const TensorPlan *plan,
                                         SmallVectorImpl<WholeGroup> &whole) {
  return SplitChooser(func, ranks, plan, whole).run();
}
