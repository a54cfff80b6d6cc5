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
  let summary = "Weight the loss by the number of targets that count";
  let description = [{
    Implements `--grad-divide=tokens`. The loss of a micro-batch is a mean over targets, some of
    which may be ignored (`ignore_index`). Update computes a weight for each of the n micro-batches
    of all ranks, `count · n / (sum of counts)`, where a count is the number of targets that are not
    ignored. The mean of the weighted losses and its gradients then equal loss and gradients of a
    single batch with all targets.

    - Requires: functions with `fsdp.program` that are not differentiated yet.
    - Ensures: if targets may be ignored, the function has one more argument, `{fsdp.loss_weight}`,
      which multiplies its loss. Otherwise all weights would be 1, and the function is not changed.
    - Keeps: all values before the loss.

    It is an error if a loss is not `c + Σ c_i · cross_entropy`, where all terms have the same
    targets, and `c` and `c_i` do not depend on the batch.
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

    - Requires: the model contract, sharded or not: one block, static shapes, and the loss (a
      float tensor of rank 0) as first result.
    - Ensures: `@loss` of the program `step` becomes `@step`, and a copy of its forward becomes
      `@eval`. The results are extended by the gradients:
      - one gradient shard `{fsdp.unit = @u}` per unit with trainable parameters;
      - one gradient `{fsdp.gradient = I}` per trainable argument that the loss depends on, in
        order.

      With a loss scale, the function has one more argument, `{fsdp.loss_scale}`, by which the
      gradients are multiplied. Gradients of parameters narrower than f32 are f32.
    - Keeps: the forward, bit for bit. No tensor of zeros is added to a gradient.

    Sums accumulate in f32, or in f64 for f64 models. The gradient of a maximum is divided among the
    elements that equal it. Some ops cannot be differentiated: reductions by multiplication,
    exponents that need a gradient, control flow, and computed slice offsets. Errors name the op and
    the fix.
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
    Clones slices, joins, random numbers and short elementwise maps of the forward before their
    first reader in the backward. An op is cloned only if the backward then reads at most 1/8 as
    many additional bytes as are saved. Operands that the backward reads anyway, parameters and
    arguments do not count as additional bytes.

    - Requires: `fsdp-add-backward`.
    - Ensures: clones carry `fsdp.recompute`, so that later passes do not merge them with originals.
    - Keeps: values, bit for bit.
  }];
  let options = [Option<"maxOps", "max-ops", "unsigned", /*default=*/"12",
                        "Largest number of scalar ops of a map that is cloned.">,
                 Option<"remarks", "remarks", "bool", /*default=*/"false",
                        "Print a remark with the statistics of each function.">];
  let statistics = [
    Statistic<"numCloned", "num-cloned", "Forward ops that are recomputed">,
    Statistic<"bytesNotSaved", "bytes-not-saved", "Size of the forward values that the backward no longer reads, in bytes">
  ];
}

def RegatherParametersPass : Pass<"fsdp-regather-parameters", "::mlir::ModuleOp"> {
  let summary = "Gather parameters again in the backward";
  let description = [{
    - Requires: `fsdp-add-backward`.
    - Ensures: in units with `reshard true`, the backward reads parameters from `fsdp.unshard ...
      site 1`, placed before their first reader in the backward. Values that the forward computed
      from parameters alone (views, transposes, casts) are computed again from that gather, or in
      other units from the gather of the forward (site 0). If a unit has `within` N, `fsdp.shard`
      keeps 1/N of the parameters after the last reader in the forward, and the gather of the
      backward reads this 1/N.
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
    - Requires: `fsdp-regather-parameters`.
    - Ensures:
      - the results are the loss, then the gradients of all units with trainable parameters, in
        order;
      - the backward reads no parameter gathered for the forward if the unit is gathered again;
      - no tensor of zeros is added to another value.
    - Keeps: the IR.
  }];
  let statistics = [Statistic<"numVerified", "num-verified", "Functions checked">];
}

#endif // FSDP_DIFFERENTIATE_PASSES
