//===- GuardAccesses.cpp - Checks of indices and divisors -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   memref.load %table[%at]     becomes     %ok = cmpi ult, %at, %c11
//                                           scf.if !%ok { fault = (number of the guard, %at) }
//                                           %safe = select %ok, %at, %c0
//                                           memref.load %table[%safe]
//
// No guard is needed for a loop index or a constant that is always in range. Divisors are guarded
// in the same way. A divisor of 0 is replaced by 1. If the dividend is the least integer, a divisor
// of -1 is also replaced by 1. After the call, the caller reads the fault (Engine.cpp).
//
//===----------------------------------------------------------------------===//

#include "GuardAccesses.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gradcheck;

namespace {
class Guards {
public:
  Guards(func::FuncOp func, std::vector<Guard> &guards)
      : func(func), fault(func.getArguments().back()), guards(guards), b(func.getContext()) {}
  LogicalResult guardIndex(OpOperand &index, int64_t bound);
  LogicalResult guardSlice(memref::SubViewOp op);
  void guardDivisor(Operation *op);

private:
  Value replaceUnless(Value ok, Value value, int64_t substitute, Guard guard, Value reported);

  func::FuncOp func;
  Value fault;
  std::vector<Guard> &guards;
  OpBuilder b;
};
} // namespace

/// Returns \p value if \p ok is true at run time, and \p substitute otherwise. If \p ok is false,
/// stores the number of the guard and \p reported as the fault.
Value Guards::replaceUnless(Value ok, Value value, int64_t substitute, Guard guard,
                            Value reported) {
  guards.push_back(guard);
  Value yes = arith::ConstantOp::create(b, guard.loc, b.getBoolAttr(true));
  Value bad = arith::XOrIOp::create(b, guard.loc, ok, yes);
  scf::IfOp::create(b, guard.loc, bad, [&](OpBuilder &inner, Location loc) {
    auto index = [&](int64_t i) -> Value { return arith::ConstantIndexOp::create(inner, loc, i); };
    Value number = arith::ConstantOp::create(inner, loc, inner.getI64IntegerAttr(guards.size()));
    memref::StoreOp::create(inner, loc, number, fault, index(0));
    memref::StoreOp::create(inner, loc, reported, fault, index(1));
    scf::YieldOp::create(inner, loc);
  });
  Value other =
      arith::ConstantOp::create(b, guard.loc, b.getIntegerAttr(value.getType(), substitute));
  return arith::SelectOp::create(b, guard.loc, ok, value, other);
}

LogicalResult Guards::guardIndex(OpOperand &index, int64_t bound) {
  Operation *op = index.getOwner(), *definition = index.get().getDefiningOp();
  std::optional<int64_t> fixed = getConstantIntValue(index.get());
  bool isLoop =
      definition
          ? isa<linalg::IndexOp>(definition)
          : isa<LoopLikeOpInterface>(cast<BlockArgument>(index.get()).getOwner()->getParentOp());
  if (isLoop || (fixed && *fixed >= 0 && *fixed < bound))
    return success();
  if (bound <= 0)
    return op->emitError(
        "expected a dimension with at least one element for this lookup, found none");
  b.setInsertionPoint(op);
  Location loc = op->getLoc();
  Value end = arith::ConstantIndexOp::create(b, loc, bound);
  Value ok = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index.get(), end);
  Value reported = arith::IndexCastOp::create(b, loc, b.getI64Type(), index.get());
  index.set(replaceUnless(ok, index.get(), 0, {loc, false, bound}, reported));
  return success();
}

LogicalResult Guards::guardSlice(memref::SubViewOp op) {
  for (auto [i, offset, size, stride] :
       llvm::enumerate(op.getStaticOffsets(), op.getStaticSizes(), op.getStaticStrides())) {
    if (!ShapedType::isDynamic(offset))
      continue;
    if (ShapedType::isDynamic(size) || ShapedType::isDynamic(stride) ||
        op.getSourceType().isDynamicDim(i))
      return op->emitError("expected a slice of static size and stride");
    int64_t bound = op.getSourceType().getDimSize(i) - std::max<int64_t>(size - 1, 0) * stride;
    if (failed(guardIndex(op->getOpOperand(op.getIndexOfDynamicOffset(i)), bound)))
      return failure();
  }
  return success();
}

void Guards::guardDivisor(Operation *op) {
  OpOperand &divisor = op->getOpOperand(1);
  auto type = divisor.get().getType();
  if (std::optional<int64_t> fixed = getConstantIntValue(divisor.get());
      fixed && *fixed != 0 && *fixed != -1)
    return;
  b.setInsertionPoint(op);
  Location loc = op->getLoc();
  auto constant = [&](IntegerAttr value) -> Value {
    return arith::ConstantOp::create(b, loc, value);
  };
  auto differ = [&](Value l, Value r) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, l, r);
  };
  Value ok = differ(divisor.get(), constant(b.getIntegerAttr(type, 0)));
  if (!isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op)) {
    unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    Value least = constant(b.getIntegerAttr(type, APInt::getSignedMinValue(width)));
    Value fits =
        arith::OrIOp::create(b, loc, differ(divisor.get(), constant(b.getIntegerAttr(type, -1))),
                             differ(op->getOperand(0), least));
    ok = arith::AndIOp::create(b, loc, ok, fits);
  }
  Value none = constant(b.getI64IntegerAttr(0));
  divisor.set(replaceUnless(ok, divisor.get(), 1, {loc, true, 0}, none));
}

LogicalResult gradcheck::guardAccesses(func::FuncOp func, std::vector<Guard> &guards) {
  SmallVector<Operation *> ops;
  func.walk([&](Operation *op) { ops.push_back(op); });
  Guards maker(func, guards);
  auto guardAll = [&](OperandRange indices, Operation *op, MemRefType type) -> LogicalResult {
    unsigned first = indices.empty() ? 0 : indices.getBeginOperandIndex();
    for (unsigned i = 0; i < indices.size(); ++i)
      if (!type.isDynamicDim(i) &&
          failed(maker.guardIndex(op->getOpOperand(first + i), type.getDimSize(i))))
        return failure();
    return success();
  };
  for (Operation *op : ops) {
    LogicalResult done = success();
    if (auto load = dyn_cast<memref::LoadOp>(op))
      done = guardAll(load.getIndices(), op, load.getMemRefType());
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      done = guardAll(store.getIndices(), op, store.getMemRefType());
    else if (auto slice = dyn_cast<memref::SubViewOp>(op))
      done = maker.guardSlice(slice);
    else if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::CeilDivSIOp,
                 arith::CeilDivUIOp, arith::FloorDivSIOp>(op) &&
             op->getResult(0).getType().isIntOrIndex())
      maker.guardDivisor(op);
    if (failed(done))
      return failure();
  }
  return success();
}

void gradcheck::report(const Guard &guard, int64_t value) {
  if (guard.isDivision) {
    emitError(guard.loc, "this division of integers has a divisor of 0, or its quotient overflows")
            .attachNote()
        << "give the argument a fsdp.limit or gradcheck.limit, or choose a divisor that is never 0";
    return;
  }
  InFlightDiagnostic diag = emitError(guard.loc, "this lookup has index ")
                            << value << ", expected one in [0, " << guard.bound
                            << "), the elements of its dimension";
  diag.attachNote() << "give the ids a fsdp.limit or gradcheck.limit, or clamp the index";
}
