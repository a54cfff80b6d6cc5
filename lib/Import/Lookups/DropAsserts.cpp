//===- DropAsserts.cpp - Check ids before the step, not in it ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime checks ids once, when it reads a batch. So what a lookup requires
// becomes a property of the argument, and checks, wraps and clamps around the
// lookup vanish.
//
//   func @f(%ids: tensor<4xi64>)                 func @f(%ids: .. {fsdp.limit = 97})
//     generic ins(%ids) {                  ->      generic ins(%ids) {
//       cf.assert %id < 97                           tensor.extract %table[%id, ..] }
//       %p = select(%id < 0, %id + 97, %id)
//       tensor.extract %table[%p, ..] }
//
//  1. For every tensor.extract whose index depends on one integer argument: the
//     largest limit L for which ids in [0, L) keep the index inside the table.
//     The argument's `fsdp.limit` is the least of them and of what it had. An index that
//     is in range for all ids, and is not the id itself, lowers no limit.
//  2. Values outside of the limit that the model handles itself, `ignore_index = -100`,
//     become `fsdp.extra_ids` (ExtraIds.cpp).
//  3. Fold comparisons, minima and maxima that the limits decide, and the extra ids
//     alike. Comparisons for equality with a value that is no id stay.
//     A lookup that no limit keeps in its tensor reads clamped indices, which are checked
//     in each step (CheckLookups.cpp).
//  4. Drop every cf.assert; a remark names those that no limit covers.
//
//===----------------------------------------------------------------------===//

#include "Interface/Positions.h"
#include "Lookups/CheckLookups.h"
#include "Lookups/ExtraIds.h"
#include "Lookups/IdRanges.h"
#include "Structure/CaptureOperands.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/IR/Matchers.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_DROPASSERTSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct DropAssertsPass : public fsdp::impl::DropAssertsPassBase<DropAssertsPass> {
  using DropAssertsPassBase::DropAssertsPassBase;
  void runOnOperation() override;

private:
  bool inferLimit(tensor::ExtractOp extract, unsigned dim);
  bool lowerLimits(tensor::ExtractOp extract, unsigned dim, ArrayRef<BlockArgument> arguments);
  bool isProven(tensor::ExtractOp extract, unsigned dim);
  LogicalResult check(tensor::ExtractOp extract, unsigned dim);
  Value addAsserts(tensor::ExtractOp extract, Value index, int64_t extent, OpBuilder &b);
  void foldDecided();
  void dropAsserts();

  IdRanges ranges;
  ExtraIds extra;
  llvm::SmallPtrSet<Operation *, 4> covered; ///< asserts that a check of a lookup repeats
};
} // namespace

/// Behind casts between integer types.
static Value withoutCasts(Value value) {
  while (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// The values of a body that an index is computed from, and itself.
static llvm::SmallPtrSet<void *, 16> collectSlice(Value index, Block *body) {
  llvm::SmallPtrSet<void *, 16> slice;
  SmallVector<Value> work{index};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!slice.insert(value.getAsOpaquePointer()).second)
      continue;
    if (Operation *op = value.getDefiningOp(); op && op->getBlock() == body)
      work.append(op->operand_begin(), op->operand_end());
  }
  return slice;
}

/// An assert in front of a lookup that compares what its index is computed from with something.
struct IndexAssert {
  cf::AssertOp op;
  Value tested; ///< what the index is computed from
};

static SmallVector<IndexAssert> findAsserts(tensor::ExtractOp extract, Value index) {
  SmallVector<IndexAssert> found;
  auto asserts = extract->getBlock()->getOps<cf::AssertOp>();
  if (asserts.empty())
    return found;
  llvm::SmallPtrSet<void *, 16> slice = collectSlice(index, extract->getBlock());
  for (cf::AssertOp op : asserts) {
    auto cmp = op.getArg().getDefiningOp<arith::CmpIOp>();
    if (!cmp || !op->isBeforeInBlock(extract) || cmp.getLhs().getType().isInteger(1))
      continue;
    for (Value tested : cmp->getOperands())
      if (!matchPattern(tested, m_Constant()) &&
          slice.contains(withoutCasts(tested).getAsOpaquePointer())) {
        found.push_back({op, tested});
        break;
      }
  }
  return found;
}

/// Returns true if index `dim` of a lookup is in range, and the asserts before it about the same
/// ids hold.
bool DropAssertsPass::isProven(tensor::ExtractOp extract, unsigned dim) {
  Value index = extract.getIndices()[dim];
  int64_t extent = cast<RankedTensorType>(extract.getTensor().getType()).getDimSize(dim);
  return ranges.get(index).within(0, extent - 1) &&
         llvm::all_of(findAsserts(extract, index), [&](IndexAssert check) {
           return ranges.get(check.op.getArg()).within(1, 1);
         });
}

