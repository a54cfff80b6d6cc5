//===- ExplainUnits.h - Units, for people -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_REPORT_EXPLAINUNITS_H
#define FSDP_LIB_REPORT_EXPLAINUNITS_H

#include "fsdp/Report/Explain.h"
#include "llvm/Support/JSON.h"

namespace mlir::fsdp {

/// The array `units`.
void writeUnits(ArrayRef<UnitReport> units, llvm::json::OStream &json);
/// The tree of names; neighbours that differ in their number alone are one line.
void writeUnits(ArrayRef<UnitReport> units, raw_ostream &os);

/// The object `parameters`: how many are trained and frozen, and the names of constants.
void writeParameters(ModuleOp module, llvm::json::OStream &json);
/// One line of the same numbers.
void writeParameters(ModuleOp module, raw_ostream &os);

std::string printType(Type type);

} // namespace mlir::fsdp

#endif // FSDP_LIB_REPORT_EXPLAINUNITS_H
