//===- BoundIds.cpp - Bound the ids of row lookups --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime checks the ids of a batch against `fsdp.limit`; kernels do not check them. This pass
// therefore ensures that the ids of every lookup are in range:
//
//   %ids: tensor<7xi64> {fsdp.batch = "tokens"}       -> .. fsdp.limit = 11
//   fsdp.gather_rows %table[%ids] : tensor<11x13xf32>
//
// For each lookup (rows of a table, classes of a loss), compute the range of its ids:
//
//  1. If all ids are valid, do nothing.
//  2. If the ids depend on one argument without a given limit, set the greatest limit that makes
//     all ids valid. If several lookups limit the same argument, the argument gets the least of
//     these limits.
//  3. Emit an error if the ids are constants out of range, or elements of an argument whose given
//     limit is too large.
//  4. Otherwise clamp the ids and check them in each step (CheckLookups.cpp).
//
// The time is O(lookups · ops). DropAsserts.cpp handles `tensor.extract` in bodies.
//
//===----------------------------------------------------------------------===//

#include "Interface/Positions.h"
#include "Lookups/CheckLookups.h"
#include "Lookups/IdRanges.h"
#include "Lookups/Lookups.h"
#include "fsdp/Import/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_BOUNDIDSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct BoundIdsPass : public fsdp::impl::BoundIdsPassBase<BoundIdsPass> {
  using BoundIdsPassBase::BoundIdsPassBase;
  void runOnOperation() override;

private:
  LogicalResult bound(const RowLookup &lookup);
  LogicalResult lowerLimit(const RowLookup &lookup, BlockArgument arg);

  IdRanges ranges;
  llvm::SmallPtrSet<void *, 4> inferred; // arguments whose limit this pass has set
};
} // namespace

/// Describes the valid ids of a lookup, such as "in [0, 11), the rows of the table".
static std::string describe(const RowLookup &lookup) {
  return "in [0, " + std::to_string(lookup.extent) + "), the " + lookup.what.str();
}

/// Sets the limit of `arg` to the greatest number that makes all ids of a lookup valid. Fails if no
/// limit makes all ids valid.
LogicalResult BoundIdsPass::lowerLimit(const RowLookup &lookup, BlockArgument arg) {
  int64_t limit = std::min(lookup.extent, getLargestLimit(arg.getType()));
  func::FuncOp func = getOperation();
  if (auto before = func.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), FSDPDialect::limitAttr))
    limit = std::min(limit, before.getInt());
  ranges.assume(arg, limit);
  IntegerRange range = ranges.get(lookup.ids);
  if (lookup.admits(ranges.getSet(lookup.ids)))
    range = {0, lookup.extent - 1};
  if (range.lo >= 0 && range.hi >= lookup.extent && range.hi - (lookup.extent - 1) < limit) {
    // For an index such as `id + 2`, lower the limit by the offset 2.
    limit -= range.hi - (lookup.extent - 1);
    ranges.assume(arg, limit);
    range = ranges.get(lookup.ids);
  }
  if (!range.within(0, lookup.extent - 1)) {
    ranges.forget(arg);
    return failure();
  }
  func.setArgAttr(arg.getArgNumber(), FSDPDialect::limitAttr,
                  Builder(&getContext()).getI64IntegerAttr(limit));
  inferred.insert(arg.getAsOpaquePointer());
  ++numInferred;
  return success();
}

static OpOperand &getIdsOperand(const RowLookup &lookup) {
  for (OpOperand &operand : lookup.op->getOpOperands())
    if (operand.get() == lookup.ids)
      return operand;
  llvm_unreachable("ids are an operand of their lookup");
}

LogicalResult BoundIdsPass::bound(const RowLookup &lookup) {
  ++numLookups;
  if (lookup.admits(ranges.getSet(lookup.ids)))
    return success();
  if (isConstantIds(lookup.ids)) {
    IntegerRange range = ranges.get(lookup.ids);
    return lookup.op->emitError("expected ids ")
           << describe(lookup) << ", found " << range.lo << " to " << range.hi;
  }
  llvm::SmallPtrSet<void *, 16> seen;
  SmallVector<BlockArgument> arguments;
  IdRanges::collectIdArguments(lookup.ids, seen, arguments);
  if (arguments.size() == 1 &&
      !getOperation().getArgAttr(arguments.front().getArgNumber(), FSDPDialect::paramAttr)) {
    BlockArgument arg = arguments.front();
    auto given =
        getOperation().getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), FSDPDialect::limitAttr);
    bool isGiven = given && !inferred.contains(arg.getAsOpaquePointer());
    if (!isGiven && succeeded(lowerLimit(lookup, arg)))
      return success();
    if (isGiven && ranges.followsArgument(lookup.ids)) {
      InFlightDiagnostic diag = emitError(arg.getLoc())
                                << "argument " << getPosition(arg) << " has 'fsdp.limit' "
                                << given.getInt()
                                << ", which allows ids outside a lookup; expected ids "
                                << describe(lookup) << ": lower 'fsdp.limit'";
      diag.attachNote(lookup.op->getLoc()) << "the lookup is here";
      return diag;
    }
  }
  OpBuilder b(lookup.op);
  getIdsOperand(lookup).set(checkLookup(getOperation(), lookup, b));
  ++numCheckedAtRun;
  return success();
}

void BoundIdsPass::runOnOperation() {
  func::FuncOp func = getOperation();
  // Drop the ranges of the previous function. The values of that function may be freed, and new
  // values may have the same addresses.
  ranges = {};
  inferred.clear();
  if (func.isExternal())
    return;
  bool failedAny = false;
  func.walk([&](Operation *op) {
    if (std::optional<RowLookup> lookup = getRowLookup(op))
      failedAny |= failed(bound(*lookup));
  });
  if (failedAny)
    signalPassFailure();
}
