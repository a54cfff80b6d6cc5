//===- DiagnosticText.cpp - Found values in diagnostics ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/DiagnosticText.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string fsdp::describeOp(Operation *op) {
  StringRef name = op->getName().getStringRef();
  // "fsdp" is read letter by letter, and the name of the letter f begins with a vowel.
  bool isVowel = name.starts_with("fsdp.") || StringRef("aeiou").contains(name.front());
  return ((isVowel ? "an '" : "a '") + name + "'").str();
}

std::string fsdp::describeValue(Value value) {
  Operation *def = value.getDefiningOp();
  return def ? "a result of " + describeOp(def) : "a block argument";
}

std::string fsdp::describeSymbol(FlatSymbolRefAttr name, Operation *found) {
  return found ? describeOp(found) : ("no symbol @" + name.getValue()).str();
}

LogicalResult fsdp::emitWrongSymbol(Operation *op, FlatSymbolRefAttr name, const Twine &expected,
                                    SymbolTableCollection &tables, Operation *from) {
  Operation *found = tables.lookupNearestSymbolFrom(from ? from : op, name);
  return op->emitOpError("expected ")
         << name << " to be " << expected << ", found " << describeSymbol(name, found);
}

std::string fsdp::describeNumber(Attribute number) {
  if (auto value = dyn_cast<FloatAttr>(number); value && !value.getValue().isFinite())
    return value.getValue().isNaN() ? "nan" : value.getValue().isNegative() ? "-inf" : "inf";
  std::string text;
  llvm::raw_string_ostream(text) << number;
  return text;
}

std::string fsdp::describeBody(Region &body) {
  return body.empty() ? "a declaration" : describeCount(body.getBlocks().size(), "block", "blocks");
}

std::string fsdp::describeCount(int64_t count, StringRef singular, StringRef plural) {
  return (Twine(count) + " " + (count == 1 ? singular : plural)).str();
}
