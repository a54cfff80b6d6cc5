//===- FSDPAttentionOps.td - Attention with any score function -*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPATTENTIONOPS_TD
#define FSDP_IR_FSDPATTENTIONOPS_TD

include "fsdp/IR/FSDPBase.td"
include "mlir/IR/OpAsmInterface.td"

// A tensor of f16, bf16, f32 or f64.
def FSDP_AttentionTensor : 4DTensorOf<[F16, BF16, F32, F64]>;
def FSDP_LseTensor : 3DTensorOf<[F32, F64]>;

def FSDP_AttentionOp : FSDP_Op<"attention", [Pure, IsolatedFromAbove,
                                DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "softmax attention with a score function and a mask function";
  let description = [{
    For each batch `b`, query head `h` and query row `q`, with `h' = h / (query heads / kv
    heads)`:

    ```
      s[k]  = score_mod(scale · Σ_d Q[b,h,q,d] · K[b,h',k,d], b, h, q, k)
      s[k]  = -inf  where not mask_mod(b, h, q, k)
      lse   = log Σ_k exp(s[k])
      w[k]  = exp(s[k] - lse) · weight_mod(b, h, q, k)
      o[d]  = Σ_k w[k] · V[b,h',k,d]
    ```

    A row whose keys are all masked has o = 0 and lse = -inf. Scores, sums and regions are computed
    in f32, or in f64 if the operands are f64. Each region may be absent. If `score_mod` is absent,
    no score is changed. If `mask_mod` is absent, no score is masked. If `weight_mod` is absent, no
    weight is changed. `weight_mod` yields factors of the normalised weights, for dropout. The
    factors have no gradient.

    A region is straight-line code of scalar `arith` and `math` ops and `fsdp.random_element`. The
    last arguments of a region are the captured tensors, which the region reads with
    `tensor.extract` at computed indices. A region reads no other value from outside, so that an
    analysis can determine the rows and heads on which the region depends. Names of values in a
    region may also occur in the enclosing function. Regions may be written in any order.

    A region may also be evaluated at masked positions, so the indices that it computes must be in
    range for all b, h, q, k. The result at a masked position is not used.

    **Lengths that differ.** The indices `q` and `k` both count from 0. With a cache of earlier
    keys, the last query corresponds to the last key. For Sq queries and Sk keys, the region of a
    causal mask must therefore keep the score if `q + (Sk - Sq) >= k`.

    **Ring.** With `ring C`, K and V are the blocks of this rank on the axis `context` of C ranks.
    The op attends to the blocks of all C ranks, and `k` is the index in the whole sequence. Row i
    of the block of rank r is row i + r · Sk or, with `striped`, i · C + r. The gradients dk and dv
    are the sums over the ranks for the block of this rank. The pass `fsdp-expand-ring` rewrites
    the op as C ops without `ring`.

    Constraints:

    - (C1) Q, K and V have static shapes, the same element type, and at most 2^48 elements each.
    - (C2) Batch sizes are equal; K and V have equal numbers of heads and equal lengths.
    - (C3) Q and K have equal head dimensions. V may have a different head dimension.
    - (C4) The number of kv heads divides the number of query heads.
    - (C5) O has the shape [batch, heads, Sq, head dimension of V] and the element type of Q. LSE
      has the shape [batch, heads, Sq] and the element type f32, or f64 for f64 operands.
    - (C6) The scale is finite.
    - (C7) Captured tensors have static shapes. The elements of captured tensors are f16, bf16, f32,
      f64, or integers of at most 64 bits.
    - (C8) The last arguments of a region are the captured tensors. The arguments before them are b,
      h, q and k of type index. In score_mod, the score comes before b.
    - (C9) score_mod and weight_mod yield one value of the score's type; mask_mod yields an i1.
    - (C10) A region contains only `tensor.extract` of captured tensors, and pure scalar ops without
      regions. The type of a value is index or a type of (C7). The region weight_mod reads only
      tensors of integers.
    - (C15) `ring` is at least 2. An op with `striped` has `ring`. If a function of an op with `ring`
      reads `k`, the last captured tensor is a tensor<i64> with the coordinate of the rank.

    ```mlir
    %o, %lse = fsdp.attention %q, %k, %v scale 0.125 capture(%slopes : tensor<8xf32>)
        : tensor<2x8x64x64xf32>, tensor<2x2x96x64xf32>, tensor<2x2x96x64xf32> -> tensor<2x8x64x64xf32>, tensor<2x8x64xf32>
        score_mod(%s: f32, %b: index, %h: index, %i: index, %j: index, %m: tensor<8xf32>) {
      %slope = tensor.extract %m[%h] : tensor<8xf32>
      %d = arith.subi %j, %i : index
      ...
      fsdp.yield %biased : f32
    } mask_mod(%b: index, %h: index, %i: index, %j: index, %m: tensor<8xf32>) {
      %c32 = arith.constant 32 : index
      %end = arith.addi %i, %c32 : index
      %keep = arith.cmpi sge, %end, %j : index
      fsdp.yield %keep : i1
    }
    ```

    Dropout captures `%seed`, `%step` and `%first`:

    ```mlir
    weight_mod(%b: index, %h: index, %i: index, %j: index, %seed: tensor<i64>, %step: tensor<i64>, %first: tensor<i64>) {
      %key = tensor.extract %seed[] : tensor<i64>
      %now = tensor.extract %step[] : tensor<i64>
      %sample = tensor.extract %first[] : tensor<i64>
      %own = arith.index_cast %b : index to i64
      %n = arith.addi %sample, %own : i64
      %e = ...  // index of the weight within its sample: (h · Sq + i) · Sk + j
      %f = fsdp.random_element bernoulli keep 0.9 seed %key step %now sample %n element %e site 3 : f32
      fsdp.yield %f : f32
    }
    ```
  }];
  let arguments = (ins FSDP_AttentionTensor:$q, FSDP_AttentionTensor:$k, FSDP_AttentionTensor:$v,
                       Variadic<AnyRankedTensor>:$captures, F64Attr:$scale, OptionalAttr<I64Attr>:$ring,
                       UnitAttr:$striped);
  let results = (outs FSDP_AttentionTensor:$o, FSDP_LseTensor:$lse);
  let regions = (region MaxSizedRegion<1>:$scoreMod, MaxSizedRegion<1>:$maskMod, MaxSizedRegion<1>:$weightMod);
  let assemblyFormat = [{
    $q `,` $k `,` $v `scale` $scale (`ring` $ring^)? (`striped` $striped^)?
    (`capture` `(` $captures^ `:` type($captures) `)`)? attr-dict `:`
    type($q) `,` type($k) `,` type($v) `->` type($o) `,` type($lse)
    custom<Functions>($scoreMod, $maskMod, $weightMod)
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def FSDP_AttentionGradOp : FSDP_Op<"attention_grad", [Pure, IsolatedFromAbove,
                                DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "gradients of attention with respect to Q, K, V and captured tensors";
  let description = [{
    s and lse are defined as in `fsdp.attention`. Let p = exp(s - lse) and f = weight_mod(b, h, q,
    k). The value p is 0 at masked positions, and in rows whose keys are all masked. The value δ
    also equals Σ_k p · dp. The operand `lse` is -inf in rows whose keys are all masked, as
    `fsdp.attention` computes it; with another value, dq of such a row is undefined.

    ```
      dv = Σ_q p · f · do    dp = f · (do · v)    δ = Σ_d o · do
      dsm = p · (dp - δ)     ds = score_grad(dsm, s, b, h, q, k)
      dq = scale · Σ_k ds · k            dk = scale · Σ_q ds · q
    ```

    The gradients dk and dv of a kv head are sums over the query heads that read this kv head. The
    regions `score_mod`, `mask_mod` and `weight_mod` are the same as in the `fsdp.attention` of the
    forward.

    `score_grad(g, s, b, h, q, k, captures..)` is the derivative of score_mod. `s` is the score
    before score_mod, and `g` is the cotangent of the result of score_mod. The region yields the
    cotangent of `s`, and passes cotangents of captured elements to `fsdp.contribute`. Differentiate
    derives the region when it creates this op. Without score_mod, the op has no score_grad.

    The op has one gradient per captured float tensor, in the order and with the shapes of these
    tensors. A gradient is the sum of the contributions to its tensor over all positions (b, h, q,
    k) that are not masked. The regions mask_mod and weight_mod have no gradient.

    Constraints:

    - (C1) to (C10), and (C15), as in `fsdp.attention`.
    - (C11) The operands O and dO have the type of the result O of `fsdp.attention`.
    - (C12) score_grad is present if and only if score_mod is present. The arguments of score_grad
      are the cotangent g, then the arguments of score_mod. The region yields the cotangent of the
      score.
    - (C13) dQ, dK and dV have the shapes of Q, K and V.
    - (C14) There is one gradient per captured float tensor, with the tensor's shape.
  }];
  let arguments = (ins FSDP_AttentionTensor:$q, FSDP_AttentionTensor:$k, FSDP_AttentionTensor:$v,
                       FSDP_AttentionTensor:$o, FSDP_LseTensor:$lse, FSDP_AttentionTensor:$dout,
                       Variadic<AnyRankedTensor>:$captures, F64Attr:$scale, OptionalAttr<I64Attr>:$ring,
                       UnitAttr:$striped);
  let results = (outs FSDP_AttentionTensor:$dq, FSDP_AttentionTensor:$dk, FSDP_AttentionTensor:$dv,
                      Variadic<RankedTensorOf<[AnyFloat]>>:$dcaptures);
  let regions = (region MaxSizedRegion<1>:$scoreMod, MaxSizedRegion<1>:$maskMod, MaxSizedRegion<1>:$weightMod,
                        MaxSizedRegion<1>:$scoreGrad);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $o `,` $lse `,` $dout `scale` $scale (`ring` $ring^)? (`striped` $striped^)?
    (`capture` `(` $captures^ `:` type($captures) `)`)? attr-dict `:`
    type($q) `,` type($k) `,` type($v) `,` type($o) `,` type($lse) `,` type($dout) `->`
    type($dq) `,` type($dk) `,` type($dv) (`gradients` `(` type($dcaptures)^ `)`)?
    custom<GradFunctions>($scoreMod, $maskMod, $weightMod, $scoreGrad)
  }];
  let hasVerifier = 1;
}

def FSDP_ContributeOp : FSDP_Op<"contribute", [HasParent<"AttentionGradOp">, MemoryEffects<[MemWrite]>]> {
  let summary = "add a value to the gradient of an element of a captured tensor";
  let description = [{
    Constraints: (C1) the tensor is an argument of `score_grad`, and its elements are floats; (C2)
    there is one index per dimension of the tensor.

    ```mlir
    fsdp.contribute %g to %slopes[%h] : f32, tensor<8xf32>
    ```
  }];
  let arguments = (ins AnyFloat:$value, RankedTensorOf<[AnyFloat]>:$capture, Variadic<Index>:$indices);
  let assemblyFormat = [{
    $value `to` $capture `[` $indices `]` attr-dict `:` type($value) `,` type($capture)
  }];
  let hasVerifier = 1;
}

def FSDP_RandomElementOp : FSDP_Op<"random_element", [Pure, ParentOneOf<["AttentionOp", "AttentionGradOp"]>]> {
  let summary = "one element of fsdp.random, in a region of attention";
  let description = [{
    Returns the number that an `fsdp.random` of equal kind, `keep`, seed, step and site computes for
    element `element` of sample `sample`. `element` is an index within the sample.

    Constraints: (C1) the result is f16, bf16, f32 or f64, or i1 with `bernoulli`; (C2) `site` is
    in [0, 2^32); (C3) `keep` is present only with `bernoulli`, and is in [0, 1].

    ```mlir
    %f = fsdp.random_element bernoulli keep 0.9 seed %seed step %step sample %n element %e site 3 : f32
    ```
  }];
  let arguments = (ins FSDP_RandomKindAttr:$kind, OptionalAttr<F64Attr>:$keep,
                       I64:$seed, I64:$step, I64:$sample, Index:$element, I64Attr:$site);
  let results = (outs AnyTypeOf<[F16, BF16, F32, F64, I1]>:$result);
  let assemblyFormat = [{
    $kind (`keep` $keep^)? `seed` $seed `step` $step `sample` $sample `element` $element `site` $site
    attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

#endif // FSDP_IR_FSDPATTENTIONOPS_TD
