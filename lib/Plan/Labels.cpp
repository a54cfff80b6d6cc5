//===- Labels.cpp - Labels and categories of values -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Determines the category and the label of a value from the parameters and states that its kernel
// reads, and from the gradients that the kernel writes.
//
//===----------------------------------------------------------------------===//

#include "FunctionPlan.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool haveOneShape(Value a, Value b) {
  return cast<RankedTensorType>(a.getType()).getShape() ==
         cast<RankedTensorType>(b.getType()).getShape();
}

/// Finds the reduced gradients, and the values of the same shape that are computed from a reduced
/// gradient, such as sums over micro-batches and clipped gradients. Also follows the values that
/// loops carry.
void FunctionPlan::findGradients() {
  SmallVector<Value> work;
  auto add = [&](Value value) {
    if (gradients.insert(value).second)
      work.push_back(value);
  };
  function.walk([&](ReduceScatterOp op) { add(op.getShard()); });
  // Some kernels sum gradients of rows from all ranks. Their sums are reduced gradients, too.
  function.walk([&](KernelCallOp call) {
    auto name = call->getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::unitAttr);
    auto unit = name ? tables.lookupNearestSymbolFrom<UnitOp>(call, name) : UnitOp();
    for (Value result : unit ? ValueRange(call.getResults()) : ValueRange())
      if (cast<RankedTensorType>(result.getType()).getNumElements() == int64_t(unit.getShardSize()))
        add(result);
  });
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      if (isa<scf::YieldOp>(use.getOwner())) {
        auto loop = cast<scf::ForOp>(use.getOwner()->getParentOp());
        unsigned index = use.getOperandNumber();
        add(loop.getResult(index));
        add(loop.getRegionIterArg(index));
        add(loop.getInitArgs()[index]);
      } else if (isa<KernelCallOp, AllReduceOp, FlatReduceScatterOp>(use.getOwner())) {
        for (Value result : use.getOwner()->getResults())
          if (haveOneShape(result, value) || isa<FlatReduceScatterOp>(use.getOwner()))
            add(result);
      }
    }
  }
}

/// Returns true if `value` has a single element, such as a loss or a norm. The category of such
/// values is `control`.
static bool isScalar(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements() == 1;
}

Category FunctionPlan::classify(Value result, KernelCallOp call) {
  if (gradients.contains(result))
    return Category::gradients;
  if (isScalar(result))
    return Category::control;
  // Sums of rows have the category staging, because they are sent to the rank that owns the rows.
  bool isStaging =
      call->hasAttr(FSDPDialect::rowsAttr) ||
      llvm::any_of(result.getUsers(), [](Operation *user) { return isa<UnshardOp>(user); });
  return isStaging ? Category::staging : Category::activations;
}

std::string FunctionPlan::describe(Value value) {
  value = aliasing.getBase(value);
  if (auto name = slotNames.find(value); name != slotNames.end())
    return name->second;
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getOwner()->getParentOp() == function)
    return getPlace(argument).buffer.getLabel().str();
  if (auto reduce = value.getDefiningOp<ReduceScatterOp>())
    return "gradient shard of " + reduce.getUnit().str();
  return "";
}

/// Returns the name of the parameter if `value` is a parameter, else an empty string.
static std::string describeParameter(Value value, Aliasing &aliasing,
                                     SymbolTableCollection &tables) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto unshard = dyn_cast<UnshardOp>(op)) {
      auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, unshard.getUnitAttr());
      return unit.getParam(cast<OpResult>(value).getResultNumber()).getName().str();
    }
    Value source = aliasing.getViewSource(op);
    if (!source)
      break;
    value = source;
  }
  return "";
}

std::string FunctionPlan::describe(KernelCallOp call) {
  auto kernel = tables.lookupNearestSymbolFrom<func::FuncOp>(call, call.getKernelAttr());
  auto kind = kernel->getAttrOfType<StringAttr>(kindAttr);
  std::string text = kind ? kind.getValue().str() : "kernel";
  SmallVector<std::string> reads, writes;
  for (Value input : call.getInputs()) {
    std::string name = describeParameter(input, aliasing, tables);
    if (name.empty())
      name = describe(input);
    if (!name.empty() && !llvm::is_contained(reads, name))
      reads.push_back(name);
  }
  for (Value result : call.getResults())
    if (std::string name = describe(result); !name.empty())
      writes.push_back(name);
  if (!reads.empty())
    text += " " + llvm::join(reads, ", ");
  if (!writes.empty())
    text += " -> " + llvm::join(writes, ", ");
  return text;
}
