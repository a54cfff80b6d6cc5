//===- SplitGroup.cpp - Values that are split together ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   seed: heads of attention         %q = contract %x, %w      rule of the op     %w: columns
//                                    o = attention %q, ..                         %o: heads
//                                    %y = contract %o, %v                         %v: rows, %y: sum
//
//  1. Give the seed its split.
//  2. Take a value from the list of new values. Visit the op that computes it and each op that
//     reads it. The rule of the op (SplitRules.h) gives the splits of its other values.
//  3. Fail if a value has another split already, if an op is split along another loop already, if
//     the ranks do not divide a block, or if the op has no rule.
//  4. Go on until no value is new. The result does not depend on the order of the list.
//
// The results of an op that reduces the split loop are partial sums. They have no split, so nothing
// spreads beyond them. Uniform values, such as fills, are computed again for each shape.
//
// O(uses of split values).
//
//===----------------------------------------------------------------------===//

#include "SplitGroup.h"
#include "fsdp/IR/DiagnosticText.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string fsdp::listDivisors(int64_t size) {
  std::string text;
  int64_t count = 0;
  for (int64_t i = 1; i <= size && count < 12; ++i)
    if (size % i == 0 && ++count)
      text += (text.empty() ? "" : ", ") + std::to_string(i);
  return text;
}

std::string fsdp::describeSplitValue(func::FuncOp func, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return describeValue(value);
  for (StringRef kind : {FSDPDialect::paramAttr, FSDPDialect::batchAttr})
    if (auto name = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kind))
      return ((kind == FSDPDialect::paramAttr ? "parameter '" : "input '") + name.getValue() + "'")
          .str();
  return "argument " + std::to_string(argument.getArgNumber());
}

const TensorSplit *SplitGroup::find(Value value) const {
  auto found = splits.find(value);
  return found == splits.end() ? nullptr : &found->second;
}

LogicalResult SplitGroup::fail(const Twine &reason, Location at) {
  why = reason.str();
  where = at;
  dimension.clear();
  return failure();
}

LogicalResult SplitGroup::fail(Operation *op, const Twine &reason, ValuePlace place,
                               const TensorSplit &split) {
  (void)fail(describeOp(op) + " " + reason, op->getLoc());
  Value value = place.isResult ? Value(op->getResult(place.index)) : op->getOperand(place.index);
  llvm::raw_string_ostream(dimension)
      << "dimension " << split.dim << " of " << (place.isResult ? "result " : "operand ")
      << place.index << ", of type " << value.getType();
  return failure();
}

