//===- FSDPAttentionOps.td - Attention with any score function -*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPATTENTIONOPS_TD
#define FSDP_IR_FSDPATTENTIONOPS_TD

include "fsdp/IR/FSDPBase.td"
include "mlir/IR/OpAsmInterface.td"

// 16-bit floats, f32, f64.
def FSDP_AttentionTensor : 4DTensorOf<[F16, BF16, F32, F64]>;
def FSDP_LseTensor : 3DTensorOf<[F32, F64]>;

def FSDP_AttentionOp : FSDP_Op<"attention", [Pure, IsolatedFromAbove,
                                DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "softmax attention with a score function and a mask function";
  let description = [{
    Per batch `b`, query head `h`, query row `q`, with `h' = h / (query heads / kv heads)`:

    ```
      s[k]  = score_mod(scale · Σ_d Q[b,h,q,d] · K[b,h',k,d], b, h, q, k)
      s[k]  = -inf  where not mask_mod(b, h, q, k)
      lse   = log Σ_k exp(s[k])
      w[k]  = exp(s[k] - lse) · weight_mod(b, h, q, k)
      o[d]  = Σ_k w[k] · V[b,h',k,d]
    ```

    A row without a key has o = 0 and lse = -inf. Scores, sums and functions are in
    f32 (f64 for f64 operands). Each region may be absent: no change, nothing masked, a
    factor of 1. `weight_mod` is for dropout: its factors change what is mixed, not what
    the weights are normalised by, and have no gradient.

    The regions are straight lines of scalar `arith` and `math`, and `fsdp.random_element`.
    Their last arguments are the captured tensors, which they read with `tensor.extract` at
    indices that they compute. Nothing else enters them, so the rows and heads that a
    function depends on can be read off it. They may use names again that the function around
    them has. As text they come in any order, each once.

    A function may be evaluated where the mask masks, too: its indices have to be in
    range for all b, h, q, k. What it gives there is not used.

    **Lengths that differ.** `q` and `k` count from 0 on both sides, whatever the lengths. A
    causal mask that is aligned bottom-right, as with a cache of earlier keys, says so in
    its region: keep when `q + (Sk - Sq) >= k`.

    Constraints: (C1) Q, K, V are static, of one element type and of at most 2^48 elements; (C2) batches are equal, K and V
    have equal heads and lengths; (C3) Q and K have one head dimension (V may have another);
    (C4) kv heads divide query heads; (C5) O is [batch, heads, Sq, head dimension of V] of their
    element type, LSE [batch, heads, Sq] of f32, or f64 for f64; (C6) scale is finite;
    (C7) captured tensors are static, of f16, bf16, f32, f64 or integers of at most 64
    bits; (C8) a region's arguments are its
    own (score_mod: the score, then b, h, q, k as index; mask_mod, weight_mod: b, h, q, k),
    then the captured tensors; (C9) it yields one value: a score or a factor of the score's
    type, an i1; (C10) it holds pure scalar ops of these types and index, without regions, and `tensor.extract` of
    captured tensors, in weight_mod of integers alone.

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

    Dropout, `%seed`, `%step` and `%first` being captured:

    ```mlir
    weight_mod(%b: index, %h: index, %i: index, %j: index, %seed: tensor<i64>, %step: tensor<i64>, %first: tensor<i64>) {
      %key = tensor.extract %seed[] : tensor<i64>
      %now = tensor.extract %step[] : tensor<i64>
      %sample = tensor.extract %first[] : tensor<i64>
      %own = arith.index_cast %b : index to i64
      %n = arith.addi %sample, %own : i64
      %e = ...  // which of the sample's weights, as index: (h · Sq + i) · Sk + j
      %f = fsdp.random_element bernoulli keep 0.9 seed %key step %now sample %n element %e site 3 : f32
      fsdp.yield %f : f32
    }
    ```
  }];
  let arguments = (ins FSDP_AttentionTensor:$q, FSDP_AttentionTensor:$k, FSDP_AttentionTensor:$v,
                       Variadic<AnyRankedTensor>:$captures, F64Attr:$scale);
  let results = (outs FSDP_AttentionTensor:$o, FSDP_LseTensor:$lse);
  let regions = (region MaxSizedRegion<1>:$scoreMod, MaxSizedRegion<1>:$maskMod, MaxSizedRegion<1>:$weightMod);
  let assemblyFormat = [{
    $q `,` $k `,` $v `scale` $scale (`capture` `(` $captures^ `:` type($captures) `)`)? attr-dict `:`
    type($q) `,` type($k) `,` type($v) `->` type($o) `,` type($lse)
    custom<Functions>($scoreMod, $maskMod, $weightMod)
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def FSDP_AttentionGradOp : FSDP_Op<"attention_grad", [Pure, IsolatedFromAbove,
                                DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "gradients of attention";
  let description = [{
    With s, p = exp(s - lse) and f = weight_mod(b, h, q, k) as in `fsdp.attention` (p = 0 where masked, and in rows
    without a key; δ is Σ_k p · dp, too):

    ```
      dv = Σ_q p · f · do    dp = f · (do · v)    δ = Σ_d o · do
      dsm = p · (dp - δ)     ds = score_grad(dsm, s, b, h, q, k)
      dq = scale · Σ_k ds · k            dk = scale · Σ_q ds · q
    ```

    dk and dv are summed over the query heads of a kv head. `score_mod`, `mask_mod` and `weight_mod` are
    those of the forward. `score_grad(g, s, b, h, q, k, captures..)` is the reverse of
    score_mod at the score `s` before it, `g` the cotangent of its result: it yields the
    cotangent of `s`, and hands those of captured elements to `fsdp.contribute`. Differentiate
    derives it when it makes this op; without score_mod there is none.

    One gradient per captured float tensor, in order, of its shape: the sum of what was
    contributed, over all b, h, q, k that are not masked. (mask_mod and weight_mod have no gradient.)

    Constraints: (C1)…(C10) as of `fsdp.attention`; (C11) O and dO have one type, the type of O;
    (C12) score_grad is there when score_mod is, takes the cotangent, then score_mod's
    arguments, and yields the cotangent of the score; (C13) dQ, dK, dV have the shapes of Q, K, V;
    (C14) one gradient per captured float tensor, of its shape.
  }];
  let arguments = (ins FSDP_AttentionTensor:$q, FSDP_AttentionTensor:$k, FSDP_AttentionTensor:$v,
                       FSDP_AttentionTensor:$o, FSDP_LseTensor:$lse, FSDP_AttentionTensor:$dout,
                       Variadic<AnyRankedTensor>:$captures, F64Attr:$scale);
  let results = (outs FSDP_AttentionTensor:$dq, FSDP_AttentionTensor:$dk, FSDP_AttentionTensor:$dv,
                      Variadic<RankedTensorOf<[AnyFloat]>>:$dcaptures);
  let regions = (region MaxSizedRegion<1>:$scoreMod, MaxSizedRegion<1>:$maskMod, MaxSizedRegion<1>:$weightMod,
                        MaxSizedRegion<1>:$scoreGrad);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $o `,` $lse `,` $dout `scale` $scale
    (`capture` `(` $captures^ `:` type($captures) `)`)? attr-dict `:`
    type($q) `,` type($k) `,` type($v) `,` type($o) `,` type($lse) `,` type($dout) `->`
    type($dq) `,` type($dk) `,` type($dv) (`gradients` `(` type($dcaptures)^ `)`)?
    custom<GradFunctions>($scoreMod, $maskMod, $weightMod, $scoreGrad)
  }];
  let hasVerifier = 1;
}

def FSDP_ContributeOp : FSDP_Op<"contribute", [HasParent<"AttentionGradOp">, MemoryEffects<[MemWrite]>]> {
  let summary = "add to the gradient of an element of a captured tensor";
  let description = [{
    Constraints: (C1) the tensor is an argument of `score_grad`, of floats; (C2) one index per
    dimension.

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
  let summary = "one element of fsdp.random, in a function of attention";
  let description = [{
    The number that `fsdp.random` has for element `element` of sample `sample`, with the same
    kind, `keep`, seed, step and site. An element is counted within its sample.

    Constraints: (C1) the result is f16, bf16, f32 or f64, or i1 with `bernoulli`; (C2) `site` is in
    [0, 2^32); (C3) `keep` is there with `bernoulli` alone, in [0, 1].

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
