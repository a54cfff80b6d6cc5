//===- CheckTexts.cpp - Texts that end up in files --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/CheckTexts.h"
#include "fsdpcommon/ShortText.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the first text in the attribute that is not UTF-8 or has control characters.
static StringAttr findUnprintable(Attribute attr) {
  StringAttr found;
  attr.walk([&](StringAttr text) {
    if (fsdpcommon::isPrintable(text.getValue()))
      return WalkResult::advance();
    found = text;
    return WalkResult::interrupt();
  });
  return found;
}

/// Emits an error at `loc` for each name of a symbol and each attribute `fsdp.*` with an
/// unprintable text.
static LogicalResult check(Location loc, const Twine &owner, ArrayRef<NamedAttribute> attrs) {
  LogicalResult result = success();
  for (NamedAttribute attr : attrs) {
    bool isKept = attr.getName() == SymbolTable::getSymbolAttrName() ||
                  attr.getName().strref().starts_with("fsdp.");
    StringAttr text = isKept ? findUnprintable(attr.getValue()) : nullptr;
    if (text)
      result = emitError(loc) << owner << "expected '" << attr.getName().getValue()
                              << "' to be UTF-8 without control characters, found " << text
                              << "; choose another name";
  }
  return result;
}

LogicalResult fsdp::checkTexts(ModuleOp module) {
  LogicalResult result = check(module.getLoc(), "", module->getAttrs());
  for (auto func : module.getOps<func::FuncOp>()) {
    if (failed(check(func.getLoc(), "", func->getAttrs())))
      result = failure();
    for (unsigned i = 0, count = func.getNumArguments(); i < count; ++i)
      if (DictionaryAttr attrs = func.getArgAttrDict(i))
        if (failed(check(func.isExternal() ? func.getLoc() : func.getArgument(i).getLoc(),
                         "argument " + Twine(i) + " ", attrs.getValue())))
          result = failure();
  }
  return result;
}
