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
    - Requires: `fsdp-pack-arenas`.
    - Ensures: a table, or JSON, on standard error (standard output belongs to the IR).
    - Keeps: everything.
  }];
  let options = [Option<"json", "json", "bool", "false", "JSON instead of a table.">];
  let statistics = [Statistic<"peakBytes", "peak-bytes", "Bytes of the arena of a step">];
}

#endif // FSDP_REPORT_PASSES_TD
