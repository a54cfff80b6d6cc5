//===- DiagnosticText.h - Found values in diagnostics -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Describes symbols, numbers and counts in words, for the part of a diagnostic after "found".
//
//   expected @x to be an 'fsdp.mesh', found no symbol @x
//   expected @x to be an 'fsdp.mesh', found a 'func.func'
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_DIAGNOSTICTEXT_H
#define FSDP_IR_DIAGNOSTICTEXT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::fsdp {

/// Returns the op's name with an article: "an 'fsdp.mesh'", "a 'func.func'".
std::string describeOp(Operation *op);

/// Returns "a result of a 'func.call'", or "a block argument".
std::string describeValue(Value value);

/// Returns "no symbol @x" if `found` is null, and describeOp(found) otherwise.
std::string describeSymbol(FlatSymbolRefAttr name, Operation *found);

/// Emits "'op' op expected @x to be <expected>, found <symbol>". Looks up the symbol from `from`,
/// or from `op` if `from` is null.
LogicalResult emitWrongSymbol(Operation *op, FlatSymbolRefAttr name, const Twine &expected,
                              SymbolTableCollection &tables, Operation *from = nullptr);

/// Returns the text of an attribute; "nan", "inf" or "-inf" for a float that is not finite.
std::string describeNumber(Attribute number);

/// Returns the number of blocks of `body` as text, for example "2 blocks". Returns "a declaration"
/// if the region is the empty body of a function.
std::string describeBody(Region &body);

/// Returns `count` and the noun that fits it, for example "1 entry" or "2 entries".
std::string describeCount(int64_t count, StringRef singular, StringRef plural);

} // namespace mlir::fsdp

#endif // FSDP_IR_DIAGNOSTICTEXT_H
