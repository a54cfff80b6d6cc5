//===- KernelSteps.cpp - The values of a kernel that are computed and kept --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %s = generic %x {sum over d1}         step 1   row reduction
//   %c = generic %x, %s {x - s / n}                 no step: evaluated at both uses
//   %q = generic %c {sum of squares}      step 2   row reduction
//   %y = generic %c, %q {c rsqrt(q)}      step 3   map, a result
//
// A value becomes a step if it is a result of the kernel, a reduction or a scatter. A costly value
// also becomes a step if more than one step reads it. Steps are in the order of their ops.
//
//===----------------------------------------------------------------------===//

#include "KernelSteps.h"
#include "Lowering.h"
#include "fsdp/IR/FSDP.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the name of the op that combines partial results of `op`. Returns an empty name if the
/// order of combination must not change.
static StringRef getCombination(Operation *op) {
  return TypeSwitch<Operation *, StringRef>(op)
      .Case<arith::AddFOp, arith::SubFOp, math::FmaOp>([](auto) { return "arith.addf"; })
      .Case<arith::AddIOp, arith::SubIOp>([](auto) { return "arith.addi"; })
      .Case<arith::MulFOp, arith::MulIOp, arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
            arith::MinNumFOp, arith::OrIOp, arith::XOrIOp, arith::AndIOp, arith::MaxUIOp,
            arith::MinUIOp, arith::MaxSIOp, arith::MinSIOp>(
          [](Operation *same) { return same->getName().getStringRef(); })
      .Default([](Operation *) { return StringRef(); });
}

Value fsdp::combine(OpBuilder &b, Location loc, Operation *combiner, Value a, Value c) {
  OperationState state(loc, getCombination(combiner), {a, c}, a.getType());
  return b.create(state)->getResult(0);
}

TypedAttr fsdp::getIdentity(Operation *combiner, Type element) {
  Builder b(element.getContext());
  auto infinity = [&](bool negative) -> TypedAttr {
    return b.getFloatAttr(element,
                          APFloat::getInf(cast<FloatType>(element).getFloatSemantics(), negative));
  };
  auto integer = [&](auto pick) -> TypedAttr {
    unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
    return b.getIntegerAttr(element, pick(width));
  };
  return TypeSwitch<Operation *, TypedAttr>(combiner)
      .Case<arith::AddFOp, arith::SubFOp, math::FmaOp, arith::AddIOp, arith::SubIOp, arith::OrIOp,
            arith::XOrIOp, arith::MaxUIOp>([&](auto) { return b.getZeroAttr(element); })
      .Case<arith::MulFOp, arith::MulIOp>([&](auto) { return b.getOneAttr(element); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) { return infinity(true); })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) { return infinity(false); })
      .Case<arith::AndIOp, arith::MinUIOp>([&](auto) { return integer(APInt::getAllOnes); })
      .Case<arith::MaxSIOp>([&](auto) { return integer(APInt::getSignedMinValue); })
      .Case<arith::MinSIOp>([&](auto) { return integer(APInt::getSignedMaxValue); })
      .Default([](Operation *) { return TypedAttr(); });
}

/// Returns true if `value` depends on an output argument of the body.
static bool dependsOnOutput(linalg::GenericOp op, Value value,
                            llvm::SmallPtrSetImpl<void *> &seen) {
  if (!seen.insert(value.getAsOpaquePointer()).second)
    return false;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == op.getBody() && argument.getArgNumber() >= op.getNumDpsInputs();
  Operation *definition = value.getDefiningOp();
  return definition->getBlock() == op.getBody() &&
         llvm::any_of(definition->getOperands(),
                      [&](Value operand) { return dependsOnOutput(op, operand, seen); });
}

bool fsdp::dependsOnOutput(linalg::GenericOp op, Value value) {
  llvm::SmallPtrSet<void *, 8> seen;
  return ::dependsOnOutput(op, value, seen);
}

