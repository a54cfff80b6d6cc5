//===- RowGroup.cpp - Ops computed by chunks of rows ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//
//===----------------------------------------------------------------------===//

#include "RowGroup.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Maximum number of ops in a group. The group of a loss has about 12 ops.
static constexpr unsigned maxMembers = 64;

int64_t fsdp::tensorBytes(Type of) {
  auto type = cast<RankedTensorType>(of);
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

std::optional<int> fsdp::findDimension(AffineMap map, unsigned loop) {
  int found = -1;
  for (auto [i, result] : llvm::enumerate(map.getResults())) {
    if (result == getAffineDimExpr(loop, map.getContext()) && found < 0)
      found = i;
    else if (result.isFunctionOfDim(loop))
      return std::nullopt;
  }
  return found;
}

/// Returns the ops in the body of `op` that read single elements of `from`.
static SmallVector<tensor::ExtractOp> getExtracts(Operation *op, Value from) {
  SmallVector<tensor::ExtractOp> extracts;
  op->walk([&](tensor::ExtractOp extract) {
    if (extract.getTensor() == from)
      extracts.push_back(extract);
  });
  return extracts;
}

SmallVector<Value> fsdp::getCaptures(Operation *op) {
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(op->getRegions(), captures);
  return captures.takeVector();
}

/// Returns the loop of `op` that iterates over the rows of those operands that belong to the group.
/// Returns nothing if no operand belongs to the group, or if different loops iterate over the rows
/// of different operands.
std::optional<unsigned> RowGroup::findRowLoop(linalg::LinalgOp op) const {
  std::optional<unsigned> found;
  auto agree = [&](unsigned loop) {
    bool same = !found || *found == loop;
    found = loop;
    return same;
  };
  for (OpOperand *operand : op.getDpsInputOperands())
    if (auto dim = rowDims.find(operand->get()); dim != rowDims.end()) {
      auto expr =
          dyn_cast<AffineDimExpr>(op.getMatchingIndexingMap(operand).getResult(dim->second));
      if (!expr || !agree(expr.getPosition()))
        return std::nullopt;
    }
  for (Value capture : getCaptures(op))
    if (auto dim = rowDims.find(capture); dim != rowDims.end())
      for (tensor::ExtractOp extract : getExtracts(op, capture)) {
        auto index = extract.getIndices()[dim->second].getDefiningOp<linalg::IndexOp>();
        if (!index || index->getParentOp() != op || !agree(index.getDim()))
          return std::nullopt;
      }
  return found;
}

/// Returns true if `op` computes a sum over rows in a type narrower than f32. Each chunk would
/// round such a sum once more.
static bool roundsSums(linalg::LinalgOp op, unsigned loop) {
  return llvm::any_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    auto type = dyn_cast<FloatType>(getElementTypeOrSelf(init.get()));
    return type && type.getWidth() < 32 && !op.getMatchingIndexingMap(&init).isFunctionOfDim(loop);
  });
}

/// Returns true if `loop`, the loop over rows, indexes at most one dimension of each operand. In an
/// operand that has the rows of the group, `loop` must index the dimension of the rows.
bool RowGroup::readsRowsByLoop(linalg::LinalgOp op, unsigned loop) const {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    std::optional<int> dim = findDimension(op.getMatchingIndexingMap(&operand), loop);
    if (!dim)
      return false;
    auto known = rowDims.find(operand.get());
    if (known != rowDims.end() && *dim != int(known->second))
      return false;
  }
  for (Value capture : getCaptures(op)) // the body may only extract elements of a captured value
    if (isOverRows(capture) && llvm::any_of(capture.getUsers(), [&](Operation *user) {
          return op->isProperAncestor(user) && !isa<tensor::ExtractOp>(user);
        }))
      return false;
  return true;
}

void RowGroup::recordResults(linalg::LinalgOp op) {
  unsigned loop = rowLoops.lookup(op);
  for (auto [result, init] : llvm::zip_equal(op->getResults(), op.getDpsInitsMutable()))
    if (int dim = *findDimension(op.getMatchingIndexingMap(&init), loop); dim >= 0)
      rowDims[result] = dim;
}

/// Adds a sum over the ranks of a value with rows, such as the statistics of a split softmax. Ranks
/// add each chunk of rows.
bool RowGroup::addSum(AllReduceOp op) {
  auto dim = rowDims.find(op.getInput());
  if (dim == rowDims.end() || op->getBlock() != block || members.size() == maxMembers ||
      tensorBytes(op.getResult()) > limit)
    return false;
  rowLoops[op] = dim->second;
  members.insert(op);
  rowDims[op.getResult()] = rowLoops[op];
  return true;
}

bool RowGroup::addMember(Operation *op) {
  if (members.contains(op))
    return true;
  if (auto sum = dyn_cast<AllReduceOp>(op))
    return addSum(sum);
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || op->getBlock() != block || members.size() == maxMembers ||
      !linalgOp.hasPureTensorSemantics())
    return false;
  std::optional<unsigned> loop = findRowLoop(linalgOp);
  if (!loop || !readsRowsByLoop(linalgOp, *loop) || roundsSums(linalgOp, *loop))
    return false;
  rowLoops[op] = *loop;
  members.insert(op);
  recordResults(linalgOp);
  return true;
}

