//===- ExtraIds.cpp - Ids outside the limit, e.g. ignore_index --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PyTorch's losses skip targets with the value `ignore_index = -100`, which is not an id. Exporters
// express the skipping in one of two forms:
//
//   %s = select(%t == -100, 0, %t)         %x = extract %logp[%i, %t]
//   %x = extract %logp[%i, %s]             %l = select(%t == -100, 0, -%x)
//
//  1. The candidates are the values in `fsdp.extra_ids`, and each constant outside the limit that
//     the model compares with elements of an argument for equality.
//  2. Assume that every element of the argument is the candidate. Accept the candidate if each
//     cf.assert holds, and if the model ignores the result of each lookup out of range. (Every use
//     of the result must end in a branch that a select does not take.) The index of a lookup, the
//     selects and the asserts must read the same element of the argument. The candidate is then
//     also safe if only some elements of the argument equal the candidate.
//  3. Convert each lookup of the second form: before it, a select replaces the candidate by 0.
//
// The time is O(candidates x lookups x size of the indices). The runtime rejects a batch with a
// value that is neither in the limit nor an extra id.
//
//===----------------------------------------------------------------------===//

#include "Lookups/ExtraIds.h"
#include "Interface/Positions.h"
#include "Structure/Points.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool dependsOnArgument(Value value, BlockArgument arg) {
  llvm::SmallPtrSet<void *, 16> seen;
  SmallVector<BlockArgument> arguments;
  IdRanges::collectIdArguments(value, seen, arguments);
  return llvm::is_contained(arguments, arg);
}

/// If the formula at `point` reads an element of a tensor that depends on `arg`, sets `element` to
/// this element. Returns false if the formula may read several elements of tensors that depend on
/// `arg`.
static bool findElement(const Point &point, BlockArgument arg, std::optional<Point> &element,
                        unsigned depth = 0) {
  Point p = settle(point);
  if (!dependsOnArgument(p.value, arg))
    return true;
  if (depth > 32)
    return false;
  if (p.isTensor()) {
    if (!element)
      element = p;
    return element->value == p.value && element->at == p.at &&
           !llvm::is_contained(p.at, AffineExpr());
  }
  Operation *op = p.value.getDefiningOp();
  if (!op || op->getNumRegions() != 0 || isa<tensor::ExtractOp>(op))
    return false;
  for (unsigned i = 0, e = op->getNumOperands(); i < e; ++i)
    if (!findElement(operandOf(p, i), arg, element, depth + 1))
      return false;
  return true;
}

/// Returns a Point for a scalar of a body. The position of the Point consists of the loops of the
/// op.
static std::optional<Point> pointOf(Value value) {
  auto generic = dyn_cast<linalg::GenericOp>(value.getParentRegion()->getParentOp());
  if (!generic)
    return std::nullopt;
  Point point{value, {}};
  for (unsigned d = 0; d < generic.getNumLoops(); ++d)
    point.at.push_back(getAffineDimExpr(d, value.getContext()));
  return point;
}

/// Returns whether every use of a scalar ends in a branch that a select does not take. The
/// condition of this select must read `element`.
static bool isDiscarded(Value value, BlockArgument arg, std::optional<Point> &element,
                        IdRanges &ranges) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *op = use.getOwner();
    if (auto select = dyn_cast<arith::SelectOp>(op); select && use.getOperandNumber() != 0) {
      IntegerRange taken = ranges.get(select.getCondition());
      std::optional<Point> condition = pointOf(select.getCondition());
      if (taken.isSingle() && (taken.lo != 0) == (use.getOperandNumber() == 2))
        return condition && findElement(*condition, arg, element);
    }
    bool scalar = isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
                  op->getNumResults() == 1;
    return scalar && isDiscarded(op->getResult(0), arg, element, ranges);
  });
}

/// Assumes that all elements of the argument have the value of `trial`. Returns whether the result
/// of the model then depends on no lookup that is out of range. Appends to `guards` the lookups
/// that need a guard.
bool ExtraIds::handles(Case &trial, SmallVectorImpl<Guard> &guards) {
  bool good = true;
  func.walk([&](Operation *op) {
    if (auto check = dyn_cast<cf::AssertOp>(op);
        check && dependsOnArgument(check.getArg(), trial.arg)) {
      std::optional<Point> element, condition = pointOf(check.getArg());
      good &= condition && findElement(*condition, trial.arg, element) &&
              trial.ranges.get(check.getArg()).within(1, 1);
    }
    auto extract = dyn_cast<tensor::ExtractOp>(op);
    for (auto [dim, index] : llvm::enumerate(extract ? extract.getIndices() : ValueRange())) {
      if (!good || !dependsOnArgument(index, trial.arg))
        continue;
      std::optional<Point> element, at = pointOf(index);
      int64_t extent = cast<RankedTensorType>(extract.getTensor().getType()).getDimSize(dim);
      good = at && findElement(*at, trial.arg, element);
      IntegerRange range = trial.ranges.get(index);
      if (!good || range.within(0, extent - 1))
        continue;
      good = range.isSingle() && isDiscarded(extract.getResult(), trial.arg, element, trial.ranges);
      guards.push_back({extract, static_cast<unsigned>(dim), range.lo});
    }
  });
  return good;
}

