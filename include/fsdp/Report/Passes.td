//===- Passes.td - Passes of Report ------------------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_REPORT_PASSES_TD
#define FSDP_REPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExplainPlanPass : Pass<"fsdp-explain-plan", "::mlir::ModuleOp"> {
  let summary = "Print the memory and the communication of a plan";
  let description = [{
    - Requires: `fsdp-pack-arenas` has run.
    - Ensures: the pass prints a table, or JSON, to standard error, because standard output is
      reserved for the IR.
    - Keeps: the IR.
  }];
  let options = [Option<"json", "json", "bool", "false", "Print JSON instead of a table.">];
  let statistics = [Statistic<"peakBytes", "peak-bytes", "Size of the arena of a step, in bytes">];
}

#endif // FSDP_REPORT_PASSES_TD