/// Adds all readers of a wide result as members. Returns false if a reader cannot be a member.
bool RowGroup::addUsers(Value wide) {
  return llvm::all_of(wide.getUsers(), [&](Operation *user) {
    Operation *op = block->findAncestorOpInBlock(*user);
    return op && addMember(op);
  });
}

/// Returns the operands and captures of `op`.
static SmallVector<Value> getRead(Operation *op) {
  SmallVector<Value> read(op->getOperands());
  llvm::append_range(read, getCaptures(op));
  return read;
}

/// Returns the ops before `end` that are not members but depend on a member.
llvm::SetVector<Operation *> RowGroup::findReaders(Operation *end) const {
  llvm::SetVector<Operation *> readers;
  for (Operation *op = getOrdered().front(); op != end; op = op->getNextNode())
    if (!members.contains(op) && llvm::any_of(getRead(op), [&](Value v) {
          Operation *def = v.getDefiningOp();
          return def && (members.contains(def) || readers.contains(def));
        }))
      readers.insert(op);
  return readers;
}

/// Adds the ops that depend on a member and on which another member depends. Returns false if one
/// of them cannot be a member.
bool RowGroup::addBetween() {
  llvm::SetVector<Operation *> readers = findReaders(last()), between;
  SmallVector<Operation *> worklist(members.begin(), members.end());
  while (!worklist.empty())
    for (Value v : getRead(worklist.pop_back_val()))
      if (Operation *def = v.getDefiningOp(); def && readers.contains(def) && between.insert(def))
        worklist.push_back(def);
  return llvm::all_of(readers,
                      [&](Operation *op) { return !between.contains(op) || addMember(op); });
}

/// Adds those maps with one number per row whose inputs are values of members or do not depend on
/// members.
void RowGroup::addRowScalars() {
  llvm::SetVector<Operation *> readers = findReaders(block->getTerminator());
  for (Operation *op : readers) {
    auto map = dyn_cast<linalg::GenericOp>(op);
    if (map && map.getNumLoops() == 1 && map.getNumParallelLoops() == 1 &&
        llvm::all_of(getRead(op), [&](Value v) {
          return isOverRows(v) || !v.getDefiningOp() ||
                 (!readers.contains(v.getDefiningOp()) && !members.contains(v.getDefiningOp()));
        }))
      addMember(op);
  }
}

bool RowGroup::grow() {
  auto seed = cast<linalg::LinalgOp>(members.front());
  if (!readsRowsByLoop(seed, rowLoops.lookup(seed)))
    return false;
  recordResults(seed);
  for (size_t before = 0; before != members.size();) {
    before = members.size();
    for (size_t i = 0; i < members.size(); ++i)
      for (Value result : members[i]->getResults())
        if (isOverRows(result) && tensorBytes(result) > limit && !addUsers(result))
          return false;
    if (!addBetween())
      return false;
  }
  if (!reduces())
    return false;
  addRowScalars();
  // A member must not read the sum over all rows that another member computes.
  return llvm::all_of(members, [&](Operation *op) {
    return llvm::all_of(getRead(op), [&](Value v) {
      Operation *def = v.getDefiningOp();
      return !def || !members.contains(def) || isOverRows(v);
    });
  });
}

SmallVector<Operation *> RowGroup::getOrdered() const {
  SmallVector<Operation *> ordered(members.begin(), members.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

Operation *RowGroup::last() const { return getOrdered().back(); }

bool RowGroup::reduces() const {
  return llvm::any_of(members, [&](Operation *op) {
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    return op != members.front() && structured && structured.getNumReductionLoops() > 0 &&
           llvm::any_of(getRead(op),
                        [&](Value v) { return isOverRows(v) && tensorBytes(v) > limit; });
  });
}

int64_t RowGroup::countRows() const {
  Value seed = members.front()->getResult(0);
  return cast<RankedTensorType>(seed.getType()).getDimSize(rowDims.lookup(seed));
}

/// A result may overwrite an operand of the same type that no later op reads. The operand and the
/// result are then counted only once.
int64_t RowGroup::countRowBytes() const {
  SmallVector<Operation *> ordered = getOrdered();
  llvm::SmallDenseMap<Value, Operation *> lastReaders;
  for (Operation *op : ordered)
    for (Value v : getRead(op))
      lastReaders[v] = op;
  int64_t alive = 0, most = 0;
  llvm::SetVector<Value> wide;
  for (Operation *op : ordered) {
    SmallVector<Type> ending;
    for (Value v : getRead(op))
      if (lastReaders.lookup(v) == op && wide.remove(v)) {
        alive -= tensorBytes(v);
        ending.push_back(v.getType());
      }
    // Bytes of operands that this op is the last to read and that no result overwrites.
    int64_t meanwhile = 0;
    for (Value result : op->getResults())
      if (isOverRows(result) && tensorBytes(result) > limit) {
        alive += tensorBytes(result);
        wide.insert(result);
        if (auto *same = llvm::find(ending, result.getType());
            same != ending.end() && !isa<linalg::ContractOp>(op))
          ending.erase(same);
      }
    for (Type type : ending)
      meanwhile += tensorBytes(type);
    most = std::max(most, alive + meanwhile);
  }
  return llvm::divideCeil(most, countRows());
}
