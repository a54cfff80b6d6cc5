//===- Passes.td - Passes that print what analyses find ----*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_PASSES_TD
#define FSDP_ANALYSIS_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintAttentionIdiomsPass : Pass<"fsdp-print-attention-idioms"> {
  let summary = "Say what attention masks, and what kernels can skip";
  let description = [{
    - Requires: nothing.
    - Ensures: a remark at each `fsdp.attention`: what its functions are called, the
      keys that a tile of rows visits and the rows that a tile of keys visits, the mask-free
      part of each, and how often each of the functions' ops has to run. A warning
      where no row keeps a key.
    - Keeps: everything.
  }];
  let options = [Option<"tile", "tile", "int64_t", /*default=*/"0",
                        "Print the loops in tiles of this many rows and keys; 0: in elements.">];
  let statistics = [Statistic<"numAttentions", "num-attentions", "Attention ops looked at">,
                    Statistic<"numSkipping", "num-skipping", "Those of which kernels can skip a part">];
}

#endif // FSDP_ANALYSIS_PASSES_TD
