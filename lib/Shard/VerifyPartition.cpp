//===- VerifyPartition.cpp - Check a program of the axis tensor -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Derives the state of each value in the order of the program:
//
//   state     meaning on the ranks of the axis `tensor`        begins at
//   whole     equal values                                     arguments, all_reduce
//   entered   equal values, and cotangents that are parts      reduce_cotangent
//   split     slices                                           parameters with a slice
//   partial   terms of a sum                                   a reduced loop that is split
//
//  1. An op with a split operand follows the rule of SplitRules.h. All its operands must have the
//     splits of the rule, and its whole float operands must be entered.
//  2. An op without split operands must have whole operands.
//  3. Only all_reduce reads a partial sum, and it reads nothing else.
//  4. The function returns whole values.
//  5. Slices of a dimension may have the size 1, which a reshape does not distinguish from a whole
//     dimension. Accept the program if it is consistent for one of the two meanings.
//
// This is a check of PartitionTensors.cpp from its result: a missing or additional all_reduce or
// reduce_cotangent is an error. O(uses).
//
//===----------------------------------------------------------------------===//

#include "VerifyPartition.h"
#include "SplitRules.h"
#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/StopGradient.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
class PartitionChecker {
public:
  explicit PartitionChecker(bool splitsUnits) : splitsUnits(splitsUnits) {}
  LogicalResult check(func::FuncOp func);

private:
  InFlightDiagnostic fail(Operation *op) {
    return emitError(op->getLoc()) << "after Shard: " << describeOp(op) << " ";
  }
  void addParameter(UnitOp unit, ParamAttr param, Value value);
  void checkUnshard(UnshardOp op);
  LogicalResult checkSplit(Operation *op, unsigned first);
  LogicalResult checkWhole(Operation *op);
  LogicalResult check(Operation *op);

  DenseMap<Value, TensorSplit> splits; ///< splits of slices: blocks have the sizes of one rank
  DenseSet<Value> partial, entered;
  bool splitsUnits; ///< which dimensions of size 1 are split (SplitRules.h)
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
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    addParameter(unit, unit.getParam(i), result);
}

/// Checks an op whose operand `first` is split.
LogicalResult PartitionChecker::checkSplit(Operation *op, unsigned first) {
  std::string why;
  TensorSplit split = splits.find(op->getOperand(first))->second;
  std::optional<OpSplits> derived =
      deriveSplits(op, {/*isResult=*/false, first}, split, why, splitsUnits);
  if (!derived)
    return fail(op) << why << ", but operand " << first << " is split over axis 'tensor'";
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  for (auto [operand, expected] : llvm::zip_equal(op->getOpOperands(), derived->operands)) {
    Value value = operand.get();
    auto found = splits.find(value);
    bool isSplit = found != splits.end();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    bool isInit = destination && destination.isDpsInit(&operand);
    if (isUniform(value) || !type || (!expected && isConstantOrUniform(value)))
      continue;
    if (expected.has_value() != isSplit || (isSplit && !(found->second == *expected)))
      return fail(op) << "expected operand " << operand.getOperandNumber() << " to be "
                      << (expected ? "split" : "whole")
                      << " over axis 'tensor' as the other operands require";
    if (!expected && !isInit && isa<FloatType>(type.getElementType()) && !entered.contains(value))
      return fail(op) << "expected whole operand " << operand.getOperandNumber()
                      << " of an op that is split over axis 'tensor' to be the result of an "
                         "'fsdp.reduce_cotangent', because each rank computes a part of its "
                         "cotangent";
  }
  for (auto [result, expected] : llvm::zip_equal(op->getResults(), derived->results)) {
    if (expected)
      splits[result] = *expected;
    else if (derived->partial)
      partial.insert(result);
  }
  return success();
}

/// Checks an op without split operands.
LogicalResult PartitionChecker::checkWhole(Operation *op) {
  for (Value operand : op->getOperands())
    if (entered.contains(operand))
      return fail(op) << "reads the result of an 'fsdp.reduce_cotangent', but is not split over "
                         "axis 'tensor', so that its cotangent would be added several times";
  return success();
}

LogicalResult PartitionChecker::check(Operation *op) {
  if (auto sum = dyn_cast<AllReduceOp>(op)) {
    if (!partial.contains(sum.getInput()))
      return fail(op) << "expected a partial sum, found " << describeValue(sum.getInput())
                      << " that is none";
    return success();
  }
  std::optional<unsigned> first;
  WalkResult walk = op->walk([&](Operation *nested) {
    for (OpOperand &operand : nested->getOpOperands()) {
      if (partial.contains(operand.get())) {
        fail(nested) << "reads a partial sum, operand " << operand.getOperandNumber()
                     << ", before an 'fsdp.all_reduce' over axis 'tensor' adds those of all ranks";
        return WalkResult::interrupt();
      }
      if (!splits.contains(operand.get()))
        continue;
      if (nested != op) {
        fail(nested) << "reads a tensor that is split over axis 'tensor' at computed indices";
        return WalkResult::interrupt();
      }
      if (!first)
        first = operand.getOperandNumber();
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  if (auto unshard = dyn_cast<UnshardOp>(op)) {
    checkUnshard(unshard);
    return success();
  }
  if (auto lookup = dyn_cast<UnshardRowsOp>(op)) {
    auto unit = SymbolTable::lookupNearestSymbolFrom<UnitOp>(op, lookup.getUnitAttr());
    addParameter(unit, unit.getParam(0), lookup.getRows());
    return success();
  }
  if (first && isa<ReduceCotangentOp, func::ReturnOp>(op))
    return fail(op) << "expected whole operands, found operand " << *first
                    << " that is split over axis 'tensor'";
  if (isa<ReduceCotangentOp>(op))
    entered.insert(op->getResult(0));
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
static bool isConsistent(func::FuncOp func, bool splitsUnits) {
  ScopedDiagnosticHandler quiet(func.getContext(), [](Diagnostic &) { return success(); });
  return succeeded(PartitionChecker(splitsUnits).check(func));
}

LogicalResult fsdp::verifyPartition(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>()) {
    auto program = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
    if (!program || program.getValue() != "step" || !func.getBody().hasOneBlock())
      continue;
    if (!isConsistent(func, /*splitsUnits=*/true) &&
        failed(PartitionChecker(/*splitsUnits=*/false).check(func)))
      return failure();
  }
  return success();
}
