//===- Passes.td - Passes that print what analyses find ----*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_PASSES_TD
#define FSDP_ANALYSIS_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintAttentionIdiomsPass : Pass<"fsdp-print-attention-idioms"> {
  let summary = "Print which keys each attention masks, and which tiles its kernels can skip";
  let description = [{
    - Requires: nothing.
    - Ensures: the pass prints one remark per `fsdp.attention`. The remark names the idioms of the
      score and mask functions. For a tile of rows, the remark gives the range of keys that a kernel
      visits, and the range of keys that no row of the tile masks. For a tile of keys, the remark
      gives the range of rows that a kernel visits, and the range of rows that mask no key of the
      tile. The remark also counts how many ops of these functions run once, once per row, once per
      key, and once per score. If all keys of all rows are masked, the pass prints a warning.
    - Keeps: the IR.
  }];
  let options = [Option<"tile", "tile", "int64_t", /*default=*/"0",
                        "Tile size in rows and keys for the printed loops; 0 (default): print elements.">];
  let statistics = [Statistic<"numAttentions", "num-attentions", "Attention ops analysed">,
                    Statistic<"numSkipping", "num-skipping", "Attention ops whose kernels can skip keys or rows">];
}

#endif // FSDP_ANALYSIS_PASSES_TD