/// Returns true if `value` combines the result so far (`state`) with values that do not depend on
/// an output argument of the body. All ops of the combination must have the same getCombination().
/// A select, as in a masked sum, is also permitted. `combiner` must be null at first. The function
/// sets it to one of the combining ops.
static bool matchCombined(linalg::GenericOp op, Value value, BlockArgument state,
                          Operation *&combiner) {
  if (value == state)
    return true;
  Operation *definition = value.getDefiningOp();
  if (!definition || definition->getBlock() != op.getBody())
    return false;
  if (auto select = dyn_cast<arith::SelectOp>(definition))
    return !dependsOnOutput(op, select.getCondition()) &&
           matchCombined(op, select.getTrueValue(), state, combiner) &&
           matchCombined(op, select.getFalseValue(), state, combiner);
  StringRef name = getCombination(definition);
  if (name.empty() || (combiner && getCombination(combiner) != name))
    return false;
  combiner = definition;
  // Exactly one operand may depend on the result so far. In a subtraction this operand must be the
  // minuend, and in an fma the addend.
  SmallVector<unsigned> carriers;
  for (auto [i, operand] : llvm::enumerate(definition->getOperands()))
    if (dependsOnOutput(op, operand))
      carriers.push_back(i);
  if (carriers.size() != 1 || (isa<arith::SubFOp, arith::SubIOp>(definition) && carriers[0] != 0) ||
      (isa<math::FmaOp>(definition) && carriers[0] != 2))
    return false;
  return matchCombined(op, definition->getOperand(carriers[0]), state, combiner);
}

static bool matchCombiner(Step &step) {
  Value yielded = step.op.getBody()->getTerminator()->getOperand(step.result);
  BlockArgument state = step.op.getRegionOutputArgs()[step.result];
  return matchCombined(step.op, yielded, state, step.combiner) && step.combiner &&
         getIdentity(step.combiner, state.getType());
}

/// Returns RowReduction if the innermost dimension of the input with the most dimensions is a
/// reduced loop, otherwise ColumnReduction.
static StepKind classify(linalg::GenericOp op) {
  AffineMap widest;
  for (OpOperand *input : op.getDpsInputOperands())
    if (AffineMap map = op.getMatchingIndexingMap(input);
        !widest || map.getNumResults() > widest.getNumResults())
      widest = map;
  SmallVector<utils::IteratorType> loops = op.getIteratorTypesArray();
  unsigned rank = op.getNumParallelLoops();
  if (rank == 0 || !widest || widest.getNumResults() == 0)
    return StepKind::RowReduction;
  auto last = dyn_cast<AffineDimExpr>(widest.getResults().back());
  return !last || loops[last.getPosition()] == utils::IteratorType::reduction
             ? StepKind::RowReduction
             : StepKind::ColumnReduction;
}

SmallVector<int64_t> fsdp::getReducedShape(const Step &step) {
  SmallVector<int64_t> shape;
  linalg::GenericOp op = step.op;
  for (auto [size, kind] : llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      shape.push_back(size);
  return shape;
}

/// Extends `reads` by the values from which `value` is computed. If one of these values is another
/// step, the values from which the other step is computed are not added.
static void collectReads(Value value, llvm::SmallPtrSetImpl<Operation *> &steps,
                         llvm::SetVector<Value> &reads) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  auto visit = [&](Value operand) {
    if (operand.getParentBlock() == op->getBlock() && reads.insert(operand) &&
        operand.getDefiningOp() && !steps.contains(operand.getDefiningOp()))
      collectReads(operand, steps, reads);
  };
  for (Value operand : op->getOperands())
    visit(operand);
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (inner != op)
        visit(operand);
  });
}

static llvm::SetVector<Value> collectReads(const Step &step, ArrayRef<Step> steps) {
  llvm::SmallPtrSet<Operation *, 8> operations;
  for (const Step &other : steps)
    if (Operation *op = other.value.getDefiningOp())
      operations.insert(op);
  llvm::SetVector<Value> reads;
  collectReads(step.value, operations, reads);
  return reads;
}

