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

/// Writes the members of the JSON object that explain() writes.
void writeExplanation(ModuleOp planned, llvm::json::OStream &json,
                      ArrayRef<ChoiceReport> accumulation, ArrayRef<DtypeRow> dtypes,
                      const KernelReport &kernels);

/// Writes a description of the memory, the communication, the schedule and the units of a planned
/// module, as tables or as JSON. If Codegen has not run, the memory does not include the workspace
/// of kernels. If the compiler compared several ways to accumulate gradients, `accumulation`
/// contains the costs of these ways. `dtypes` contains the rows that measureDtypes() returned after
/// the stage Update. `kernels` are left out on a CPU.
void explain(ModuleOp planned, raw_ostream &os, bool json, ArrayRef<ChoiceReport> accumulation = {},
             ArrayRef<DtypeRow> dtypes = {}, const KernelReport &kernels = {});

} // namespace mlir::fsdp

#endif // FSDP_REPORT_EXPLAIN_H
