//===- ExplainUnits.h - Explain units in text or JSON -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_REPORT_EXPLAINUNITS_H
#define FSDP_LIB_REPORT_EXPLAINUNITS_H

#include "fsdp/Report/Explain.h"
#include "llvm/Support/JSON.h"

namespace mlir::fsdp {

/// Writes the JSON array `units`.
void writeUnits(ArrayRef<UnitReport> units, llvm::json::OStream &json);
/// Writes the units as a tree of the components of their names. Adjacent units share one line if
/// they differ only in the number in their name.
void writeUnits(ArrayRef<UnitReport> units, raw_ostream &os);

/// Writes the JSON object `parameters`: the numbers of trained and of frozen parameters, and the
/// names of constants.
void writeParameters(ModuleOp module, llvm::json::OStream &json);
/// Writes the counts and names of writeParameters() as one line of text.
void writeParameters(ModuleOp module, raw_ostream &os);

std::string printType(Type type);

} // namespace mlir::fsdp

#endif // FSDP_LIB_REPORT_EXPLAINUNITS_H
