//===- Passes.td - Passes of the Update stage --------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_UPDATE_PASSES_TD
#define FSDP_UPDATE_PASSES_TD

include "fsdp/Options/StepOption.td"
include "mlir/Pass/PassBase.td"

def AccumulateGradientsPass : Pass<"fsdp-accumulate-gradients", "::mlir::ModuleOp"> {
  let summary = "Average loss and gradients over micro-batches and ranks";
  let description = [{
    The mean over a global batch is taken in levels: over the S ranks of the axis
    `shard`, over the A micro-batches of a rank, over the R ranks of the axis
    `replicate`. Each level is a sum in order, from +0, times 1/n.

    | program | shard | micro-batches | replicate |
    |---|---|---|---|
    | `step`, `eval` | `reduce_scatter`; `all_reduce` of the loss | loop | `all_reduce` |
    | `reference` | loop | loop | loop |

    With `fsdp.no_sync` micro-batches come first, then the axes. A unit's optimizer
    state says (`#fsdp.placement`) whether a reduction leaves pieces or the whole:
    `reduce_scatter`, `flat_reduce_scatter` or `all_reduce`. What looked-up rows add to the gradient of
    a table (`fsdp.rows`) has sums of its own over `shard`, and is added after that level. Programs add in the same order,
    so that all programs round alike. Levels of size 1 are left out. Sums of
    types narrower than f32 are in f32 and rounded at the end of a level.

    - Requires: `fsdp-verify-differentiated`.
    - Ensures: loss and gradients are means over the global batch. With K > 1
      micro-batches in a program, its batch arguments have a leading dimension K;
      micro-batch a of rank r is number `r * A + a` in the reference.
    - Keeps: what is computed for a micro-batch; the results, but for those of rows.
  }];
  let statistics = [
    Statistic<"numLoops", "loops", "Micro-batch loops built">,
    Statistic<"numReductions", "all-reduces", "All-reduces inserted">
  ];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def ExchangeRowsPass : Pass<"fsdp-exchange-rows", "::mlir::ModuleOp"> {
  let summary = "Exchange the rows that ranks look up in a table in pieces";
  let description = [{
    ```mlir
    %e = fsdp.unshard_rows %shard[%ids] @wte : tensor<1024xf32>, tensor<2x8xi64> -> tensor<2x8x16xf32>
    ```

    becomes an all-gather of the ids, a kernel that picks the rows that this rank has (and zeros for those of others), and
    a reduce-scatter of these. `fsdp.reduce_rows` becomes all-gathers of ids and rows, and a `fsdp.scatter_add_rows` into
    the rank's rows. In the reference, which has the whole table, they are `fsdp.gather_rows` and `fsdp.scatter_add_rows`.

    - Requires: `fsdp-accumulate-gradients`.
    - Ensures: no `fsdp.unshard_rows` and `fsdp.reduce_rows`.
    - Keeps: results, to the bit, in all programs alike.
  }];
  let statistics = [
    Statistic<"numLookups", "lookups", "Lookups whose rows come from other ranks">,
    Statistic<"numReductions", "reductions", "Reductions of looked-up rows">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::fsdp::FSDPDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AddStepBlockPass : Pass<"fsdp-add-step-block", "::mlir::ModuleOp"> {
  let summary = "Measure the gradients and keep the numbers of a step";
  let description = [{
    Adds the step block and the rank block, computes the global gradient norm, and
    replaces the result `loss` by the block with everything in it.

    The norm is the root of the sum of squares: of each shard in blocks of a fixed
    size, then over the shards in rank order, then over the units in order, so that
    it has the same bits for sharded and whole gradients. `finite` tells whether loss and
    norm are finite; only then the step count and the tokens advance.

    Where the backward starts from a loss scale, the scale is slot 2. Gradients are
    measured, clipped and applied without it: the norm and the factor in slot 4 are
    divided by it. A dynamic scale halves after a step that was not finite, and doubles
    after `loss-scale-growth-interval` finite ones in a row.

    - Requires: `fsdp-accumulate-gradients`.
    - Ensures: results `(block, gradients...)`; slots 1 to 9 of the block hold this
      step's numbers (2 and 3 the next one's). No argument `{fsdp.loss_scale}`.
    - Keeps: the gradients; clipping is applied where they are read.
  }];
  let options = [
    StepOption<"clipGradNorm", "clip-grad-norm", "double">,
    StepOption<"gradDivide", "grad-divide", "std::string">,
    StepOption<"gradPredivide", "grad-predivide", "double">,
    StepOption<"lossScale", "loss-scale", "std::string">,
    StepOption<"lossScaleInit", "loss-scale-init", "double">,
    StepOption<"growthInterval", "loss-scale-growth-interval", "int64_t">
  ];
  let statistics = [
    Statistic<"numMeasured", "measured-gradients", "Gradients in the norm, once per program">
  ];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def BindKeysPass : Pass<"fsdp-bind-keys", "::mlir::ModuleOp"> {
  let summary = "Read from the rank block what random numbers follow from";
  let description = [{
    - Requires: `fsdp-add-step-block`.
    - Ensures: no argument carries `fsdp.key`. The seed and the number of the step are elements 4 and 5 of the rank
      block; the first sample is the rank's place in the global batch, in samples.
    - Keeps: everything else.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numBound", "bound-keys", "Arguments bound, once per program">];
}

def ApplyOptimizerPass : Pass<"fsdp-apply-optimizer", "::mlir::ModuleOp"> {
  let summary = "Update parameters and optimizer state from the gradients";
  let description = [{
    One elementwise op per unit on the flat shard. With g the clipped gradient:

    ```
    adamw   p -= lr·wd·p                        parameters with decay only
            m += (1-β1)(g - m);  v = β2·v + (1-β2)·g²
            p -= lr/(1-β1^t) · m / (sqrt(v)/sqrt(1-β2^t) + eps)
    sgd     g += wd·p                           parameters with decay only
            b = momentum·b + g                  (b = g without momentum)
            p -= lr·b
    ```

    Powers of β come from the step count, in f64. State and arithmetic are f32, f64 in units of f64. State (but not masters)
    in bf16 is computed in f32 and rounded at random to one of its two neighbours, so that its mean is right: the
    random bits follow from the seed of the run, the number of the step, the unit and the global index. Which elements have decay follows from the
    global index in the flat buffer, so one kernel serves all ranks. A step that is
    not finite changes nothing.

    - Requires: `fsdp-add-step-block`.
    State is in the pieces that the unit's `#fsdp.placement` says. Where they are smaller than those of
    the parameters, a rank updates its own piece (`fsdp.own_piece`) and gathers the others.

    - Ensures: state arguments after each trainable unit's parameters; every
      result updates an argument (`fsdp.updates`).
    - Keeps: loss and gradients.
  }];
  let options = [
    StepOption<"optimizerName", "optimizer", "std::string">,
    StepOption<"beta1", "beta1", "double">,
    StepOption<"beta2", "beta2", "double">,
    StepOption<"eps", "eps", "double">,
    StepOption<"weightDecay", "weight-decay", "double">,
    StepOption<"momentum", "momentum", "double">,
    Option<"masters", "masters", "bool", "true",
           "Parameters narrower than f32 have f32 masters, which the rule works on.">,
    StepOption<"stateDtype", "optimizer-state-dtype", "std::string">,
    StepOption<"stateRounding", "optimizer-state-rounding", "std::string">
  ];
  let statistics = [
    Statistic<"numUpdated", "updated-units", "Units updated, once per program">,
    Statistic<"numState", "state-elements", "Elements of optimizer state per rank">
  ];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def FormFmaPass : Pass<"fsdp-form-fma"> {
  let summary = "Write multiply-adds of one rounding out";
  let description = [{
    `x*y + z`, `z - x*y` and `x*y - z` in the body of a `linalg.generic` become
    `math.fma` where nothing else reads the product. Of two products the left one
    moves in: `a*b + c*d` is `fma(a, b, c*d)`. In f32 and f64; 16-bit floats are
    rounded after every operation.

    - Requires: no fast-math flag; all generics of a step with their final bodies.
    - Ensures: no sum whose term is a product that it alone reads, in those bodies.
    - Keeps: bodies of contractions; casts; the order of sums. Values change by the
      rounding of the product, alike in all programs.
  }];
  let statistics = [
    Statistic<"numFormed", "formed", "Multiply-adds formed">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def VerifyDtypesPass : Pass<"fsdp-verify-dtypes", "::mlir::ModuleOp"> {
  let summary = "Check that nothing is computed in a narrower type than asked";
  let description = [{
    Of the program `step`:

    | part | what | at least |
    |---|---|---|
    | gradient | what crosses ranks, and roundings on the way | `reduce-dtype` |
    | gradient | sums: over ranks' bodies, micro-batches, and those that make a cotangent of a parameter | f32 |
    | loss, norm | reductions over ranks and micro-batches; arithmetic of the norm | f32 |
    | optimizer | arithmetic, and masters | f32 |
    | optimizer | other state | `state-dtype` |

    A warning where the model itself computes its loss in a narrower type, and where narrow
    parameters are updated without masters.

    - Requires: `fsdp-apply-optimizer`.
    - Ensures: the table.
    - Keeps: everything.
  }];
  let options = [
    StepOption<"reduceDtype", "reduce-dtype", "std::string">,
    Option<"stateDtype", "optimizer-state-dtype", "std::string", "\"\"",
           "Type in which moments and momentum were asked to be kept: f32 (when empty) or bf16.">
  ];
  let statistics = [
    Statistic<"numChecked", "checked-types", "Types compared">
  ];
}

def VerifyUpdatedPass : Pass<"fsdp-verify-updated", "::mlir::ModuleOp"> {
  let summary = "Check what Update promises";
  let description = [{
    - Requires: nothing.
    - Ensures: the programs `step`, `eval` and `reference` take the same kinds of
      arguments: per unit the parameter and, when it is trained, its state; the step
      block; the rank block; the batch. Every result updates one argument of its
      type; the step and the reference update all state, eval the block alone.
    - Keeps: everything.
  }];
  let statistics = [
    Statistic<"numChecked", "checked-arguments", "Arguments checked">
  ];
}

#endif // FSDP_UPDATE_PASSES_TD
