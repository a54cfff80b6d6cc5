//===- FSDPTensorOps.td - Raised tensor operations ---------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPTENSOROPS_TD
#define FSDP_IR_FSDPTENSOROPS_TD

include "fsdp/IR/FSDPBase.td"

def FSDP_GatherRowsOp : FSDP_Op<"gather_rows", [Pure]> {
  let summary = "look up rows of a table at ids (an embedding)";
  let description = [{
    `result[i.., :] = table[ids[i..], :]`. Ids must be in [0, rows). The op does not check ids,
    because the runtime checks the ids of a batch (`fsdp.limit`).

    Constraints: (C1) the table has rank 2, and ids are integers; (C2) the result has the shape of
    the ids followed by the table's columns; (C3) the result has the table's element type.

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
    `result = init (or zero); for i in order: result[ids[i], :] += updates[i, :]`. Rows are added
    in the order of the ids, so that repeated ids always give the same bits.

    Constraints: (C1) the result has rank 2, and ids are integers; (C2) updates have the shape of
    the ids followed by the result's columns; (C3) init has the type of the result.
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$updates, RankedTensorOf<[AnyInteger]>:$ids,
                       Optional<2DTensorOf<[AnyFloat]>>:$init);
  let results = (outs 2DTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $updates `at` $ids (`into` $init^ `(` type($init) `)`)? attr-dict `:` type($updates) `,` type($ids) `->` type($result)
  }];
  let hasVerifier = 1;
}

// The type of operands that are numbers of a run or of a rank, such as the seed, the step, the first
// sample, or the coordinate of the rank.
def FSDP_KeyTensor : 0DTensorOf<[I64]>, BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI64Type())">;

def FSDP_CrossEntropyOp : FSDP_Op<"cross_entropy", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "mean negative log-likelihood of targets under softmax(logits)";
  let description = [{
    For row n, class v and target t[n]: `lse[n] = log Σ_v exp(logits[n, v])`, and `loss = Σ_n
    (lse[n] - logits[n, t[n]]) / N` over the N rows with t[n] ≠ `ignore_index`, or over all rows if
    `ignore_index` is absent. If N is 0, the loss is 0. `fsdp.cross_entropy_grad` reads lse.

    With `classes`, the ranks of `axes` have slices of the classes: column v of the rank with
    coordinate c is class c · columns + v. Targets and results are whole. The stage Fuse turns the
    op into sums over the own classes, and one `fsdp.all_reduce` of one column per rank and row, for
    the rank's log-sum-exp, and one more column for the target's logit.

    Constraints: (C1) logits have rank 2; targets and lse have rank 1 and one element per row;
    (C2) targets are integers; (C3) the loss is a rank-0 tensor; (C4) `mesh` names an `fsdp.mesh`,
    of which `axes` names axes.

    ```mlir
    %loss, %lse = fsdp.cross_entropy %logits, %targets : tensor<256x50257xf32>, tensor<256xi64> -> tensor<f32>, tensor<256xf32>
    %loss, %lse = fsdp.cross_entropy %slice, %targets classes %c over @mesh ["tensor"] : tensor<256x128xf32>, tensor<256xi64>, tensor<i64> -> tensor<f32>, tensor<256xf32>
    ```
  }];
  let arguments = (ins 2DTensorOf<[AnyFloat]>:$logits, 1DTensorOf<[AnyInteger]>:$targets,
                       Optional<FSDP_KeyTensor>:$coordinate, OptionalAttr<I64Attr>:$ignore_index,
                       OptionalAttr<FlatSymbolRefAttr>:$mesh, OptionalAttr<StrArrayAttr>:$axes);
  let results = (outs 0DTensorOf<[AnyFloat]>:$loss, 1DTensorOf<[AnyFloat]>:$lse);
  let assemblyFormat = [{
    $logits `,` $targets (`classes` $coordinate^ `over` $mesh $axes)? (`ignore` $ignore_index^)? attr-dict
    `:` type($logits) `,` type($targets) (`,` type($coordinate)^)? `->` type($loss) `,` type($lse)
  }];
  let hasVerifier = 1;
}