SmallVector<int64_t> ExtraIds::collectCandidates(BlockArgument arg, int64_t limit) {
  SmallVector<int64_t> values;
  func.walk([&](arith::CmpIOp cmp) {
    if (!llvm::is_contained({arith::CmpIPredicate::eq, arith::CmpIPredicate::ne},
                            cmp.getPredicate()))
      return;
    for (unsigned i : {0, 1}) {
      APInt value;
      if (!matchPattern(cmp->getOperand(i), m_ConstantInt(&value)) ||
          value.getSignificantBits() > 64 || !dependsOnArgument(cmp->getOperand(1 - i), arg))
        continue;
      int64_t id = value.getSExtValue();
      if ((id < 0 || id >= limit) && !llvm::is_contained(values, id))
        values.push_back(id);
    }
  });
  return values;
}

LogicalResult ExtraIds::run(func::FuncOp entry) {
  func = entry;
  Builder b(func.getContext());
  for (BlockArgument arg : func.getArguments()) {
    unsigned number = arg.getArgNumber();
    auto limit = func.getArgAttrOfType<IntegerAttr>(number, FSDPDialect::limitAttr);
    auto given = func.getArgAttrOfType<DenseI64ArrayAttr>(number, FSDPDialect::extraIdsAttr);
    func.removeArgAttr(number, FSDPDialect::extraIdsAttr);
    if (!limit)
      continue;
    ArrayRef<int64_t> listed = given ? given.asArrayRef() : ArrayRef<int64_t>();
    SmallVector<int64_t> candidates = collectCandidates(arg, limit.getInt()), found;
    for (int64_t id : listed)
      if ((id < 0 || id >= limit.getInt()) && !llvm::is_contained(candidates, id))
        candidates.push_back(id);
    for (int64_t id : candidates) {
      Case trial{arg, id, {}};
      trial.ranges.assume(arg, IntegerRange::of(id));
      SmallVector<Guard> guards;
      if (!handles(trial, guards)) {
        if (llvm::is_contained(listed, id))
          return emitError(arg.getLoc())
                 << "argument " << getPosition(arg) << " lists the extra id " << id
                 << ", which the model looks up; expected an id that the model replaces or ignores";
        continue;
      }
      for (Guard &guard : guards) {
        OpBuilder at(guard.extract);
        Location loc = guard.extract.getLoc();
        OpOperand &index = guard.extract.getIndicesMutable()[guard.dim];
        Value bad = arith::ConstantIndexOp::create(at, loc, guard.index),
              zero = arith::ConstantIndexOp::create(at, loc, 0);
        Value isBad = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, index.get(), bad);
        index.set(arith::SelectOp::create(at, loc, isBad, zero, index.get()));
      }
      found.push_back(id);
    }
    if (!found.empty()) {
      func.setArgAttr(number, FSDPDialect::extraIdsAttr, b.getDenseI64ArrayAttr(found));
      accepted[arg] = found;
    }
  }
  hulls.emplace();
  for (auto &[arg, ids] : accepted) {
    auto limit = func.getArgAttrOfType<IntegerAttr>(cast<BlockArgument>(arg).getArgNumber(),
                                                    FSDPDialect::limitAttr);
    IntegerRange hull{0, limit.getInt() - 1};
    for (int64_t id : ids) {
      hull = {std::min(hull.lo, id), std::max(hull.hi, id)};
      cases.push_back({cast<BlockArgument>(arg), id, {}});
      cases.back().ranges.assume(cases.back().arg, IntegerRange::of(id));
    }
    hulls->assume(cast<BlockArgument>(arg), hull);
  }
  return success();
}

bool ExtraIds::agree(Operation *op, llvm::function_ref<std::optional<int64_t>(IdRanges &)> decide) {
  std::optional<int64_t> decided = decide(limits);
  if (!decided)
    return false;
  for (Case &extra : cases) {
    if (!llvm::any_of(op->getOperands(), [&](Value v) { return dependsOnArgument(v, extra.arg); }))
      continue;
    // If `op` reads several elements, some may be extra ids while others are within the limits.
    std::optional<Point> element;
    bool alone = llvm::all_of(op->getOperands(), [&](Value v) {
      std::optional<Point> point = pointOf(v);
      return point ? findElement(*point, extra.arg, element) : !dependsOnArgument(v, extra.arg);
    });
    if (decide(alone ? extra.ranges : *hulls) != decided)
      return false;
  }
  return true;
}