bool fsdp::readsValue(const Step &step, Value value, ArrayRef<Step> steps) {
  return collectReads(step, steps).contains(value);
}

/// Returns true if the body of `op` calls an elementary function such as exp. Divisions and square
/// roots are not costly in this sense, because they take less time than a memory access.
static bool isCostly(linalg::GenericOp op) {
  return llvm::any_of(op.getBody()->without_terminator(), [](Operation &inner) {
    return isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::TanhOp, math::ErfOp, math::LogOp,
               math::Log1pOp, math::PowFOp, math::SinOp, math::CosOp>(inner);
  });
}

static bool isBefore(BlockArgument a, BlockArgument b) {
  return a.getArgNumber() < b.getArgNumber();
}

/// Adds a step for each costly value that several steps read.
static void addSharedSteps(func::FuncOp kernel, SmallVector<Step> &steps) {
  if (llvm::none_of(steps, [](const Step &step) { return step.kind == StepKind::RowReduction; }))
    return;
  for (auto op : kernel.getOps<linalg::GenericOp>()) {
    if (op.getNumParallelLoops() != op.getNumLoops() || !isCostly(op))
      continue;
    for (OpResult result : op->getResults()) {
      if (llvm::any_of(steps, [&](const Step &step) { return step.value == result; }))
        continue;
      int64_t readers =
          llvm::count_if(steps, [&](const Step &step) { return readsValue(step, result, steps); });
      if (readers > 1)
        steps.emplace_back(result);
    }
  }
  // The sort is deterministic, because no two steps have the same op and result.
  llvm::sort(steps, [](const Step &a, const Step &b) {
    Operation *first = a.value.getDefiningOp(), *second = b.value.getDefiningOp();
    if (!first || !second)
      return first || second ? !first
                             : isBefore(cast<BlockArgument>(a.value), cast<BlockArgument>(b.value));
    if (first == second)
      return cast<OpResult>(a.value).getResultNumber() < cast<OpResult>(b.value).getResultNumber();
    return first->isBeforeInBlock(second);
  });
}

std::optional<SmallVector<Step>> fsdp::collectSteps(func::FuncOp kernel) {
  SmallVector<Step> steps;
  auto ret = cast<func::ReturnOp>(kernel.front().getTerminator());
  auto add = [&](Value value) -> Step * {
    for (Step &step : steps)
      if (step.value == value)
        return &step;
    return &steps.emplace_back(value);
  };
  for (OpOperand &operand : ret->getOpOperands()) {
    if (isa<BlockArgument>(operand.get()))
      add(operand.get());
  }
  for (Operation &op : kernel.front()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && generic.getNumReductionLoops()) {
      for (OpResult result : generic->getResults()) {
        if (result.use_empty())
          continue;
        Step *step = add(result);
        step->kind = classify(generic);
        step->op = generic;
        step->result = result.getResultNumber();
        if (!generic.getIndexingMapMatchingResult(result).isProjectedPermutation() ||
            !matchCombiner(*step))
          return std::nullopt;
      }
      continue;
    }
    if (isa<ScatterAddRowsOp>(op) && !op.use_empty()) {
      add(op.getResult(0))->kind = StepKind::Scatter;
      continue;
    }
    for (Value result : op.getResults())
      if (llvm::is_contained(ret.getOperands(), result))
        add(result);
  }
  for (OpOperand &operand : ret->getOpOperands()) {
    BlockArgument destination = getDestination(kernel, operand.getOperandNumber());
    if (operand.get() != destination)
      add(operand.get())->destinations.push_back(destination);
  }
  llvm::erase_if(steps, [](const Step &step) {
    return isa<BlockArgument>(step.value) && step.destinations.empty();
  });
  addSharedSteps(kernel, steps);
  return steps;
}
