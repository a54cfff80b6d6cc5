//===- FSDPTensorOps.td - Raised tensor operations ---------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPTENSOROPS_TD
#define FSDP_IR_FSDPTENSOROPS_TD

include "fsdp/IR/FSDPBase.td"

def FSDP_GatherRowsOp : FSDP_Op<"gather_rows", [Pure]> {
  let summary = "rows of a table at ids (an embedding)";
  let description = [{
    `result[i.., :] = table[ids[i..], :]`. Ids are in [0, rows): whoever feeds the
    program checks them (`fsdp.limit`).

    Constraints: (C1) the table has rank 2, ids are integers; (C2) the result is
    the shape of ids with the table's columns appended; (C3) element types agree.

    ```mlir
    %e = fsdp.gather_rows %table[%ids] : tensor<50257x768xf32>, tensor<4x64xi64> -> tensor<4x64x768xf32>
    ```
  }];
  let arguments = (ins 2DTensorOf<[AnyFloat]>:$table, RankedTensorOf<[AnyInteger]>:$ids);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $table `[` $ids `]` attr-dict `:` type($table) `,` type($ids) `->` type($result)
  }];
  let hasVerifier = 1;
}

def FSDP_ScatterAddRowsOp : FSDP_Op<"scatter_add_rows", [Pure]> {
  let summary = "add rows into a table at ids (the adjoint of gather_rows)";
  let description = [{
    `result = init (or zero); for i in order: result[ids[i], :] += updates[i, :]`.
    Rows are added in the order of ids, so repeated ids give the same bits always.

    Constraints: (C1) the result has rank 2, ids are integers; (C2) updates have
    the shape of ids with the result's columns appended; (C3) init has the result's type.
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$updates, RankedTensorOf<[AnyInteger]>:$ids,
                       Optional<2DTensorOf<[AnyFloat]>>:$init);
  let results = (outs 2DTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $updates `at` $ids (`into` $init^ `(` type($init) `)`)? attr-dict `:` type($updates) `,` type($ids) `->` type($result)
  }];
  let hasVerifier = 1;
}

def FSDP_CrossEntropyOp : FSDP_Op<"cross_entropy", [Pure]> {
  let summary = "mean negative log-likelihood of targets under softmax(logits)";
  let description = [{
    `lse[n] = log Σ_v exp(logits[n, v])`; `loss = Σ_n (lse[n] - logits[n, t[n]]) / N`
    over the N rows with t[n] ≠ `ignore_index` (all rows when there is none); 0 when N is 0.
    lse is what the gradient needs.

    Constraints: (C1) logits have rank 2; targets and lse have rank 1 and as many
    rows; (C2) targets are integers; (C3) loss is a rank-0 tensor.

    ```mlir
    %loss, %lse = fsdp.cross_entropy %logits, %targets : tensor<256x50257xf32>, tensor<256xi64> -> tensor<f32>, tensor<256xf32>
    ```
  }];
  let arguments = (ins 2DTensorOf<[AnyFloat]>:$logits, 1DTensorOf<[AnyInteger]>:$targets,
                       OptionalAttr<I64Attr>:$ignore_index);
  let results = (outs 0DTensorOf<[AnyFloat]>:$loss, 1DTensorOf<[AnyFloat]>:$lse);
  let assemblyFormat = [{
    $logits `,` $targets (`ignore` $ignore_index^)? attr-dict `:` type($logits) `,` type($targets)
    `->` type($loss) `,` type($lse)
  }];
  let hasVerifier = 1;
}

def FSDP_CrossEntropyGradOp : FSDP_Op<"cross_entropy_grad", [Pure]> {
  let summary = "gradient of cross_entropy for the logits";
  let description = [{
    `dlogits[n, v] = gloss / N · (exp(logits[n, v] - lse[n]) - [v = t[n]])`, and 0
    in ignored rows. Constraints: as of `fsdp.cross_entropy`; (C4) the result has the
    shape of logits.
  }];
  let arguments = (ins 2DTensorOf<[AnyFloat]>:$logits, 1DTensorOf<[AnyInteger]>:$targets,
                       1DTensorOf<[AnyFloat]>:$lse, 0DTensorOf<[AnyFloat]>:$gloss,
                       OptionalAttr<I64Attr>:$ignore_index);
  let results = (outs 2DTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $logits `,` $targets `,` $lse `,` $gloss (`ignore` $ignore_index^)? attr-dict `:`
    type($logits) `,` type($targets) `,` type($lse) `,` type($gloss) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // FSDP_IR_FSDPTENSOROPS_TD
