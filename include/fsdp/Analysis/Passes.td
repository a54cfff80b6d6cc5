//===- Passes.td - Passes that print what analyses find ----*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_PASSES_TD
#define FSDP_ANALYSIS_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintAttentionIdiomsPass : Pass<"fsdp-print-attention-idioms"> {
  let summary = "Print the keys that attention masks, and the tiles that its kernels can skip";
  let description = [{
    - Requires: nothing.
    - Ensures: one remark per `fsdp.attention`, which names the idioms of the score and mask
      functions. For a tile of rows, the remark gives the range of keys that a kernel visits, and
      the range in which no key is masked. For a tile of keys, it gives these two ranges of rows. It
      also gives the number of executions of each op of the functions. If all keys of all rows are
      masked, there is a warning.
    - Keeps: the IR.
  }];
  let options = [Option<"tile", "tile", "int64_t", /*default=*/"0",
                        "Tile size in rows and keys for the printed loops; 0 (default): print elements.">];
  let statistics = [Statistic<"numAttentions", "num-attentions", "Attention ops analysed">,
                    Statistic<"numSkipping", "num-skipping", "Attention ops whose kernels can skip keys or rows">];
}

#endif // FSDP_ANALYSIS_PASSES_TD