/// Looks for limits of the arguments that keep an index in range, and sets those that are lower
/// than before.
bool DropAssertsPass::lowerLimits(tensor::ExtractOp extract, unsigned dim,
                                  ArrayRef<BlockArgument> arguments) {
  Value index = extract.getIndices()[dim];
  int64_t extent = cast<RankedTensorType>(extract.getTensor().getType()).getDimSize(dim);
  bool always = isProven(extract, dim);
  func::FuncOp func = getOperation();
  auto givenLimit = [&](BlockArgument arg) {
    return func.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), FSDPDialect::limitAttr);
  };
  SmallVector<int64_t> limits;
  for (BlockArgument arg : arguments) {
    if (func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr))
      return always;
    IntegerAttr given = givenLimit(arg);
    limits.push_back(given ? std::min(given.getInt(), extent) : extent);
    ranges.assume(arg, limits.back());
  }
  IntegerRange range = ranges.get(index);
  if (arguments.size() == 1 && range.lo >= 0 && range.hi >= extent &&
      range.hi - (extent - 1) < limits[0]) {
    limits[0] -= range.hi - (extent - 1); // positions with an offset, `id + 2`
    ranges.assume(arguments[0], limits[0]);
    range = ranges.get(index);
  }
  bool proven = isProven(extract, dim),
       lowers = proven && (!always || ranges.followsArgument(index));
  for (auto [arg, limit] : llvm::zip_equal(arguments, limits)) {
    ranges.forget(arg);
    if (IntegerAttr given = givenLimit(arg); lowers && (!given || limit < given.getInt()))
      func.setArgAttr(arg.getArgNumber(), FSDPDialect::limitAttr,
                      Builder(&getContext()).getI64IntegerAttr(limit));
  }
  return proven || always;
}

/// An index that is out of range where an assert of the body about the same ids fails, too.
/// torch-mlir wraps negative ids into the table, and asserts that there are none.
///   assert(%id >= 0), %at = select(%id < 0, %id + V, %id)   ->   select(%id >= 0, %at, %id)
Value DropAssertsPass::addAsserts(tensor::ExtractOp extract, Value index, int64_t extent,
                                  OpBuilder &b) {
  Location loc = extract.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  };
  auto widen = [&](Value value) -> Value {
    if (value.getType().isIndex())
      return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    return value.getType().isInteger(64)
               ? value
               : arith::ExtSIOp::create(b, loc, b.getI64Type(), value).getResult();
  };
  Value guarded;
  for (auto [check, tested] : findAsserts(extract, index)) {
    if (ranges.get(check.getArg()).within(1, 1))
      continue;
    // An id in range that the assert refuses all the same has no number to report: the lowest
    // stands for it.
    Value id = widen(tested);
    Value isIn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, id, constant(extent));
    Value bad =
        arith::SelectOp::create(b, loc, isIn, constant(std::numeric_limits<int64_t>::min()), id);
    guarded =
        arith::SelectOp::create(b, loc, check.getArg(), guarded ? guarded : widen(index), bad);
    covered.insert(check);
  }
  return guarded ? arith::IndexCastOp::create(b, loc, b.getIndexType(), guarded).getResult()
                 : index;
}

/// Makes the lookup read clamped indices, and checks them when it runs.
LogicalResult DropAssertsPass::check(tensor::ExtractOp extract, unsigned dim) {
  int64_t extent = cast<RankedTensorType>(extract.getTensor().getType()).getDimSize(dim);
  Value index = extract.getIndices()[dim];
  auto fail = [&]() -> InFlightDiagnostic {
    return extract.emitError("index ")
           << dim << " of this lookup may leave its dimension of " << extent;
  };
  auto generic = dyn_cast<linalg::GenericOp>(extract->getParentOp());
  IRRewriter b(&getContext());
  FailureOr<Ids> ids = failure();
  StringRef advice =
      "clamp the index with arith.maxsi and arith.minsi"; // a score function, or no body at all
  if (generic && affineIndex(index)) {
    advice = "the index is a position of the loops; correct the model";
  } else if (generic) {
    b.setInsertionPoint(extract);
    ids = findPositions(generic, addAsserts(extract, index, extent, b), b);
    advice =
        "the index depends on what the same body sums up; compute the index in an op of its own";
  }
  if (succeeded(ids) && isConstantIds(ids->tensor)) {
    ids = failure();
    advice = "the index is a constant; correct the model";
  }
  if (failed(ids)) {
    InFlightDiagnostic diag = fail();
    diag.attachNote() << "expected an index in [0, " << extent << "): " << advice;
    return diag;
  }
  b.setInsertionPoint(generic);
  Location loc = extract.getLoc();
  RowLookup lookup{extract, ids->tensor, extent, "elements of its dimension", std::nullopt};
  Value in = checkLookup(getOperation(), lookup, b);
  b.setInsertionPoint(extract);
  Value standIn = arith::ConstantOp::create(b, loc, b.getZeroAttr(getElementTypeOrSelf(in)));
  bool isIndex = standIn.getType().isIndex();
  Value cast =
      isIndex ? standIn : arith::IndexCastOp::create(b, loc, b.getIndexType(), standIn).getResult();
  extract.getIndicesMutable()[dim].set(cast);
  addInput(generic, in, ids->map, standIn, b);
  b.eraseOp(standIn.getDefiningOp());
  ++numCheckedAtRun;
  return success();
}

