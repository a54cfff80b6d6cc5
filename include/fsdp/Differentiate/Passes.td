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
  let summary = "Weight the loss of a micro-batch by its number of targets that are not ignored";
  let description = [{
    Implements `--grad-divide=tokens`. The loss of a micro-batch is a mean over targets, some of
    which may be ignored (`ignore_index`). Update computes the weight `count · n / (sum of counts)`
    for each of the n micro-batches of all ranks. A count is the number of targets that are not
    ignored. The mean of the weighted losses then equals the loss of a single batch with all
    targets. The gradients of these two losses are equal too.

    - Requires: functions with `fsdp.program` that are not differentiated yet.
    - Ensures: if targets may be ignored, the function has one more argument, `{fsdp.loss_weight}`,
      which multiplies its loss. If no target may be ignored, the pass changes nothing.
    - Keeps: all values before the loss.

    It is an error if a loss does not have the form `c + Σ c_i · cross_entropy`. All terms must have
    the same targets, and `c` and `c_i` must not depend on the batch.
  }];
  let statistics = [
    Statistic<"numWeighed", "num-weighed", "Losses that are weighted">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def AddBackwardPass : Pass<"fsdp-add-backward", "::mlir::ModuleOp"> {
  let summary = "Append the gradients of the loss to each program";
  let description = [{
    Applies reverse-mode differentiation to the functions of the programs `step` and `reference`,
    and to functions with `fsdp.param` arguments.

    - Requires: the functions satisfy the model contract. A function, sharded or not, has one block
      and static shapes, and its first result is the loss (a float tensor of rank 0).
    - Ensures: `@loss` of the program `step` becomes `@step`, and a copy of its forward becomes
      `@eval`. A function returns these gradients after its other results:
      - one gradient shard `{fsdp.unit = @u}` per unit with trainable parameters;
      - one gradient `{fsdp.gradient = I}` per trainable argument that the loss depends on, in
        order.

      With a loss scale, the function has one more argument, `{fsdp.loss_scale}`, by which the pass
      multiplies the gradients. The gradients of parameters narrower than f32 are f32.
    - Keeps: the forward, bit for bit. No tensor of zeros is added to a gradient.

    Sums accumulate in f32, or in f64 for f64 models. The gradient of a maximum is divided among the
    elements that equal the maximum. The pass cannot differentiate reductions by multiplication,
    powers whose exponent needs a gradient, control flow, and slices with computed offsets. The
    error for such an op names the op and a fix.
  }];
  let options = [
    StepOption<"reduceDtype", "reduce-dtype", "std::string">,
    StepOption<"gradPredivide", "grad-predivide", "double">,
    StepOption<"lossScale", "loss-scale", "std::string">,
    Option<"useResults", "use-results", "bool", /*default=*/"true",
           "In the backward, read results of exp, tanh, rsqrt and similar ops instead of recomputing them.">,
    Option<"remarks", "remarks", "bool", /*default=*/"false", "Print a remark with the statistics of each function.">
  ];
  let statistics = [
    Statistic<"numDifferentiated", "num-differentiated", "Ops differentiated">,
    Statistic<"numFree", "num-free", "Cotangents that need no op">,
    Statistic<"savedBytes", "saved-bytes", "Size of the forward values that the backward reads, in bytes">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def CloneCheapForwardPass : Pass<"fsdp-clone-cheap-forward", "::mlir::ModuleOp"> {
  let summary = "Recompute forward values in the backward if that is cheaper than saving them";
  let description = [{
    The pass clones slices, concatenations, random numbers and short elementwise maps of the
    forward. A clone is placed directly before its first reader in the backward. A clone may cause
    the backward to read additional bytes, namely the operands of the clone. An op is cloned only if
    these additional bytes are at most 1/8 of the bytes that need no longer be saved. Parameters,
    arguments, and operands that the backward reads anyway do not count as additional bytes.

    The backward also repeats each all-gather over the axis `tensor` of rows that the forward
    gathers (`--sequence-parallel`), so that a rank saves its own rows only.

    - Requires: `fsdp-add-backward` has run.
    - Ensures: clones carry `fsdp.recompute`, so that later passes do not merge a clone with its
      original op.
    - Keeps: values, bit for bit.
  }];
  let options = [Option<"maxOps", "max-ops", "unsigned", /*default=*/"12",
                        "Largest number of scalar ops of a map that is cloned.">,
                 Option<"remarks", "remarks", "bool", /*default=*/"false",
                        "Print a remark with the statistics of each function.">];
  let statistics = [
    Statistic<"numCloned", "num-cloned", "Forward ops that are recomputed">,
    Statistic<"numRepeated", "num-repeated", "Gathers of rows over the axis tensor that are repeated">,
    Statistic<"bytesNotSaved", "bytes-not-saved", "Size of the forward values that the backward no longer reads, in bytes">
  ];
}

def RegatherParametersPass : Pass<"fsdp-regather-parameters", "::mlir::ModuleOp"> {
  let summary = "Gather parameters a second time for the backward";
  let description = [{
    - Requires: `fsdp-add-backward` has run.
    - Ensures: in units with `reshard true`, the backward reads parameters from a second gather,
      `fsdp.unshard ... site 1`. This gather is placed before the first reader of the parameters in
      the backward. The backward computes values that depend on parameters alone (views, transposes,
      casts) again instead of saving them. The backward computes these values from the second gather
      in units with `reshard true`, and from the gather of the forward (site 0) in other units. If a
      unit has `within` N, an `fsdp.shard` after the last reader in the forward keeps 1/N of the
      parameters. The second gather then reads only this part.
    - Keeps: values, bit for bit.
  }];
  let statistics = [
    Statistic<"numGathers", "num-gathers", "Units that are gathered again">,
    Statistic<"numViews", "num-views", "Views and maps of parameters that are computed again">,
    Statistic<"keptBytes", "kept-bytes", "Size of the parts of gathered units kept for gathers within groups, in bytes">,
    Statistic<"savedBytes", "saved-bytes", "Size of the forward values that the backward reads, in bytes">
  ];
}

def VerifyDifferentiatedPass : Pass<"fsdp-verify-differentiated", "::mlir::ModuleOp"> {
  let summary = "Check the rules that hold after Differentiate";
  let description = [{
    - Requires: `fsdp-regather-parameters` has run.
    - Ensures:
      - the results are the loss, then the gradients of all units with trainable parameters, in
        order;
      - if a unit is gathered again, the backward reads no parameter from the gather of the forward;
      - no tensor of zeros is added to another value.
    - Keeps: the IR.
  }];
  let statistics = [Statistic<"numVerified", "num-verified", "Functions checked">];
}

#endif // FSDP_DIFFERENTIATE_PASSES
