//===- MarkBatch.cpp - Names of batch inputs from the user ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sets the attribute fsdp.batch on the arguments that --batch=TARGET=NAME names:
//
//   --batch=1=images        %arg1: tensor<2x4xf32>  ->  {fsdp.batch = "images"}
//
// TARGET is an argument's position in the file, or the name in its location. The option overrides a
// name that the argument already has. The time is O(arguments x options).
//
//===----------------------------------------------------------------------===//

#include "Interface/Positions.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/Import/Passes.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_MARKBATCHPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct MarkBatchPass : public fsdp::impl::MarkBatchPassBase<MarkBatchPass> {
  using MarkBatchPassBase::MarkBatchPassBase;
  void runOnOperation() override;

private:
  FailureOr<BlockArgument> findArgument(StringRef text, StringRef target);
  LogicalResult mark(StringRef text);
  LogicalResult checkNames();

  func::FuncOp func;
  // For each argument number, the option that names this argument.
  llvm::DenseMap<unsigned, StringRef> marked;
};
} // namespace

FailureOr<BlockArgument> MarkBatchPass::findArgument(StringRef text, StringRef target) {
  int64_t index = -1;
  bool isIndex = !target.getAsInteger(10, index);
  SmallVector<BlockArgument> found;
  for (BlockArgument arg : func.getArguments())
    if (isIndex ? getPosition(arg) == index : nameFromLocation(arg.getLoc()) == target)
      found.push_back(arg);
  if (found.size() == 1)
    return found.front();
  InFlightDiagnostic diag = emitError(func.getLoc())
                            << "--batch=" << text << ": expected one argument of '@"
                            << func.getSymName() << "' at '" << target << "', found "
                            << found.size();
  diag.attachNote(func.getLoc())
      << "it has " << func.getNumArguments()
      << " arguments: positions are counted from 0, names come from their locations";
  return diag;
}

/// Sets fsdp.batch on the argument that the option value `text` names.
LogicalResult MarkBatchPass::mark(StringRef text) {
  auto [target, name] = text.split('=');
  if (target.empty() || name.empty())
    return emitError(func.getLoc())
           << "--batch expected INDEX=NAME, such as 3=labels, found '" << text << "'";
  FailureOr<BlockArgument> arg = findArgument(text, target);
  if (failed(arg))
    return failure();
  unsigned i = arg->getArgNumber();
  for (StringRef other : {FSDPDialect::paramAttr, FSDPDialect::keyAttr})
    if (Attribute mark = func.getArgAttr(i, other))
      return emitError(arg->getLoc())
             << "--batch=" << text << ": argument " << getPosition(*arg) << " carries '" << other
             << "' = " << mark << ", so it is not a batch input; remove one of the two";
  auto [other, isNew] = marked.try_emplace(i, text);
  if (!isNew)
    return emitError(arg->getLoc())
           << "--batch=" << text << ": argument " << getPosition(*arg)
           << " has a name by --batch=" << other->second << "; remove one of the two options";
  func.setArgAttr(i, FSDPDialect::batchAttr, StringAttr::get(&getContext(), name));
  ++numMarked;
  return success();
}

/// Verifies that batch inputs have distinct names.
LogicalResult MarkBatchPass::checkNames() {
  llvm::StringMap<BlockArgument> names;
  for (BlockArgument arg : func.getArguments())
    if (auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::batchAttr)) {
      auto [other, isNew] = names.try_emplace(name.getValue(), arg);
      if (isNew)
        continue;
      InFlightDiagnostic diag = emitError(arg.getLoc())
                                << "arguments " << getPosition(other->second) << " and "
                                << getPosition(arg) << " are both the batch input " << name
                                << "; names must differ";
      diag.attachNote(other->second.getLoc())
          << "argument " << getPosition(other->second) << " is here";
      return diag;
    }
  return success();
}

void MarkBatchPass::runOnOperation() {
  func = getEntry(getOperation());
  if (!func)
    return;
  marked.clear();
  for (StringRef text : batch)
    if (failed(mark(text)))
      return signalPassFailure();
  if (failed(checkNames()))
    signalPassFailure();
}