/// Returns true if index `dim` of a lookup is in range, with the limits of the arguments that it
/// follows from. Lowers these.
bool DropAssertsPass::inferLimit(tensor::ExtractOp extract, unsigned dim) {
  int64_t extent = cast<RankedTensorType>(extract.getTensor().getType()).getDimSize(dim);
  Value index = extract.getIndices()[dim];
  if (ShapedType::isDynamic(extent))
    return true; // a later check refuses it
  llvm::SmallPtrSet<void *, 16> seen;
  SmallVector<BlockArgument> arguments;
  IdRanges::collectIdArguments(index, seen, arguments);
  return lowerLimits(extract, dim, arguments);
}

/// `x == -100` where x are ids: asks whether a target is to be ignored.
static bool asksForNoId(arith::CmpIOp cmp) {
  APInt value;
  return llvm::is_contained({arith::CmpIPredicate::eq, arith::CmpIPredicate::ne},
                            cmp.getPredicate()) &&
         matchPattern(cmp.getRhs(), m_ConstantInt(&value)) && value.isNegative();
}

/// The value of a comparison, where it has one.
static std::optional<int64_t> decideComparison(arith::CmpIOp cmp, IdRanges &ranges) {
  IntegerRange range = ranges.get(cmp.getResult());
  return range.isSingle() ? std::optional<int64_t>(range.lo) : std::nullopt;
}

/// Which operand a minimum or maximum is, where that is known.
static std::optional<int64_t> decideExtremum(Operation *op, IdRanges &ranges) {
  IntegerRange lhs = ranges.get(op->getOperand(0)), rhs = ranges.get(op->getOperand(1));
  bool isMax = isa<arith::MaxSIOp>(op);
  if (isMax ? lhs.lo >= rhs.hi : lhs.hi <= rhs.lo)
    return 0;
  if (isMax ? rhs.lo >= lhs.hi : rhs.hi <= lhs.lo)
    return 1;
  return std::nullopt;
}

void DropAssertsPass::foldDecided() {
  IdRanges &limits = extra.getLimits();
  getOperation().walk([&](Operation *op) {
    OpBuilder b(op);
    if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
      if (!cmp.getType().isInteger(1) || asksForNoId(cmp) ||
          !extra.agree(op, [&](IdRanges &ranges) { return decideComparison(cmp, ranges); }))
        return;
      bool value = limits.get(cmp.getResult()).lo;
      cmp.getResult().replaceAllUsesWith(
          arith::ConstantOp::create(b, op->getLoc(), b.getBoolAttr(value)));
      ++numFolded;
    } else if (isa<arith::MaxSIOp, arith::MinSIOp>(op) &&
               extra.agree(op, [&](IdRanges &ranges) { return decideExtremum(op, ranges); })) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(*decideExtremum(op, limits)));
      ++numFolded;
    }
  });
}

void DropAssertsPass::dropAsserts() {
  SmallVector<cf::AssertOp> asserts;
  getOperation().walk([&](cf::AssertOp op) { asserts.push_back(op); });
  for (cf::AssertOp op : asserts) {
    if (!matchPattern(op.getArg(), m_One()) && !covered.contains(op))
      op.emitRemark("dropped the check '") << op.getMsg() << "'; nothing in the step repeats it";
    op.erase();
    ++numAsserts;
  }
}

void DropAssertsPass::runOnOperation() {
  SmallVector<tensor::ExtractOp> extracts;
  getOperation().walk([&](tensor::ExtractOp op) {
    if (isa<RankedTensorType>(op.getTensor().getType()))
      extracts.push_back(op);
  });
  // A limit that one lookup lowers may keep another one in range.
  for (tensor::ExtractOp extract : extracts)
    for (unsigned dim = 0, e = extract.getIndices().size(); dim < e; ++dim)
      inferLimit(extract, dim);
  for (tensor::ExtractOp extract : extracts)
    for (unsigned dim = 0, e = extract.getIndices().size(); dim < e; ++dim)
      if (!inferLimit(extract, dim) && failed(check(extract, dim)))
        return signalPassFailure();
  if (failed(extra.run(getOperation())))
    return signalPassFailure();
  numExtraIds += extra.count();
  foldDecided();
  dropAsserts();
}
