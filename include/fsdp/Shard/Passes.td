//===- Passes.td - Passes of the Shard stage ---------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_SHARD_PASSES_TD
#define FSDP_SHARD_PASSES_TD

include "fsdp/Options/StepOption.td"
include "mlir/Pass/PassBase.td"

def ApplyPrecisionPass : Pass<"fsdp-apply-precision", "::mlir::ModuleOp"> {
  let summary = "Store parameters and activations of an f32 model in a narrower type";
  let description = [{
    This pass implements FSDP's mixed precision at compile time.

    | values | type |
    |---|---|
    | parameters (including frozen parameters), activations | `param-dtype` |
    | sums of products, scores and sums of attention, arithmetic in bodies | f32 |
    | results of reductions, and values computed from them alone (means, variances, softmax statistics) | f32 |
    | scalars, the loss | f32 |
    | the values from which the loss is computed (logits) | `output-dtype` |
    | buffers, tables, batch arguments | not changed |
    | parameters that `keep-f32` names, and the operands of products that read them | f32 |
    | queries, keys and values of attention, if `keep-f32` has the word `attention` | f32 |

    The body of an op computes in f32, and the op rounds its result once, at its end. If a constant
    of a mask is below the range of the narrower type, the constant becomes the lowest finite number
    of this type. An elementwise op remains f32 if it has any other constant outside of this type's
    range.

    - Requires: the module satisfies the model contract (docs/explanation/pipeline.md §1). Values
      narrower than f32 are not changed, so a bf16 model is not changed. An f64 model is an error.
    - Ensures: no f32 parameter is left, except those that `keep-f32` names. Parameters that were
      f32 carry `fsdp.master_dtype = f32`. The module has the attribute `fsdp.kept_wide`.
    - Keeps: the order of arguments, and initial values. If `param-dtype` is f32, the pass changes
      nothing.
  }];
  let options = [
    StepOption<"paramDtype", "param-dtype", "std::string">,
    StepOption<"outputDtype", "output-dtype", "std::string">,
    StepOption<"keepF32", "keep-f32", "std::string">
  ];
  let statistics = [
    Statistic<"numParams", "parameters", "Parameters stored in the narrower type">,
    Statistic<"numValues", "values", "Values stored in the narrower type, including parameters">,
    Statistic<"numCasts", "casts", "Conversions added between ops">,
    Statistic<"numOutputs", "outputs", "Outputs kept in f32">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def PartitionTensorsPass : Pass<"fsdp-partition-tensors", "::mlir::ModuleOp"> {
  let summary = "Split values over the axes `tensor` and `context` of the mesh";
  let description = [{
    The function that the pass rewrites is the program of one rank of the axis `tensor` of T ranks.
    All these ranks run the same program, on the same samples. A value is either *whole*, that is,
    equal on these ranks, or *split* along one dimension, or a *partial sum*.

    | place | op | adjoint |
    |---|---|---|
    | whole value, read by an op that is split | `fsdp.reduce_cotangent` | all-reduce |
    | result of an op that is split along a reduced loop | `fsdp.all_reduce` | identity |
    | rows that are looked up in own rows of a table (axis `tensor`) | 0 for ids of other ranks, and `fsdp.all_reduce` | of own ids only |
    | loss of logits whose classes are split (axis `tensor`) | `fsdp.cross_entropy` with `classes` | of own classes |

    The page docs/explanation/tensor-parallel.md describes how the split values are found. If all
    readers of a product's partial sum round to the type of its bf16 or f16 operands, each rank
    rounds its term to this type before the sum. With the word `sums` in `keep-f32`, terms stay f32.

    With `sequence-parallel`, whole values between a sum and the next split op are split along their
    rows instead:

    | place | op | adjoint |
    |---|---|---|
    | partial sum, read by an op on rows | `fsdp.flat_reduce_scatter` | all-gather |
    | rows, read by an op that is split in another way | `fsdp.all_gather` | reduce-scatter |
    | rows, read by an op that stays whole | `fsdp.all_gather` and `fsdp.share_cotangent` | reduce-scatter of 1/T of the cotangent |
    | whole value with rows, read by an op on rows | `fsdp.own_piece` | all-gather |
    | other whole value, such as the weight of a norm, read by an op on rows | `fsdp.reduce_cotangent` | all-reduce |

    The ranks of the axis `context` also run the same program on the same samples, and the sequence
    is split: each rank has some rows of every activation. These are neighbours, or every C-th row
    if attention of neighbours would be unbalanced. Parameters are whole, and the cotangent of a
    parameter on a rank is a part of its gradient.

    | place | op | adjoint |
    |---|---|---|
    | whole value with the split dimension, read by an op that is split | `fsdp.own_piece` | zeros around the piece |
    | keys and values of attention, with `gather` | `fsdp.all_gather` | reduce-scatter |
    | keys and values of attention, with `ring` | `fsdp.attention` with `ring` (see `fsdp-expand-ring`) | the same |
    | result of an op that is split along a reduced loop | `fsdp.all_reduce` | identity |
    | sum over the ranks, read by an op that is split | `fsdp.reduce_cotangent` | all-reduce |
    | parameter, read together with such a sum by an op that is not split | `fsdp.share_cotangent` | division by the number of ranks |

    - Requires: the module has one public function that satisfies the model contract, and no mesh
      and no unit.
    - Ensures: if the mesh has more than one rank on these axes, the module has the mesh `@mesh`.
      With the axis `tensor`, at least one parameter is split. The argument of a split parameter has
      the shape of a slice, and the attribute `fsdp.tensor_split`. With the axis `context`, the rows
      of queries of each attention are split. An argument with `fsdp.key = "context"` or `"tensor"`
      contains the coordinate of the rank. No use of a partial sum remains except by `fsdp.all_reduce`.
    - Keeps: the order of arguments, and the loss up to the order of sums. If the mesh has one rank
      on both axes, the pass changes nothing.
  }];
  let options = [
    StepOption<"mesh", "mesh", "std::string">,
    StepOption<"tensorParallel", "tensor-parallel", "std::string">,
    StepOption<"sequenceParallel", "sequence-parallel", "bool">,
    StepOption<"contextAttention", "context-attention", "std::string">,
    StepOption<"keepF32", "keep-f32", "std::string">,
    StepOption<"cluster", "cluster", "std::string">,
    StepOption<"remarks", "remarks", "bool">
  ];
  let statistics = [
    Statistic<"numSplit", "split-parameters", "Parameters of which a rank has a slice">,
    Statistic<"numReduced", "partial-sums", "Partial sums that are added over ranks">,
    Statistic<"numEntered", "whole-operands", "Whole values that split ops read">,
    Statistic<"numRows", "row-ops", "Ops that compute the rows of one rank of the axis tensor">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::fsdp::FSDPDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def FormUnitsPass : Pass<"fsdp-form-units", "::mlir::ModuleOp"> {
  let summary = "Group parameters into units and lay out each unit as one flat buffer";
  let description = [{
    The pass declares the device mesh (`@mesh`, and `@solo` for the unsharded reference) and one
    `fsdp.unit` per group of parameters that are gathered together. The groups are:

    - a **layer**: parameters whose names share a prefix that ends in a number (`h.3.`,
      `model.layers.7.`, `blocks.2.`), or that match `transformer-layer`;
    - with the policy `size`: the smallest modules (prefixes of names) that contain at least
      `min-num-params` elements that are in no other unit. The elements of a smaller module belong
      to the enclosing module. If the names of all children of a module are numbers, the module is a
      list and never a unit;
    - with the policy `manual`: the groups that a file lists;
    - the group that `fsdp.unit = "name"` on an argument names, with any policy;
    - a **table** of the root unit, if ranks exchange only the looked-up rows of the table
      (`gather-rows`);
    - the **root** unit: all other parameters. By default, this unit remains gathered from the
      forward to the backward;
    - frozen parameters, ignored parameters, and parameters of another element type get separate
      units (`@"h.3.frozen"`, `@root.ignored`, `@root.f32`).

    Within a unit, parameters with weight decay (rank 2 and more) come first. The offset of every
    parameter is a multiple of 32 elements. `shard_size` is 1/S of the unit, rounded up to a
    multiple of 64 elements (of 1024 elements in units above 64 Ki elements). Any number S of shards
    is therefore possible. The option `sharding-strategy` selects a row of the table in the
    description of `#fsdp.placement`.

    - Requires: the module has one public function that satisfies the model contract, and no mesh
      and no unit.
    - Ensures: every parameter, used or not, is in exactly one unit. The function is called `@loss`.
    - Keeps: the function's arguments and body.
  }];
  let options = [
    StepOption<"mesh", "mesh", "std::string">,
    StepOption<"strategy", "sharding-strategy", "std::string">,
    StepOption<"policy", "auto-wrap-policy", "std::string">,
    StepOption<"layerPattern", "transformer-layer", "std::string">,
    StepOption<"wrapFile", "wrap", "std::string">,
    StepOption<"minNumParams", "min-num-params", "int64_t">,
    StepOption<"freeze", "freeze", "std::string">,
    StepOption<"ignore", "ignore-params", "std::string">,
    StepOption<"reshard", "reshard-after-forward", "std::string">,
    StepOption<"paramStorage", "param-storage", "std::string">,
    Option<"autoStorage", "auto-storage", "std::string", /*default=*/"\"master\"",
           "Storage that param-storage=auto stands for: master (default) or both.">,
    StepOption<"rootReshard", "reshard-root", "std::string">,
    StepOption<"gatherRows", "gather-rows", "std::string">,
    StepOption<"remarks", "remarks", "bool">
  ];
  let statistics = [
    Statistic<"numUnits", "units", "Units formed">,
    Statistic<"numParams", "parameters", "Parameters laid out">,
    Statistic<"numPadding", "padding-bytes", "Padding in all shards of all units, in bytes">
  ];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
}

def InsertUnshardPass : Pass<"fsdp-insert-unshard", "::mlir::ModuleOp"> {
  let summary = "Replace parameter arguments by shards and gather them before their use";
  let description = [{
    ```mlir
    func.func @loss(%w: tensor<4x8xf32> {fsdp.param = "w", ...}, %x: ...)
    // becomes
    func.func @loss(%s: tensor<64xf32> {fsdp.unit = @root}, %x: ...) attributes {fsdp.program = "step", ...} {
      %w = fsdp.unshard %s @root site 0 : tensor<64xf32> -> tensor<4x8xf32>
    ```

    The pass also adds a copy of the function as `@reference`. The arguments of `@reference` are the
    whole flat buffers of the units. `@reference` runs on one rank (`@solo`) over the micro-batches
    of all ranks.

    - Requires: `fsdp-form-units` has run.
    - Ensures: the arguments of `@loss` are one shard per unit, in the order of units, then the
      batch inputs. Each unit that is used has one gather, directly before the first use of one of
      its parameters.
    - Keeps: the computation, and the order of the batch arguments.
  }];
  let options = [
    StepOption<"gradAccum", "grad-accum", "int64_t">,
    StepOption<"gradSync", "grad-sync", "std::string">
  ];
  let statistics = [
    Statistic<"numGathers", "gathers", "Gathers inserted in the step">
  ];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
}

def VerifyShardedPass : Pass<"fsdp-verify-sharded", "::mlir::ModuleOp"> {
  let summary = "Check the rules that hold after Shard";
  let description = [{
    - Requires: nothing.
    - Ensures:
      - the meshes `@mesh` and `@solo` exist;
      - every unit has one shard per rank of the axis `shard`;
      - offsets in a unit are aligned, and parameters with weight decay precede other parameters;
      - the arguments of the programs `step` and `reference` are one buffer of the right size per
        unit, in the order of the units, then the batch inputs;
      - at most one `fsdp.unshard` reads each shard, and this op has site 0;
      - if the mesh has an axis `tensor` or `context`, there is no program `reference`, and each
        value of `step` is whole, split or a partial sum as its readers expect;
      - no parameter argument is left.
    - Keeps: the IR.
  }];
  let statistics = [
    Statistic<"numChecked", "checked-units", "Units checked, counted once per program">
  ];
}

def VerifyPrecisionPass : Pass<"fsdp-verify-precision", "::mlir::ModuleOp"> {
  let summary = "Check that no product of a narrowed model has f32 operands by mistake";
  let description = [{
    An f32 operand of a product or of attention may have been rounded to a narrow type and extended
    to f32 again. The op then takes as long as an op on f32, but is only as precise as an op on the
    narrow type.

    - Requires: nothing. Modules without `fsdp.kept_wide` are not checked, because a model that was
      exported in bf16 may contain such operands on purpose.
    - Ensures: no product and no attention op reads an f32 tensor that was only extended from a
      narrower type, unless the op has `fsdp.keep_f32`. The check looks through views and
      transpositions.
    - Keeps: the IR.
  }];
  let statistics = [
    Statistic<"numChecked", "checked-ops", "Products and attention ops checked">
  ];
}

#endif // FSDP_SHARD_PASSES_TD
