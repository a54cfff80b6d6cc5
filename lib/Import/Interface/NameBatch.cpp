//===- NameBatch.cpp - Name the batch arguments -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Arguments that are not parameters are batch inputs. The pass names the batch inputs of a language
// model:
//
//   the only integer input                                "tokens"
//   the second of two integer inputs of equal shape       "targets"
//
// In other cases, the types do not determine the names, because a mask may have the same type as
// labels. The pass then emits an error that lists the inputs without a name. The pass keeps
// existing names and removes inputs that are not read. For each guessed name, the pass emits a
// remark or, if no lookup reads the input, a warning.
//
//===----------------------------------------------------------------------===//

#include "Interface/Positions.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/Import/Passes.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_NAMEBATCHPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The batch inputs of a function. The inputs in `open` have no name yet.
struct Inputs {
  SmallVector<BlockArgument> named, open;
  SmallVector<StringRef> names;
};

struct NameBatchPass : public fsdp::impl::NameBatchPassBase<NameBatchPass> {
  using NameBatchPassBase::NameBatchPassBase;
  void runOnOperation() override;

private:
  LogicalResult dropUnread();
  Inputs collect();
  LogicalResult refuse(const Inputs &inputs, const Twine &why);
  LogicalResult name(const Inputs &inputs);
};
} // namespace

static bool isIds(BlockArgument arg) {
  auto type = dyn_cast<RankedTensorType>(arg.getType());
  return type && type.getElementType().isInteger() && type.getElementTypeBitWidth() > 1;
}

/// Emits a remark about a guessed name, or a warning if no lookup reads the input.
static void reportGuess(BlockArgument arg, StringRef name) {
  auto func = cast<func::FuncOp>(arg.getOwner()->getParentOp());
  bool isLookedUp = static_cast<bool>(func.getArgAttr(arg.getArgNumber(), FSDPDialect::limitAttr));
  InFlightDiagnostic diag = isLookedUp ? emitRemark(arg.getLoc()) : emitWarning(arg.getLoc());
  diag << "argument " << getPosition(arg) << ", " << arg.getType() << ", is taken for the " << name
       << ": nothing names it";
  if (!isLookedUp)
    diag << ", and no lookup reads it directly, so that it may be a mask";
  diag << "; --batch=" << getPosition(arg) << "=" << name
       << " confirms that, another name corrects it";
}

/// Removes unread inputs without a name.
LogicalResult NameBatchPass::dropUnread() {
  func::FuncOp func = getOperation();
  llvm::BitVector unread(func.getNumArguments());
  for (BlockArgument arg : collect().open)
    if (arg.use_empty()) {
      emitRemark(arg.getLoc()) << "argument " << getPosition(arg) << ", " << arg.getType()
                               << ", is not read: the model has no input for it";
      unread.set(arg.getArgNumber());
      ++numDropped;
    }
  return unread.none() ? success() : func.eraseArguments(unread);
}

Inputs NameBatchPass::collect() {
  func::FuncOp func = getOperation();
  Inputs inputs;
  for (BlockArgument arg : func.getArguments()) {
    unsigned i = arg.getArgNumber();
    if (func.getArgAttr(i, FSDPDialect::paramAttr) || func.getArgAttr(i, FSDPDialect::keyAttr))
      continue;
    if (auto name = func.getArgAttrOfType<StringAttr>(i, FSDPDialect::batchAttr)) {
      inputs.named.push_back(arg);
      inputs.names.push_back(name.getValue());
    } else if (isa<RankedTensorType>(arg.getType())) { // VerifyImported.cpp reports other types
      inputs.open.push_back(arg);
    }
  }
  return inputs;
}

/// Emits an error that lists each input without a name, and the option that would name it.
LogicalResult NameBatchPass::refuse(const Inputs &inputs, const Twine &why) {
  func::FuncOp func = getOperation();
  InFlightDiagnostic diag = emitError(func.getLoc())
                            << "cannot tell what each batch input of '@" << func.getSymName()
                            << "' is: " << why << "; name them";
  for (BlockArgument arg : inputs.open) {
    int64_t position = getPosition(arg);
    Diagnostic &note = diag.attachNote(arg.getLoc());
    note << "argument " << position << ", " << arg.getType()
         << ", has no name: --batch=" << position << "=NAME, or {fsdp.batch = \"NAME\"}";
    if (!isIds(arg))
      note << "; if it is a parameter, --params=" << position << " beside the others";
  }
  diag.attachNote(func.getLoc())
      << "fsdp-run --text and --data feed 'tokens' and, shifted by one token, 'targets'; "
      << "fsdp-run --input NAME=FILE feeds any input";
  return diag;
}

/// Names the inputs without a name, or emits an error if the types do not determine the names.
LogicalResult NameBatchPass::name(const Inputs &inputs) {
  func::FuncOp func = getOperation();
  if (inputs.open.empty())
    return success();
  size_t all = llvm::count_if(inputs.named, isIds) + inputs.open.size();
  for (BlockArgument arg : inputs.open)
    if (!isIds(arg))
      return refuse(inputs,
                    "argument " + Twine(getPosition(arg)) + " is of " +
                        (isa<FloatType>(getElementTypeOrSelf(arg)) ? "floats" : "no integers"));
  for (StringRef name : inputs.names)
    if (name != "tokens" && name != "targets")
      return refuse(inputs, "one is called '" + name + "', others have no name");
  if (all > 2)
    return refuse(inputs, Twine(all) + " are of integers");
  SmallVector<StringRef> free;
  for (StringRef name : {"tokens", "targets"})
    if (!llvm::is_contained(inputs.names, name))
      free.push_back(name);
  // If there are two inputs, the pass assumes that the second one is "targets".
  bool isPair = all == 2 && !llvm::is_contained(inputs.names, "targets");
  BlockArgument first = inputs.named.empty() ? inputs.open.front() : inputs.named.front();
  if (isPair && cast<ShapedType>(first.getType()).getShape() !=
                    cast<ShapedType>(inputs.open.back().getType()).getShape())
    return refuse(inputs, "two are of integers, and differ in shape");
  for (auto [arg, name] : llvm::zip(inputs.open, free)) {
    func.setArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr,
                    StringAttr::get(&getContext(), name));
    reportGuess(arg, name);
    ++numNamed;
  }
  return success();
}

void NameBatchPass::runOnOperation() {
  func::FuncOp func = getOperation();
  if (func.isPrivate() || func.isExternal())
    return;
  if (failed(dropUnread()) || failed(name(collect())))
    return signalPassFailure();
  for (BlockArgument arg : func.getArguments())
    func.removeArgAttr(arg.getArgNumber(), positionAttr);
  func.walk([](Operation *op) {
    op->removeDiscardableAttr(positionAttr);
    op->removeDiscardableAttr(keepAttr);
  });
}