def FSDP_CrossEntropyGradOp : FSDP_Op<"cross_entropy_grad", [Pure]> {
  let summary = "gradient of cross_entropy with respect to the logits";
  let description = [{
    `dlogits[n, v] = gloss / N · (exp(logits[n, v] - lse[n]) - [v = t[n]])`, and 0 in ignored
    rows. With `classes`, column v is class c · columns + v, as in `fsdp.cross_entropy`.

    Constraints: (C1) to (C3) of `fsdp.cross_entropy`; (C4) the result has the shape of the logits.
  }];
  let arguments = (ins 2DTensorOf<[AnyFloat]>:$logits, 1DTensorOf<[AnyInteger]>:$targets,
                       1DTensorOf<[AnyFloat]>:$lse, 0DTensorOf<[AnyFloat]>:$gloss,
                       Optional<FSDP_KeyTensor>:$coordinate, OptionalAttr<I64Attr>:$ignore_index);
  let results = (outs 2DTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $logits `,` $targets `,` $lse `,` $gloss (`classes` $coordinate^)? (`ignore` $ignore_index^)? attr-dict `:`
    type($logits) `,` type($targets) `,` type($lse) `,` type($gloss) (`,` type($coordinate)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def FSDP_RandomOp : FSDP_Op<"random", [Pure]> {
  let summary = "random numbers that depend on position, not on order";
  let description = [{
    Element `l` of the result, where `l` is its row-major index, is a function of the five numbers
    below alone. The element therefore does not depend on the number of ranks, threads and
    micro-batches, and a recomputation gives the same value.

    ```
      seed, step        of the run
      sample            `first` + l / per_sample: its number in the global batch
      site              number of the random op in the model
      element           l mod per_sample: its place in the sample
    ```

    `first` is the number of the tensor's first sample in the global batch. A sample has
    `per_sample` elements (default: the elements of one index of dimension 0). With `p` words per
    element, element `e` of a sample is computed from these words of Philox4x32-10:

    ```
      key      k0 = seed mod 2^32                k1 = (seed / 2^32) mod 2^32
      counter  c0 = e / (4 / p)                  c1 = sample mod 2^32
               c2 = step mod 2^32                c3 = site
      words    w[0..3] = philox(counter, key);   x = w[p · (e mod (4 / p))], and the one after it
    ```

    - `uniform` yields multiples of 2^-m in `[0, 1)`, where m is 24 for f32, 8 for bf16 and 11 for
      f16. For these types, p = 1 and the value is `(x >> (32 - m)) · 2^-m`. For f64, p = 2 and the
      value is `((x' · 2^32 + x) >> 11) · 2^-53`, where `x'` is the word after `x`.
    - `bernoulli keep q` (p = 1) keeps an element if `x < round(q · 2^32)`. The value of a kept
      element is `1 / q`; other elements are 0. With element type i1, the value is true for kept
      elements. The kept elements are the same for all element types.

    The numbers are equal to the numbers that the runtime's generator yields for the stream `site ·
    2^32 + step`. In a step, `seed` and `step` are elements 4 and 5 of the rank block. Sites from
    2^31 on are reserved for rounding the optimizer's state.

    Constraints:

    - (C1) The result has a static shape, and the element type f16, bf16, f32 or f64, or i1 with
      `bernoulli`.
    - (C2) `site` is in [0, 2^32).
    - (C3) `per_sample` is from 1 to 2^33, so that no counter is used twice. `per_sample` divides
      the number of elements of the result.
    - (C4) `keep` is present only with `bernoulli`, and is in [0, 1].

    ```mlir
    %u = fsdp.random uniform seed %seed step %step first %sample site 3 : tensor<4x128x64xf32>
    %m = fsdp.random bernoulli keep 0.9 seed %seed step %step first %sample site 4 per_sample 8192 : tensor<512x64xf32>
    ```
  }];
  let arguments = (ins FSDP_RandomKindAttr:$kind, OptionalAttr<F64Attr>:$keep,
                       FSDP_KeyTensor:$seed, FSDP_KeyTensor:$step, FSDP_KeyTensor:$first,
                       I64Attr:$site, OptionalAttr<I64Attr>:$per_sample);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $kind (`keep` $keep^)? `seed` $seed `step` $step `first` $first `site` $site (`per_sample` $per_sample^)?
    attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    /// Returns the number of elements of one sample, which is `per_sample` or, if this attribute is
    /// absent, its default.
    int64_t getElementsPerSample();
  }];
}

def FSDP_GemmOp : FSDP_Op<"gemm", [Pure, DestinationStyleOpInterface]> {
  let summary = "a matrix product by a library call";
  let description = [{
    `result = epilogue(alpha · op(A) · op(B) + beta · C + bias)`, where op transposes the last two
    dimensions of a factor whose flag is set. The leading dimensions are batch dimensions. Products
    are summed in f32 (in f64 for f64 operands), and the result is rounded once, after the epilogue.
    `C` is the destination; with `beta = 0`, the op does not read `C`. `bias` is added to every row.

    `gelu_tanh` is `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`.

    Constraints:

    - (C1) A, B and C have equal ranks of at least 2, and static shapes.
    - (C2) The leading dimensions (batches) of A, B and C are equal.
    - (C3) op(A) is M×K, op(B) is K×N, and C is M×N.
    - (C4) A and B have equal element types. C has their element type, or the type of the sums.
    - (C5) The result has the type of C.
    - (C6) The bias is 1-D, has N elements, and has the element type of C.
    - (C7) alpha and beta are finite.

    ```mlir
    %d = fsdp.gemm %a, %b into %c transpose [false, true] alpha 1.0 beta 0.0 bias %e epilogue gelu_tanh
        : tensor<64x32xbf16>, tensor<16x32xbf16>, tensor<64x16xbf16>, tensor<16xbf16> -> tensor<64x16xbf16>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$a, RankedTensorOf<[AnyFloat]>:$b, RankedTensorOf<[AnyFloat]>:$c,
                       Optional<1DTensorOf<[AnyFloat]>>:$bias, BoolAttr:$transpose_a, BoolAttr:$transpose_b,
                       F64Attr:$alpha, F64Attr:$beta,
                       DefaultValuedAttr<FSDP_EpilogueAttr, "::mlir::fsdp::Epilogue::none">:$epilogue);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $a `,` $b `into` $c `transpose` `[` $transpose_a `,` $transpose_b `]` `alpha` $alpha `beta` $beta
    (`bias` $bias^)? (`epilogue` $epilogue^)? attr-dict `:` type($a) `,` type($b) `,` type($c) (`,` type($bias)^)?
    `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getCMutable(); }
  }];
}

#endif // FSDP_IR_FSDPTENSOROPS_TD
