//===- VerifyUpdated.cpp - Contract after Update ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. The arguments are, in this order: the parameter and the state of each unit, the step block,
//    the rank block, and the batch. The arguments of all programs have the same roles. A role is an
//    attribute that names the unit and state, or the block.
// 2. Each result updates an argument that has the type of the result, and no two results update the
//    same argument. The programs step and reference update all state of trained units. All programs
//    update the step block.
//
// The pass reports all errors.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/StepBlock.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYUPDATEDPASS
#include "fsdp/Update/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct VerifyUpdatedPass : fsdp::impl::VerifyUpdatedPassBase<VerifyUpdatedPass> {
  using VerifyUpdatedPassBase::VerifyUpdatedPassBase;
  void runOnOperation() override;

private:
  InFlightDiagnostic fail(Location loc) {
    anyFailed = true;
    return mlir::emitError(loc) << "after Update: expected ";
  }
  void checkProgram(func::FuncOp func, StringRef program);
  SmallVector<Attribute> checkArguments(func::FuncOp func);
  void checkResults(func::FuncOp func, bool isEval);

  bool anyFailed = false;
  func::FuncOp first;              ///< the first program
  SmallVector<Attribute> expected; ///< roles of the arguments of `first`
};
} // namespace

/// Returns the attribute that is the role of an argument, or null if the argument has no role or
/// several roles.
static Attribute getRole(func::FuncOp func, unsigned index) {
  MLIRContext *context = func.getContext();
  auto unit = func.getArgAttr(index, FSDPDialect::unitAttr);
  auto state = func.getArgAttr(index, FSDPDialect::stateAttr);
  SmallVector<Attribute> roles;
  if (unit && state)
    roles.push_back(ArrayAttr::get(context, {unit, state}));
  for (StringRef name : {FSDPDialect::blockAttr, FSDPDialect::rankAttr})
    if (func.getArgAttr(index, name))
      roles.push_back(StringAttr::get(context, name));
  if (auto batch = func.getArgAttr(index, FSDPDialect::batchAttr))
    roles.push_back(batch);
  return roles.size() == 1 ? roles.front() : Attribute();
}

/// Returns the roles of all arguments. Reports arguments without a role or with a wrong type.
SmallVector<Attribute> VerifyUpdatedPass::checkArguments(func::FuncOp func) {
  Builder b(&getContext());
  Type block = RankedTensorType::get({kStepBlockSize}, b.getF32Type());
  Type rank = RankedTensorType::get({kRankBlockSize}, b.getI64Type());
  SmallVector<Attribute> roles;
  for (BlockArgument arg : func.getArguments()) {
    unsigned index = arg.getArgNumber();
    ++numChecked;
    roles.push_back(getRole(func, index));
    if (!roles.back())
      fail(arg.getLoc()) << "argument " << index << " of '@" << func.getSymName()
                         << "' to be state of a unit, the step block, the "
                            "rank block or a batch argument";
    if (func.getArgAttr(index, FSDPDialect::blockAttr) && arg.getType() != block)
      fail(arg.getLoc()) << "the step block as " << block << ", found " << arg.getType();
    if (func.getArgAttr(index, FSDPDialect::rankAttr) && arg.getType() != rank)
      fail(arg.getLoc()) << "the rank block as " << rank << ", found " << arg.getType();
  }
  return roles;
}

void VerifyUpdatedPass::checkResults(func::FuncOp func, bool isEval) {
  llvm::SmallDenseSet<int64_t> updated;
  for (unsigned i = 0, e = func.getNumResults(); i < e; ++i) {
    auto index = func.getResultAttrOfType<IntegerAttr>(i, FSDPDialect::updatesAttr);
    bool valid = index && index.getInt() >= 0 && index.getInt() < func.getNumArguments() &&
                 updated.insert(index.getInt()).second &&
                 func.getArgumentTypes()[index.getInt()] == func.getResultTypes()[i];
    if (!valid)
      fail(func.getLoc()) << "result " << i << " of '@" << func.getSymName()
                          << "' to update one argument of its type ('" << FSDPDialect::updatesAttr
                          << "')";
  }
  SymbolTable symbols(getOperation());
  for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i) {
    bool mustUpdate = !!func.getArgAttr(i, FSDPDialect::blockAttr);
    if (auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(i, FSDPDialect::unitAttr)) {
      auto unit = symbols.lookup<UnitOp>(name.getValue());
      mustUpdate = unit && !isEval &&
                   llvm::any_of(unit.getParams().getAsRange<ParamAttr>(),
                                [](ParamAttr p) { return p.getTrainable(); });
    }
    if (mustUpdate != updated.contains(i))
      fail(func.getArgument(i).getLoc()) << "argument " << i << " of '@" << func.getSymName()
                                         << "' to be " << (mustUpdate ? "updated" : "left alone");
  }
}

void VerifyUpdatedPass::checkProgram(func::FuncOp func, StringRef program) {
  SmallVector<Attribute> roles = checkArguments(func);
  if (!first) {
    first = func;
    expected = roles;
  } else if (roles != expected) {
    fail(func.getLoc()) << "the arguments of '@" << func.getSymName()
                        << "' to have the roles of those of '@" << first.getSymName() << "'";
  }
  checkResults(func, program == "eval");
}

void VerifyUpdatedPass::runOnOperation() {
  anyFailed = false;
  first = {};
  for (StringRef program : {"step", "eval", "reference"}) {
    auto functions = getOperation().getOps<func::FuncOp>();
    auto isProgram = [&](func::FuncOp func) {
      auto name = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
      return name && name.getValue() == program && !func.isExternal();
    };
    bool isLeftOut = program == "reference" && getOperation()->hasAttr(noReferenceAttr);
    if (llvm::count_if(functions, isProgram) != (isLeftOut ? 0 : 1)) {
      fail(getOperation().getLoc())
          << (isLeftOut ? "no" : "one") << " function of program '" << program << "'";
      continue;
    }
    if (isLeftOut)
      continue;
    checkProgram(*llvm::find_if(functions, isProgram), program);
  }
  if (anyFailed)
    signalPassFailure();
}
