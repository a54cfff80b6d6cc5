//===- Passes.td - Passes of the Update stage --------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_UPDATE_PASSES_TD
#define FSDP_UPDATE_PASSES_TD

include "fsdp/Options/StepOption.td"
include "mlir/Pass/PassBase.td"

def ExpandRingPass : Pass<"fsdp-expand-ring", "::mlir::func::FuncOp"> {
  let summary = "Rewrite attention with a ring as attention to one block per step";
  let description = [{
    - Requires: `fsdp-verify-differentiated` has run.
    - Ensures: no op has the attribute `ring`. Blocks of keys and values, and the sums of their
      gradients, travel by `fsdp.shift` over the axis `context`. The results of the steps are merged
      by their log-sum-exp.
    - Keeps: values, up to the order of sums.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numExpanded", "num-expanded", "Ops rewritten">];
}

def AddReferencePass : Pass<"fsdp-add-reference", "::mlir::ModuleOp"> {
  let summary = "Add the unsharded program of a step whose ranks compute a sample together";
  let description = [{
    Without the axes `tensor` and `context`, `fsdp-insert-unshard` adds the program `reference`. With
    one of these axes, the pass computes the values of all C·T ranks that have the same samples in
    one program. Its sums are therefore split in the same order:

    | in the step, for C·T ranks | in the reference |
    |---|---|
    | an op | one copy per rank; one copy for all ranks with equal operands |
    | the coordinate of a rank | the result of a kernel without inputs |
    | a unit of slices of parameters | the flat buffers of all T slices, one after another |
    | `fsdp.all_reduce`, `fsdp.flat_reduce_scatter` | the sum of the copies, in rank order from +0 |
    | `fsdp.all_gather`, `fsdp.own_piece`, `fsdp.shift` | a concatenation, a slice, another copy's value |
    | result of a rank of the axis `context` | an element of a leading dimension of size C |

    A result that is not the gradient of a unit of slices must be one value for all ranks of the
    axis `tensor`. The pass reports an error if it is not, for example because a partial sum is not
    added.

    - Requires: `fsdp-verify-differentiated` has run.
    - Ensures: if the mesh has the axis `tensor` or `context`, the module has the program
      `reference`. If C·T is more than 8, or the program would have more than 50,000 ops, the module
      has the attribute `fsdp.no_reference` instead.
    - Keeps: all other programs.
  }];
  let statistics = [
    Statistic<"numOps", "ops", "Ops of the program of all ranks, without sums and views">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::fsdp::FSDPDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AccumulateGradientsPass : Pass<"fsdp-accumulate-gradients", "::mlir::ModuleOp"> {
  let summary = "Average the loss and the gradients over micro-batches and ranks";
  let description = [{
    The mean over a global batch is computed in levels: over the S ranks of the axis `shard`, over
    the A micro-batches of a rank, and over the R ranks of the axis `replicate`. Each level adds its
    n terms in order, starting from +0, and then multiplies the sum by 1/n.

    | program | shard | micro-batches | replicate |
    |---|---|---|---|
    | `step`, `eval` | `reduce_scatter`; `all_reduce` of the loss | loop | `all_reduce` |
    | `reference` | loop | loop | loop |

    If the function has `fsdp.no_sync`, the level of micro-batches comes first. The placement of a
    unit's state (`#fsdp.placement`) decides whether the result of a reduction is a piece
    (`reduce_scatter`, `flat_reduce_scatter`) or the whole gradient (`all_reduce`). Gradients of
    looked-up rows (`fsdp.rows`) are averaged over `shard` separately. The averages are then added
    to the other gradients of the table. All programs add in the same order, so they round in the
    same way. Levels of size 1 are omitted. Sums of types narrower than f32 are computed in f32 and
    rounded at the end of a level.

    - Requires: `fsdp-verify-differentiated` has run.
    - Ensures: the loss and the gradients are means over the global batch. The batch arguments of a
      program with K > 1 micro-batches have a leading dimension K. In the program `reference`, the
      micro-batch with number `r·A + a` is micro-batch a of rank r.
    - Keeps: the computation of a micro-batch, and all results except gradients of rows.
  }];
  let statistics = [
    Statistic<"numLoops", "loops", "Micro-batch loops created">,
    Statistic<"numReductions", "all-reduces", "All-reduces inserted">
  ];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def ExchangeRowsPass : Pass<"fsdp-exchange-rows", "::mlir::ModuleOp"> {
  let summary = "Exchange looked-up rows of a sharded table between ranks";
  let description = [{
    ```mlir
    %e = fsdp.unshard_rows %shard[%ids] @wte : tensor<1024xf32>, tensor<2x8xi64> -> tensor<2x8x16xf32>
    ```

    | op | becomes | in the reference |
    |---|---|---|
    | `fsdp.unshard_rows` | an all-gather of the ids, a kernel, a reduce-scatter of the rows | `fsdp.gather_rows` |
    | `fsdp.reduce_rows` | all-gathers of ids and rows, `fsdp.scatter_add_rows` into the rank's rows | `fsdp.scatter_add_rows` |

    The kernel between the all-gather and the reduce-scatter reads the rows that this rank owns. It
    yields zeros for all other rows. The program `reference` reads the whole table instead.

    - Requires: `fsdp-accumulate-gradients` has run.
    - Ensures: no `fsdp.unshard_rows` and no `fsdp.reduce_rows` is left.
    - Keeps: results, bit for bit, in all programs.
  }];
  let statistics = [
    Statistic<"numLookups", "lookups", "Lookups of rows that other ranks may own">,
    Statistic<"numReductions", "reductions", "Reductions of looked-up rows">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::fsdp::FSDPDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AddStepBlockPass : Pass<"fsdp-add-step-block", "::mlir::ModuleOp"> {
  let summary = "Compute the gradient norm and store the scalars of a step in the step block";
  let description = [{
    The pass adds the step block and the rank block as arguments, computes the global gradient norm,
    and returns the step block instead of the loss.

    The norm is the square root of the sum of the squares of all gradients. The squares are added
    within each shard in blocks of a fixed size. The sums are then added over the shards in rank
    order, and finally over the units in order. The norm of sharded gradients is therefore equal,
    bit for bit, to the norm of whole gradients. The slot `finite` of the step block is 1 if the
    loss and the norm are finite. The step count and the token count advance only if `finite` is 1.

    If there is a loss scale, slot 2 contains the scale, and the scale is a factor of all gradients.
    The pass divides the norm, and the clip factor in slot 4, by the scale, so that the scale has no
    effect on the update. If `finite` is 0, a dynamic scale is halved for the next step. The scale
    is doubled after `loss-scale-growth-interval` steps in a row with `finite` 1.

    - Requires: `fsdp-accumulate-gradients` has run.
    - Ensures: the function returns `(block, gradients...)`. Slots 2 and 3 of the block contain the
      loss scale and the growth count for the next step. Slot 1 and slots 4 to 9 describe the
      current step. No argument `{fsdp.loss_scale}` is left.
    - Keeps: the gradients. A later pass, `fsdp-apply-optimizer`, multiplies the gradients by the
      clip factor.
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
    Statistic<"numMeasured", "measured-gradients", "Gradients in the norm, counted once per program">
  ];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def BindKeysPass : Pass<"fsdp-bind-keys", "::mlir::ModuleOp"> {
  let summary = "Read the keys of random numbers from the rank block";
  let description = [{
    - Requires: `fsdp-add-step-block` has run.
    - Ensures: no argument carries `fsdp.key`. The program reads the seed and the number of the step
      from elements 4 and 5 of the rank block. The number of the first sample is computed from the
      position of the rank's micro-batch in the global batch.
    - Keeps: everything else.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numBound", "bound-keys", "Arguments replaced, counted once per program">];
}

def ApplyOptimizerPass : Pass<"fsdp-apply-optimizer", "::mlir::ModuleOp"> {
  let summary = "Update parameters and optimizer state from the gradients";
  let description = [{
    The pass adds one elementwise op per unit. In these formulas, g is the clipped gradient, t is
    the step count, and p is the shard of the parameters:

    ```
    adamw   p -= lr·wd·p                        parameters with decay only
            m += (1-β1)(g - m);  v = β2·v + (1-β2)·g²
            p -= lr/(1-β1^t) · m / (sqrt(v)/sqrt(1-β2^t) + eps)
    sgd     g += wd·p                           parameters with decay only
            b = momentum·b + g                  (b = g without momentum)
            p -= lr·b
    ```

    Powers of β are computed from the step count, in f64. The state and the arithmetic are f32, or
    f64 if the parameters of the unit are f64. Masters of parameters are never bf16. Other state may
    be bf16. State in bf16 is computed in f32, and then rounded at random to one of the two nearest
    bf16 numbers. The expected value of the rounded number is the f32 number. The random bits depend
    on the seed of the run, the number of the step, the unit, and the index of the element in the
    flat buffer. This index also decides which elements have weight decay, so that one kernel serves
    all ranks. If the loss or the gradient norm is not finite, the step changes no state.

    `#fsdp.placement` determines the pieces of the state. If the pieces of the state are smaller
    than the pieces of the parameters, a rank updates only the part of its parameters that matches
    its piece of the state (`fsdp.own_piece`). The rank then gathers the other parts.

    - Requires: `fsdp-add-step-block` has run.
    - Ensures: after the argument for the parameters of a trainable unit, the function has arguments
      for the state of the unit. Every result updates an argument (`fsdp.updates`).
    - Keeps: the loss and the gradients.
  }];
  let options = [
    StepOption<"optimizerName", "optimizer", "std::string">,
    StepOption<"beta1", "beta1", "double">,
    StepOption<"beta2", "beta2", "double">,
    StepOption<"eps", "eps", "double">,
    StepOption<"weightDecay", "weight-decay", "double">,
    StepOption<"momentum", "momentum", "double">,
    Option<"masters", "masters", "bool", "true",
           "Keep f32 masters of parameters narrower than f32, and update these.">,
    StepOption<"stateDtype", "optimizer-state-dtype", "std::string">,
    StepOption<"stateRounding", "optimizer-state-rounding", "std::string">
  ];
  let statistics = [
    Statistic<"numUpdated", "updated-units", "Units updated, counted once per program">,
    Statistic<"numState", "state-elements", "Elements of optimizer state per rank">
  ];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def FormFmaPass : Pass<"fsdp-form-fma"> {
  let summary = "Fuse a product and a sum into a multiply-add with one rounding";
  let description = [{
    `x*y + z`, `z - x*y` and `x*y - z` in the body of a `linalg.generic` become `math.fma` if no
    other op reads the product. If both terms are products, the left product is fused: `a*b + c*d`
    is `fma(a, b, c*d)`. Only f32 and f64 are fused; 16-bit floats are rounded after every
    operation.

    - Requires: no fast-math flags; all generics of a step have their final bodies.
    - Ensures: the bodies contain no f32 or f64 sum that is the only reader of a product.
    - Keeps: the bodies of contractions, all casts, and the order of sums. Values change only
      because the product is not rounded, and they change in the same way in all programs.
  }];
  let statistics = [
    Statistic<"numFormed", "formed", "Multiply-adds formed">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def VerifyDtypesPass : Pass<"fsdp-verify-dtypes", "::mlir::ModuleOp"> {
  let summary = "Check that no value is computed in a narrower type than requested";
  let description = [{
    The table applies to the program `step`:

    | part | values | narrowest type allowed |
    |---|---|---|
    | gradient | values that cross ranks, and roundings on the way | `reduce-dtype` |
    | gradient | sums in bodies, sums over micro-batches, and sums that compute a cotangent of a parameter | f32 |
    | loss, norm | reductions over ranks and micro-batches; arithmetic of the norm | f32 |
    | optimizer | arithmetic, and masters | f32 |
    | optimizer | other state | `optimizer-state-dtype` |

    The pass prints a warning if the model itself computes its loss in a narrower type, or if narrow
    parameters are updated without masters.

    - Requires: `fsdp-apply-optimizer` has run.
    - Ensures: no value has a narrower type than the table allows.
    - Keeps: the IR.
  }];
  let options = [
    StepOption<"reduceDtype", "reduce-dtype", "std::string">,
    Option<"stateDtype", "optimizer-state-dtype", "std::string", "\"\"",
           "Type of moments and momentum that was asked for: bf16 or f32 (default, when empty).">
  ];
  let statistics = [
    Statistic<"numChecked", "checked-types", "Types compared">
  ];
}

def VerifyUpdatedPass : Pass<"fsdp-verify-updated", "::mlir::ModuleOp"> {
  let summary = "Check the rules that hold after Update";
  let description = [{
    - Requires: nothing.
    - Ensures:
      - the arguments of `step`, `eval` and `reference` are, for each unit, its parameters and, if
        the unit is trained, its state. The step block, the rank block and the batch follow;
      - every result updates one argument of its type;
      - `step` and `reference` update all state, and `eval` updates only the step block.
    - Keeps: the IR.
  }];
  let statistics = [
    Statistic<"numChecked", "checked-arguments", "Arguments checked">
  ];
}

#endif // FSDP_UPDATE_PASSES_TD
