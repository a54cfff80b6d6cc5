//===- Passes.td - Passes of the Fuse stage ----------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_FUSE_PASSES_TD
#define FSDP_FUSE_PASSES_TD

include "fsdp/Options/StepOption.td"
include "mlir/Pass/PassBase.td"

def DecomposeNamedOpsPass : Pass<"fsdp-decompose-named-ops", "::mlir::func::FuncOp"> {
  let summary = "Rewrite raised ops as linalg.generic";
  let description = [{
    - Requires: static shapes.
    - Ensures: no `linalg.softmax`, `fsdp.gather_rows`, `fsdp.cross_entropy`,
      `fsdp.cross_entropy_grad`, `fsdp.random` or `fsdp.gemm` is left. The only named linalg ops
      are `linalg.contract` and `linalg.fill`. Sums of types narrower than f32 are computed in
      f32.
    - `fsdp.attention` and `fsdp.attention_grad` remain, except in two cases: `fuse-attention` is
      false, or the target has no kernel for the op. In both cases, the op is rewritten as ops that
      keep all scores in memory. If the target has no kernel, the pass also prints a warning.
    - Keeps: values, up to the rounding of intermediate results.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let options = [StepOption<"fuseAttention", "fuse-attention", "bool">];
  let statistics = [Statistic<"numDecomposed", "num-decomposed", "Ops rewritten as linalg.generic">];
}

def ChunkRowsPass : Pass<"fsdp-chunk-rows", "::mlir::func::FuncOp"> {
  let summary = "Compute large intermediate results in chunks of rows";
  let description = [{
    Logits are an example of a large result: a contraction computes the logits, and the loss and its
    gradient read them row by row.

    - Requires: the form that `fsdp-decompose-named-ops` ensures.
    - Ensures: if a contraction's result is larger than `max-bytes` and is read row by row, the pass
      creates a copy of the contraction and of its readers for each chunk of rows. At any time, at
      most `max-bytes` of the result are alive, or `min-rows` rows if these rows have more bytes.
    - Keeps: values, except that the result of a contraction that sums over rows is rounded once per
      chunk.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"maxBytes", "max-bytes", "int64_t", /*default=*/"33554432",
           "Largest size of a result, and of a chunk of one, in bytes (default 32 MiB); 0: no limit.">,
    Option<"minRows", "min-rows", "int64_t", /*default=*/"16", "Approximate number of rows of a chunk if max-bytes allows fewer.">,
    Option<"warnings", "warnings", "bool", /*default=*/"false", "Print a warning for each chunk larger than max-bytes.">,
    Option<"remarks", "remarks", "bool", /*default=*/"false", "Print a remark for each contraction that is computed in chunks.">];
  let statistics = [Statistic<"numGroups", "num-groups", "Contractions computed in chunks">,
                    Statistic<"numChunks", "num-chunks", "Chunks created">];
}

def FormDispatchesPass : Pass<"fsdp-form-dispatches", "::mlir::func::FuncOp"> {
  let summary = "Group tensor ops into dispatches, one kernel each";
  let description = [{
    - Requires: the form that `fsdp-decompose-named-ops` ensures.
    - Ensures: all tensor computation is in `fsdp.dispatch`, whose attribute `kind` is map, row,
      column, contract, attention, scatter, scalar or copy. Outside of dispatches there are only
      collectives, contiguous views and the micro-batch loop. Constants, fills, strided views, cheap
      broadcasts and conversions to a wider float type are copied into the dispatches that use them.
      A dispatch with several ops has at most `max-ops` ops, in addition to the copied ops. It is an
      error if a dispatch has a chain of more than twice `max-ops` scalar ops or views.
    - Keeps: values and the order of collectives.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let options = [
    Option<"window", "window", "unsigned", /*default=*/"48",
           "Largest distance in program order, in ops, between an op and the dispatch it joins.">,
    Option<"maxOps", "max-ops", "int64_t", /*default=*/"2048",
           "Largest number of ops in a dispatch of several members, including ops in bodies of linalg ops.">];
  let statistics = [Statistic<"numDispatches", "num-dispatches", "Dispatches formed">,
                    Statistic<"numGrouped", "num-grouped", "Ops that share a dispatch with another op">];
}

def AlignRowsPass : Pass<"fsdp-align-rows", "::mlir::func::FuncOp"> {
  let summary = "Pad the rows of the factors of contractions to a multiple of some bytes";
  let description = [{
    - Requires: dispatches that do not write in place.
    - Ensures: if a dispatch computes a factor of a contraction and only dispatches read this
      factor, the size of a row of the factor is a multiple of `bytes`. The rows have additional
      elements at their end, which no op reads. The operands of this dispatch that have the shape of
      the factor are padded too if possible, so that the factor can overwrite one of these operands.
      With `copies`, any other factor is copied to a tensor with padded rows if each element of the
      factor occurs in at least 512 products.
    - Keeps: values.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"bytes", "bytes", "int64_t", /*default=*/"16", "Alignment of rows, in bytes (default 16).">,
    Option<"copies", "copies", "bool", /*default=*/"true",
           "Copy factors that no dispatch computes, such as parameters, to padded rows (default true).">];
  let statistics = [Statistic<"numPadded", "num-padded", "Results whose rows are padded">,
                    Statistic<"numCopied", "num-copied", "Factors that are copied into padded rows">];
}

def FoldHeadCopiesPass : Pass<"fsdp-fold-head-copies", "::mlir::func::FuncOp"> {
  let summary = "Let attention read and write heads inside the tensors of projections";
  let description = [{
    Projections have the layout [batch, rows, heads, cols], attention [batch, heads, rows, cols].

    - Requires: dispatches that do not write in place.
    - Ensures: a dispatch that only copies a tensor of heads between these layouts becomes a part of
      the attention that computes the tensor, or of all attentions that read it. Offsets and
      distances of heads and rows must be multiples of `bytes`, and no more bytes may be kept than
      before.
    - Keeps: values.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::tensor::TensorDialect"];
  let options = [Option<"bytes", "bytes", "int64_t", /*default=*/"16",
                        "Alignment of heads and rows, in bytes (default 16).">];
  let statistics = [Statistic<"numFolded", "num-folded", "Copies that became a part of attention">];
}

def JoinFactorSumsPass : Pass<"fsdp-join-factor-sums", "::mlir::func::FuncOp"> {
  let summary = "Compute sums of a factor in the dispatch of its contraction";
  let description = [{
    The gradient of a bias is a sum over the rows of the output's gradient. The contraction that
    computes the gradient of the weight reads the same tensor.

    - Requires: dispatches that do not write in place.
    - Ensures: a dispatch that only adds the elements of one operand over some of its dimensions, in
      f32, becomes a part of a contraction's dispatch. The contraction has this operand as a factor
      and adds products over the same dimensions. This requires a target whose kernel computes both;
      without a target, the pass joins all such dispatches.
    - Keeps: values, up to the order of sums.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numJoined", "num-joined", "Sums joined with a contraction">];
}

def AssignInplacePass : Pass<"fsdp-assign-inplace", "::mlir::func::FuncOp"> {
  let summary = "Let dispatches overwrite operands that are not used again";
  let description = [{
    - Requires: dispatches.
    - Ensures: a result overwrites an operand of the same type if the operand has no later use, and
      if no element of the operand is read after the element is overwritten. If several operands
      satisfy these conditions, a state argument (`fsdp.updates`) is preferred.
    - Keeps: values.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numInplace", "num-inplace", "Results that overwrite an operand">];
}

def VerifyFusedPass : Pass<"fsdp-verify-fused", "::mlir::func::FuncOp"> {
  let summary = "Check the rules that hold after Fuse";
  let description = [{
    - Requires: nothing.
    - Ensures: the function contains only dispatches, collectives, contiguous views, the micro-batch
      loop, index constants and the return. A dispatch has at most one contraction or scatter. A
      dispatch with attention has no other op. The pass prints one error for each op that violates a
      rule.
    - Keeps: the IR.
  }];
  let statistics = [Statistic<"numChecked", "num-checked", "Ops checked">];
}

#endif // FSDP_FUSE_PASSES_TD