/// Returns the arguments with the attribute `kind`, and the results of all ops that depend on them.
static DenseSet<Value> findDependent(func::FuncOp func, StringRef kind) {
  DenseSet<Value> dependent;
  for (BlockArgument argument : func.getArguments())
    if (func.getArgAttr(argument.getArgNumber(), kind))
      dependent.insert(argument);
  for (Operation &op : func.getBody().front()) {
    WalkResult walk = op.walk([&](Operation *nested) {
      bool depends = llvm::any_of(nested->getOperands(),
                                  [&](Value operand) { return dependent.contains(operand); });
      return depends ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      dependent.insert_range(op.getResults());
  }
  return dependent;
}

SplitGroup::SplitGroup(func::FuncOp func, SplitAxis axis)
    : where(func.getLoc()), func(func), axis(axis) {
  if (!axis.isContext() && !axis.rows)
    return;
  ofParameters = findDependent(func, FSDPDialect::paramAttr);
  ofBatch = findDependent(func, FSDPDialect::batchAttr);
}

LogicalResult SplitGroup::add(Value value, const TensorSplit &split) {
  if (isUniform(value))
    return success();
  std::string name = describeSplitValue(func, value);
  for (int64_t block : split.blocks)
    if (block % axis.countParts(split) != 0)
      return fail("axis '" + axis.name + "' of " + Twine(axis.ranks) +
                      " ranks does not divide dimension " + Twine(split.dim) + " of " + name +
                      ", " + Twine(block) +
                      "; sizes of the axis that divide it: " + listDivisors(block),
                  value.getLoc());
  auto argument = dyn_cast<BlockArgument>(value);
  bool isParameter = argument && func.getArgAttr(argument.getArgNumber(), FSDPDialect::paramAttr);
  if (isParameter && split.copies > 1 && !splits.contains(value))
    keepWhole(value);
  if (isSliced(value))
    return llvm::all_equal(split.blocks)
               ? success()
               : fail(name + " has the dimension, which consists of blocks of different sizes",
                      value.getLoc());
  auto [it, isNew] = splits.insert({value, split});
  if (!isNew && it->second == split)
    return success();
  if (!isNew && it->second.copies != split.copies)
    return fail(name + " contains heads of keys and values, which are fewer than the ranks",
                value.getLoc());
  if (!isNew)
    return fail(name + " would be split along dimension " + Twine(split.dim) +
                    " and along dimension " + Twine(it->second.dim),
                value.getLoc());
  if (argument && !isParameter)
    return fail(name + " has the dimension, and only parameters have slices", value.getLoc());
  if (value.getDefiningOp<arith::ConstantOp>())
    return fail("a table of constants has the dimension", value.getLoc());
  open.push_back(value);
  return success();
}

LogicalResult SplitGroup::visit(Operation *op, ValuePlace place, const TensorSplit &split) {
  if (op->getBlock() != &func.getBody().front())
    return fail(describeOp(op->getParentOp()) + " reads it at computed indices", op->getLoc());
  std::string reason;
  std::optional<OpSplits> derived = deriveSplits(axis, op, place, split, reason);
  if (!derived)
    return fail(op, reason, place, split);
  // fsdp-verify-sharded could not distinguish this split from one along heads.
  if (auto attention = dyn_cast<AttentionOp>(op);
      attention && !axis.isContext() && derived->results[0]->dim == 0 &&
      attention.getO().getType().getDimSize(0) == axis.ranks &&
      (readsIndex(attention, 0) || readsIndex(attention, 1)))
    return fail(describeOp(op) + " has a score, mask or dropout function that reads the index of "
                                 "a head, and a rank would have a leading dimension of size 1",
                op->getLoc());
  auto [it, isNew] = ops.insert({op, *derived});
  if (!isNew)
    return it->second.loop == derived->loop
               ? success()
               : fail(op, "would be split along two dimensions", place, split);
  for (auto [operand, part] : llvm::zip_equal(op->getOperands(), derived->operands))
    if (part && failed(add(operand, *part)))
      return failure();
  for (auto [result, part] : llvm::zip_equal(op->getResults(), derived->results))
    if (part && failed(add(result, *part)))
      return failure();
  return success();
}

LogicalResult SplitGroup::visit(Value value) {
  TensorSplit split = splits.find(value)->second;
  if (Operation *def = value.getDefiningOp()) {
    unsigned index = cast<OpResult>(value).getResultNumber();
    if (failed(visit(def, {/*isResult=*/true, index}, split)))
      return failure();
  }
  for (OpOperand &use : value.getUses())
    if (failed(visit(use.getOwner(), {/*isResult=*/false, use.getOperandNumber()}, split)))
      return failure();
  return success();
}

LogicalResult SplitGroup::spread(Value seed, const TensorSplit &split) {
  size_t numSplits = splits.size(), numOps = ops.size(), numSliced = sliced.size();
  open.clear();
  bool done = succeeded(add(seed, split));
  while (done && !open.empty())
    done = succeeded(visit(open.pop_back_val()));
  if (done)
    return success();
  // The containers keep the order of insertion, so that the new entries are the last ones.
  while (splits.size() > numSplits)
    splits.pop_back();
  while (ops.size() > numOps)
    ops.pop_back();
  while (sliced.size() > numSliced)
    sliced.pop_back();
  return failure();
}
