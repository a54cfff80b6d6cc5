//===- Passes.td - Passes of Differentiate -----------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_DIFFERENTIATE_PASSES
#define FSDP_DIFFERENTIATE_PASSES

include "fsdp/Options/StepOption.td"
include "mlir/Pass/PassBase.td"

def WeighLossPass : Pass<"fsdp-weigh-loss", "::mlir::ModuleOp"> {
  let summary = "Weigh the loss by how many targets count in it";
  let description = [{
    For `--grad-divide=tokens`: each rank's loss of a micro-batch is a mean over targets of which some may not
    count (`ignore_index`). Multiplied by a weight that Update provides, count · n / (sum of counts) over the n
    micro-batches of all ranks, the mean of those losses is that of one merged batch, and so are the gradients.

    - Requires: functions with `fsdp.program`, not yet differentiated.
    - Ensures: where targets may not count, one more argument `{fsdp.loss_weight}`, the loss multiplied by it. Else
      nothing: all weights would be 1.
    - Keeps: what is computed up to the loss.

    Refused: a loss that is not `c + Σ c_i · cross_entropy` with the same targets for all, `c` the same for all batches.
  }];
  let statistics = [
    Statistic<"numWeighed", "num-weighed", "Losses that are weighed">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def AddBackwardPass : Pass<"fsdp-add-backward", "::mlir::ModuleOp"> {
  let summary = "Append the gradients of the loss to each program";
  let description = [{
    Reverse mode, on functions of program `step` and `reference` and on functions
    with `fsdp.param` arguments.

    - Requires: the model contract, sharded or not: one block, static shapes, the
      loss (a float tensor of rank 0) as first result.
    - Ensures: `@loss` of program `step` is `@step`, its forward alone `@eval`. One
      more result per unit with trainable parameters, its gradient shard
      `{fsdp.unit = @u}`, and per trainable argument that the loss depends on, its
      gradient `{fsdp.gradient = I}`, in argument order. With a loss scale, one more
      argument `{fsdp.loss_scale}`, which the gradients are multiplied by. Gradients of parameters
      narrower than f32 are f32.
    - Keeps: the forward, bit for bit. No tensor of zeros is added to anything.

    Sums accumulate in f32 (f64 in f64). Ties of a maximum share the gradient.
    Refused, with the op and what to do: products as reductions, active exponents,
    control flow, computed slice offsets.
  }];
  let options = [
    StepOption<"reduceDtype", "reduce-dtype", "std::string">,
    StepOption<"gradPredivide", "grad-predivide", "double">,
    StepOption<"lossScale", "loss-scale", "std::string">,
    Option<"useResults", "use-results", "bool", /*default=*/"true",
           "Read the result of exp, tanh, rsqrt and the like in the backward rather than recompute it.">,
    Option<"remarks", "remarks", "bool", /*default=*/"false", "Say per function what the statistics count.">
  ];
  let statistics = [
    Statistic<"numDifferentiated", "num-differentiated", "Ops differentiated">,
    Statistic<"numFree", "num-free", "Cotangents that cost no op">,
    Statistic<"savedBytes", "saved-bytes", "Bytes of forward values read by the backward">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def CloneCheapForwardPass : Pass<"fsdp-clone-cheap-forward", "::mlir::ModuleOp"> {
  let summary = "Recompute in the backward what costs nothing to save";
  let description = [{
    Clones views and short maps of the forward in front of their first reader in the
    backward, where everything they read is read there anyway (or is a parameter, an
    argument, or an eighth of the result's size at most).

    - Requires: `fsdp-add-backward`.
    - Ensures: clones carry `fsdp.recompute`, so that they stay apart from their originals.
    - Keeps: values, bit for bit.
  }];
  let options = [Option<"maxOps", "max-ops", "unsigned", /*default=*/"12",
                        "Scalar ops a map may have to be computed again.">,
                 Option<"remarks", "remarks", "bool", /*default=*/"false",
                        "Say per function what the statistics count.">];
  let statistics = [
    Statistic<"numCloned", "num-cloned", "Forward ops computed again">,
    Statistic<"bytesNotSaved", "bytes-not-saved", "Bytes the backward no longer reads from the forward">
  ];
}

def RegatherParametersPass : Pass<"fsdp-regather-parameters", "::mlir::ModuleOp"> {
  let summary = "Gather parameters again in the backward";
  let description = [{
    - Requires: `fsdp-add-backward`.
    - Ensures: in units with `reshard true` the backward reads parameters, and what
      the forward made of parameters alone (views, transposes, casts), from
      `fsdp.unshard ... site 1`, placed in front of its first reader there. In other
      units such views are made again from site 0. Where a unit says `within` N, that
      gathers what `fsdp.shard` keeps after the last reader in the forward: the N-th part.
    - Keeps: values, bit for bit.
  }];
  let statistics = [
    Statistic<"numGathers", "num-gathers", "Units gathered again">,
    Statistic<"numViews", "num-views", "Views and maps of parameters made again">,
    Statistic<"keptBytes", "kept-bytes", "Bytes of gathered units kept for the backward, where it gathers within groups">,
    Statistic<"savedBytes", "saved-bytes", "Bytes of forward values read by the backward">
  ];
}

def VerifyDifferentiatedPass : Pass<"fsdp-verify-differentiated", "::mlir::ModuleOp"> {
  let summary = "Check the border after Differentiate";
  let description = [{
    - Requires: `fsdp-regather-parameters`.
    - Ensures: results are the loss and the gradients of all units with trainable
      parameters, in order; the backward reads no parameter gathered for the forward
      where the unit is gathered again; no tensor of zeros is added to anything.
    - Keeps: everything.
  }];
  let statistics = [Statistic<"numVerified", "num-verified", "Functions checked">];
}

#endif // FSDP_DIFFERENTIATE_PASSES
