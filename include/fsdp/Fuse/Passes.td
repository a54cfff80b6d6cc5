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
  let summary = "Write raised ops as linalg.generic";
  let description = [{
    - Requires: static shapes.
    - Ensures: no `linalg.softmax`, `fsdp.gather_rows`, `fsdp.cross_entropy`,
      `fsdp.cross_entropy_grad`, `fsdp.random` or `fsdp.gemm`, and no named linalg op but
      `linalg.contract` and `linalg.fill`. Sums of types narrower than f32 are in f32.
      `fsdp.attention` and `fsdp.attention_grad` stay, or else (`fuse-attention=false`; or the target has no kernel, which a
      warning says) have their scores whole in memory.
    - Keeps: values, up to the rounding of intermediate results.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let options = [StepOption<"fuseAttention", "fuse-attention", "bool">];
  let statistics = [Statistic<"numDecomposed", "num-decomposed", "Ops written as generics">];
}

def ChunkRowsPass : Pass<"fsdp-chunk-rows", "::mlir::func::FuncOp"> {
  let summary = "Compute what is wider than a limit for a chunk of rows at a time";
  let description = [{
    - Requires: what `fsdp-decompose-named-ops` ensures.
    - Ensures: where the result of a contraction takes more than the limit and is used up row by row (logits, by a
      loss and its gradient), the contraction and its readers are written out chunk by chunk; what is
      alive of it at a time takes no more than the limit, or `min-rows` rows.
    - Keeps: values; a contraction over the rows rounds once per chunk.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"maxBytes", "max-bytes", "int64_t", /*default=*/"33554432",
           "Bytes that results may take whole, and chunks of them at most; 0: no limit.">,
    Option<"minRows", "min-rows", "int64_t", /*default=*/"16", "Rows of a chunk, about, where the limit allows fewer.">,
    Option<"remarks", "remarks", "bool", /*default=*/"false", "Say what is in chunks.">];
  let statistics = [Statistic<"numGroups", "num-groups", "Contractions in chunks">,
                    Statistic<"numChunks", "num-chunks", "Chunks written">];
}

def FormDispatchesPass : Pass<"fsdp-form-dispatches", "::mlir::func::FuncOp"> {
  let summary = "Group tensor ops into dispatches, one kernel each";
  let description = [{
    - Requires: what `fsdp-decompose-named-ops` ensures.
    - Ensures: tensor computation only in `fsdp.dispatch` (attribute `kind`: map, row,
      column, contract, attention, scatter, scalar, copy); outside of them collectives,
      contiguous views, the micro-batch loop. Constants, fills, strided views and
      cheap broadcasts and tensors in a wider float type are inside the dispatches that use them.
      A dispatch of several members has at most `max-ops` ops, without those that are copied into it. Chains of more than
      twice as many scalars or views that a kernel would have to compute are refused.
    - Keeps: values and the order of collectives.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let options = [
    Option<"window", "window", "unsigned", /*default=*/"48",
           "An op joins a producer's dispatch over at most this many ops of program order.">,
    Option<"maxOps", "max-ops", "int64_t", /*default=*/"2048",
           "Ops that a dispatch of several members holds at most, those in bodies of linalg ops included.">];
  let statistics = [Statistic<"numDispatches", "num-dispatches", "Dispatches formed">,
                    Statistic<"numGrouped", "num-grouped", "Ops that share a dispatch with another">];
}

def AlignRowsPass : Pass<"fsdp-align-rows", "::mlir::func::FuncOp"> {
  let summary = "Begin rows of factors at multiples of some bytes";
  let description = [{
    - Requires: dispatches, none in place.
    - Ensures: what a dispatch makes, dispatches alone read and a contraction reads as a factor has rows of a multiple of
      `bytes`: longer ones, whose last elements nothing reads. Other factors are copied so, where
      each element is read by 512 products or more.
    - Keeps: values.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::tensor::TensorDialect"];
  let options = [Option<"bytes", "bytes", "int64_t", /*default=*/"16", "Rows begin at multiples of it.">];
  let statistics = [Statistic<"numPadded", "num-padded", "Results with longer rows">,
                    Statistic<"numCopied", "num-copied", "Factors that are copied">];
}

def AssignInplacePass : Pass<"fsdp-assign-inplace", "::mlir::func::FuncOp"> {
  let summary = "Let dispatches write over operands that die";
  let description = [{
    - Requires: dispatches.
    - Ensures: a result is in place of an operand of its type where the operand
      has no later use and each of its elements is read only where the result's
      is written; state arguments (`fsdp.updates`) first.
    - Keeps: values.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numInplace", "num-inplace", "Results written over an operand">];
}

def VerifyFusedPass : Pass<"fsdp-verify-fused", "::mlir::func::FuncOp"> {
  let summary = "Check what holds after the Fuse stage";
  let description = [{
    - Requires: nothing.
    - Ensures: only dispatches, collectives, contiguous views, the micro-batch loop,
      index constants and the return stand in the function; every dispatch has at
      most one contraction or scatter, and one with attention nothing else. Emits one error per offending op.
    - Keeps: everything.
  }];
  let statistics = [Statistic<"numChecked", "num-checked", "Ops checked">];
}

#endif // FSDP_FUSE_PASSES_TD
