//===- Explain.h - Explain a plan in text or JSON ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_REPORT_EXPLAIN_H
#define FSDP_REPORT_EXPLAIN_H

#include "fsdp/Analysis/DtypeFlow.h"
#include "fsdp/Analysis/PlanMeasures.h"
#include "fsdp/Report/KernelReport.h"

namespace mlir::fsdp {

/// Writes the members of the JSON object of explain().
void writeExplanation(ModuleOp planned, llvm::json::OStream &json,
                      ArrayRef<ChoiceReport> accumulation, ArrayRef<DtypeRow> dtypes,
                      const KernelReport &kernels);

/// Writes memory, communication, schedule and units of a planned module as tables or as JSON. The
/// workspace is known only after Codegen. `accumulation` holds the ways to accumulate gradients
/// over micro-batches, if there are several. `dtypes` holds the rows of measureDtypes() after
/// Update. `kernels` are left out on a CPU.
void explain(ModuleOp planned, raw_ostream &os, bool json, ArrayRef<ChoiceReport> accumulation = {},
             ArrayRef<DtypeRow> dtypes = {}, const KernelReport &kernels = {});

} // namespace mlir::fsdp

#endif // FSDP_REPORT_EXPLAIN_H
