//===- SelectEntry.cpp - Select the function to train -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Makes one function the only public function. Numbers the arguments of this function and all
// constants, so that options can refer to them. Drops globals and attributes that exporters leave
// in a module.
//
//   ml_program.global @global_seed          func.func @loss(%a {fsdp.position = 0})
//   func.func @loss(%a)                ->     arith.constant {fsdp.position = 0}
//     arith.constant dense_resource<..>     func.func private @helper()
//   func.func @helper()
//
//  1. Choose the entry function, and make every other function private.
//  2. Number the entry's arguments, and all tensor constants that are not splats, in the order of
//     the text. Later passes keep these numbers, so that `--params` and `--buffer` can refer to
//     positions in the file.
//  3. Drop unused globals and attributes of unknown dialects.
//
//===----------------------------------------------------------------------===//

#include "Interface/Positions.h"
#include "fsdp/Import/Passes.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SELECTENTRYPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct SelectEntryPass : public fsdp::impl::SelectEntryPassBase<SelectEntryPass> {
  using SelectEntryPassBase::SelectEntryPassBase;
  void runOnOperation() override;

private:
  func::FuncOp findEntry();
  void dropGlobals();
};
} // namespace

/// Returns the function called `entry` or, if `entry` is empty, the only public function with a
/// body. Emits an error and returns null if no function or more than one function qualifies.
func::FuncOp SelectEntryPass::findEntry() {
  ModuleOp module = getOperation();
  SmallVector<func::FuncOp> candidates;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    if (entry.empty() ? func.isPublic() : func.getSymName() == entry)
      candidates.push_back(func);
  }
  if (candidates.size() == 1)
    return candidates.front();
  if (candidates.empty()) {
    InFlightDiagnostic diag = emitError(module.getLoc(), "expected ");
    if (entry.empty())
      diag << "a public 'func.func' with a body, the model's loss; found none";
    else
      diag << "a function '@" << entry << "' with a body, as --entry says; found none";
    for (auto func : module.getOps<func::FuncOp>())
      diag.attachNote(func.getLoc()) << "there is '@" << func.getSymName() << "'";
    return nullptr;
  }
  InFlightDiagnostic diag = emitError(module.getLoc(), "expected one public function, found ")
                            << candidates.size() << "; choose one with --entry=NAME";
  for (func::FuncOp func : candidates)
    diag.attachNote(func.getLoc()) << "'@" << func.getSymName() << "' is public";
  return nullptr;
}

/// Erases unused globals, such as `ml_program.global private mutable @global_seed` of torch.
void SelectEntryPass::dropGlobals() {
  ModuleOp module = getOperation();
  for (auto global : llvm::make_early_inc_range(module.getOps<ml_program::GlobalOp>()))
    if (SymbolTable::symbolKnownUseEmpty(global, module))
      global.erase();
}

/// Removes attributes of unknown dialects, such as `torch.debug_module_name`.
static void dropForeignAttributes(Operation *op) {
  for (NamedAttribute attr : llvm::to_vector(op->getDiscardableAttrs()))
    if (attr.getName().getValue().contains('.') && !attr.getNameDialect())
      op->removeDiscardableAttr(attr.getName());
}

void SelectEntryPass::runOnOperation() {
  func::FuncOp entryOp = findEntry();
  if (!entryOp)
    return signalPassFailure();
  entryOp.setPublic();
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    if (func != entryOp)
      func.setPrivate();
    dropForeignAttributes(func);
    func.removeResAttrsAttr();
  }
  dropForeignAttributes(getOperation());
  dropGlobals();

  OpBuilder b(&getContext());
  for (BlockArgument arg : entryOp.getArguments())
    setPosition(arg, arg.getArgNumber());
  int64_t next = 0;
  getOperation().walk([&](Operation *op) {
    if (isTable(op)) {
      setPosition(op, next++);
      ++numConstants;
    }
  });
}
