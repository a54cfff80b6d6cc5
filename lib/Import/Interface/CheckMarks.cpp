//===- CheckMarks.cpp - Attributes of the model's arguments -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Verifies the fsdp attributes of arguments, which users may write by hand. Without this check, a
// misspelt attribute would be ignored:
//
//   fsdp.param      a name that is not empty, or a unit attribute (the location is the name)
//   fsdp.batch      a name that is not empty; not together with fsdp.param
//   fsdp.init       #fsdp.init<..> with finite numbers and a valid range
//   fsdp.frozen     a unit attribute
//   fsdp.unit       a name that is not empty
//   fsdp.limit      an integer of at least 1 that the type of the ids can hold
//   fsdp.key        "seed", "step" or "sample", on a tensor<i64>
//
// Reports all violations. The time is O(arguments).
//
//===----------------------------------------------------------------------===//

#include "Interface/Positions.h"
#include "Lookups/Lookups.h"
#include "fsdp/Import/Passes.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_CHECKMARKSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct CheckMarksPass : public fsdp::impl::CheckMarksPassBase<CheckMarksPass> {
  using CheckMarksPassBase::CheckMarksPassBase;
  void runOnOperation() override;
};

/// Verifies the attributes of one argument.
struct MarkChecker {
  func::FuncOp func;
  BlockArgument arg;

  InFlightDiagnostic expected(NamedAttribute mark, const Twine &what) {
    return emitError(arg.getLoc())
           << "argument " << getPosition(arg) << " expected '" << mark.getName().getValue()
           << "' to " << what << ", found " << mark.getValue();
  }
  bool has(StringRef name) { return static_cast<bool>(func.getArgAttr(arg.getArgNumber(), name)); }

  LogicalResult checkName(NamedAttribute mark, bool mayBeUnit);
  LogicalResult checkInit(NamedAttribute mark);
  LogicalResult checkKey(NamedAttribute mark);
  LogicalResult checkLimit(NamedAttribute mark);
  LogicalResult check(NamedAttribute mark);
};
} // namespace

LogicalResult MarkChecker::checkName(NamedAttribute mark, bool mayBeUnit) {
  auto name = dyn_cast<StringAttr>(mark.getValue());
  if ((name && !name.empty()) || (mayBeUnit && isa<UnitAttr>(mark.getValue())))
    return success();
  return expected(mark, "be a name, such as \"h.0.weight\"");
}

LogicalResult MarkChecker::checkInit(NamedAttribute mark) {
  auto init = dyn_cast<InitAttr>(mark.getValue());
  if (!init)
    return expected(mark,
                    "be such as #fsdp.init<normal, 0.0, 0.02> or #fsdp.init<constant, 1.0, 0.0>");
  if (!init.getA().isFinite() || !init.getB().isFinite())
    return expected(mark, "have finite numbers");
  if (init.getKind() == InitKind::normal && init.getB().isNegative() && !init.getB().isZero())
    return expected(mark, "have a standard deviation of at least 0");
  if (init.getKind() == InitKind::uniform && init.getA() > init.getB())
    return expected(mark, "have a lower bound that is at most the upper one");
  return success();
}

/// Verifies that `fsdp.limit` is an integer from 1 to the largest limit for the type of the ids.
LogicalResult MarkChecker::checkLimit(NamedAttribute mark) {
  auto limit = dyn_cast<IntegerAttr>(mark.getValue());
  int64_t largest = getLargestLimit(arg.getType());
  bool narrow = largest != std::numeric_limits<int64_t>::max();
  bool plain = limit && (limit.getType().isSignlessInteger() || limit.getType().isIndex());
  if (plain && limit.getValue().isSignedIntN(64) && limit.getInt() >= 1 &&
      limit.getInt() <= largest)
    return success();
  std::string type;
  llvm::raw_string_ostream(type) << getElementTypeOrSelf(arg.getType());
  return expected(mark, "be an integer of at least 1" +
                            (narrow ? " and at most " + Twine(largest).str() +
                                          ", the greatest limit of ids of " + type
                                    : std::string()));
}

/// Verifies the attribute `fsdp.key`, which marks a seed, step or sample that the runtime provides.
LogicalResult MarkChecker::checkKey(NamedAttribute mark) {
  auto key = dyn_cast<StringAttr>(mark.getValue());
  if (!key || !llvm::is_contained({"seed", "step", "sample"}, key.getValue()))
    return expected(mark, "be \"seed\", \"step\" or \"sample\"");
  if (has(FSDPDialect::paramAttr) || has(FSDPDialect::batchAttr))
    return emitError(arg.getLoc())
           << "argument " << getPosition(arg) << " expected 'fsdp.key' alone, found "
           << (has(FSDPDialect::paramAttr) ? "'fsdp.param'" : "'fsdp.batch'") << " beside it";
  auto type = dyn_cast<RankedTensorType>(arg.getType());
  if (type && type.getRank() == 0 && type.getElementType().isSignlessInteger(64))
    return success();
  return emitError(arg.getLoc()) << "argument " << getPosition(arg) << " expected tensor<i64>, as '"
                                 << mark.getName().getValue() << "' is one number, found "
                                 << arg.getType();
}

LogicalResult MarkChecker::check(NamedAttribute mark) {
  StringRef name = mark.getName().getValue();
  if (name == FSDPDialect::paramAttr && has(FSDPDialect::batchAttr))
    return emitError(arg.getLoc()) << "argument " << getPosition(arg)
                                   << " expected either 'fsdp.param' or 'fsdp.batch', found both";
  if (name == FSDPDialect::paramAttr || name == FSDPDialect::batchAttr ||
      name == FSDPDialect::unitAttr)
    return checkName(mark, /*mayBeUnit=*/name == FSDPDialect::paramAttr);
  if (name == FSDPDialect::initAttr)
    return checkInit(mark);
  if (name == FSDPDialect::limitAttr && has(FSDPDialect::paramAttr))
    return emitError(arg.getLoc())
           << "argument " << getPosition(arg) << " is a parameter, but 'fsdp.limit' is for batch "
           << "arguments: parameters are not checked before each step";
  if (name == FSDPDialect::limitAttr)
    return checkLimit(mark);
  if (name == FSDPDialect::keyAttr)
    return checkKey(mark);
  if (name == FSDPDialect::frozenAttr)
    return isa<UnitAttr>(mark.getValue()) ? success()
                                          : LogicalResult(expected(mark, "have no value"));
  if (!name.starts_with("fsdp.") || name == positionAttr || name == "fsdp.extra_ids")
    return success();
  return emitError(arg.getLoc()) << "argument " << getPosition(arg)
                                 << " has the unknown attribute '" << name
                                 << "'; expected fsdp.param, fsdp.batch, fsdp.init, fsdp.frozen, "
                                    "fsdp.unit, fsdp.limit or fsdp.key";
}

void CheckMarksPass::runOnOperation() {
  func::FuncOp func = getEntry(getOperation());
  if (!func)
    return;
  bool failedAny = false;
  for (BlockArgument arg : func.getArguments()) {
    MarkChecker checker{func, arg};
    if (DictionaryAttr marks = func.getArgAttrDict(arg.getArgNumber()))
      for (NamedAttribute mark : marks) {
        failedAny |= failed(checker.check(mark));
        ++numChecked;
      }
  }
  if (failedAny)
    signalPassFailure();
}
