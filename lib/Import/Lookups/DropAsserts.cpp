//===- DropAsserts.cpp - Replace asserts on ids by limits -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime checks ids once, when it reads a batch. The pass therefore stores the range of valid
// ids in an attribute of the argument. It also folds the asserts, selects and clamps around the
// lookup.
//
//   func @f(%ids: tensor<4xi64>)                 func @f(%ids: .. {fsdp.limit = 97})
//     generic ins(%ids) {                  ->      generic ins(%ids) {
//       cf.assert %id < 97                           tensor.extract %table[%id, ..] }
//       %p = select(%id < 0, %id + 97, %id)
//       tensor.extract %table[%p, ..] }
//
//  1. For every tensor.extract whose index depends on integer arguments, find the greatest limit L
//     for which ids in [0, L) give a valid index. The argument's `fsdp.limit` becomes the minimum
//     of the old value and all these limits L. A lookup whose index is valid for all ids lowers a
//     limit only if it computes the index from an id by adding and multiplying constants.
//  2. If the index of a lookup is not valid for any limit, clamp it and check it in each step
//     (CheckLookups.cpp).
//  3. Values outside the limit that the model handles, such as `ignore_index = -100`, become
//     `fsdp.extra_ids` (ExtraIds.cpp).
//  4. Fold comparisons, minima and maxima that have the same result for all ids in the limits and
//     for the extra ids. Keep comparisons for equality with a negative constant.
//  5. Drop every cf.assert. A remark names the asserts that neither a limit nor a check covers.
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
  /// Asserts whose conditions are part of a check at run time.
  llvm::SmallPtrSet<Operation *, 4> covered;
};
} // namespace

/// Follows a value back through casts between integer types.
static Value withoutCasts(Value value) {
  while (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Returns `index` and those values of `body` from which `index` is computed.
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

/// An assert that precedes a lookup. The assert compares a value from which the lookup computes its
/// index.
struct IndexAssert {
  cf::AssertOp op;
  Value tested; ///< value that the assert compares
};

/// Returns the asserts before `extract` on values from which the body computes `index`.
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

/// Returns whether index `dim` of a lookup is in range and all asserts on its ids hold.
bool DropAssertsPass::isProven(tensor::ExtractOp extract, unsigned dim) {
  Value index = extract.getIndices()[dim];
  int64_t extent = cast<RankedTensorType>(extract.getTensor().getType()).getDimSize(dim);
  return ranges.get(index).within(0, extent - 1) &&
         llvm::all_of(findAsserts(extract, index), [&](IndexAssert check) {
           return ranges.get(check.op.getArg()).within(1, 1);
         });
}

/// Finds limits of the arguments so that an index is in range. Sets each limit that is lower than
/// the present limit of its argument. Returns whether the index is in range with the new limits.
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
    // For an index such as `id + 2`, lower the limit by the offset 2.
    limits[0] -= range.hi - (extent - 1);
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

/// Builds an index that is out of range if `index` is out of range or an assert on its ids fails.
/// The exporter torch-mlir adds the number of rows to negative ids, and also asserts that no id is
/// negative:
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
    // If an id in range fails the assert, report the least i64 instead of the id.
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

/// Makes the lookup read clamped indices and adds a check at run time.
LogicalResult DropAssertsPass::check(tensor::ExtractOp extract, unsigned dim) {
  int64_t extent = cast<RankedTensorType>(extract.getTensor().getType()).getDimSize(dim);
  Value index = extract.getIndices()[dim];
  auto fail = [&]() -> InFlightDiagnostic {
    return extract.emitError("index ")
           << dim << " of this lookup may be outside its dimension of " << extent;
  };
  auto generic = dyn_cast<linalg::GenericOp>(extract->getParentOp());
  IRRewriter b(&getContext());
  FailureOr<Ids> ids = failure();
  // This advice is for lookups outside generics, such as in a region of attention.
  StringRef advice = "clamp the index with arith.maxsi and arith.minsi";
  if (generic && affineIndex(index)) {
    advice = "the index depends on loops alone; correct the model";
  } else if (generic) {
    b.setInsertionPoint(extract);
    ids = findPositions(generic, addAsserts(extract, index, extent, b), b);
    advice =
        "the index depends on the sum that the same body computes; compute it in a separate op";
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

/// Lowers the limits of the arguments on which index `dim` of a lookup depends. Returns whether the
/// index is in range with the new limits.
bool DropAssertsPass::inferLimit(tensor::ExtractOp extract, unsigned dim) {
  int64_t extent = cast<RankedTensorType>(extract.getTensor().getType()).getDimSize(dim);
  Value index = extract.getIndices()[dim];
  if (ShapedType::isDynamic(extent))
    return true; // VerifyImported.cpp reports dynamic extents.
  llvm::SmallPtrSet<void *, 16> seen;
  SmallVector<BlockArgument> arguments;
  IdRanges::collectIdArguments(index, seen, arguments);
  return lowerLimits(extract, dim, arguments);
}

/// Returns whether a comparison, such as `x == -100`, tests if a target is ignored.
static bool testsForIgnored(arith::CmpIOp cmp) {
  APInt value;
  return llvm::is_contained({arith::CmpIPredicate::eq, arith::CmpIPredicate::ne},
                            cmp.getPredicate()) &&
         matchPattern(cmp.getRhs(), m_ConstantInt(&value)) && value.isNegative();
}

/// Returns the result of a comparison, or nothing if the ranges do not determine the result.
static std::optional<int64_t> decideComparison(arith::CmpIOp cmp, IdRanges &ranges) {
  IntegerRange range = ranges.get(cmp.getResult());
  return range.isSingle() ? std::optional<int64_t>(range.lo) : std::nullopt;
}

/// Returns the index of the operand that a minimum or maximum equals. Returns nothing if it is not
/// known which operand this is.
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
      if (!cmp.getType().isInteger(1) || testsForIgnored(cmp) ||
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
      op.emitRemark("dropped the check '") << op.getMsg() << "'; no limit or check replaces it";
    op.erase();
    ++numAsserts;
  }
}

void DropAssertsPass::runOnOperation() {
  // Drop the ranges of the previous function. The values of that function may be freed, and new
  // values may have the same addresses.
  ranges = {};
  extra = {};
  covered.clear();
  SmallVector<tensor::ExtractOp> extracts;
  getOperation().walk([&](tensor::ExtractOp op) {
    if (isa<RankedTensorType>(op.getTensor().getType()))
      extracts.push_back(op);
  });
  // Lower all limits first, because a limit for one lookup may make another lookup valid.
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
