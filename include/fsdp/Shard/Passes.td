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
    What FSDP calls mixed precision, decided when compiling:

    | | type |
    |---|---|
    | parameters (frozen ones too), activations | `param-dtype` |
    | sums of products, arithmetic in bodies | f32 |
    | reductions and what is made of them alone (means, variances, softmax statistics), scalars, the loss | f32 |
    | what the loss is computed from (logits) | `output-dtype` |
    | buffers, tables, batch arguments | as they are |

    A value is rounded once, where an op ends. A mask below the type's range becomes its lowest
    number and stays finite. A map with another number beyond the range stays f32.

    - Requires: the model contract (docs/explanation/pipeline.md §1). Values narrower than f32 stay as they are, so
      a model that is bf16 already is left alone; an f64 model is refused.
    - Ensures: no f32 parameter; parameters that were carry `fsdp.master_dtype = f32`.
    - Keeps: the order of arguments, initial values, and everything where `param-dtype` is f32.
  }];
  let options = [
    StepOption<"paramDtype", "param-dtype", "std::string">,
    StepOption<"outputDtype", "output-dtype", "std::string">
  ];
  let statistics = [
    Statistic<"numParams", "parameters", "Parameters made narrow">,
    Statistic<"numValues", "values", "Values made narrow, parameters included">,
    Statistic<"numCasts", "casts", "Conversions between ops">,
    Statistic<"numOutputs", "outputs", "Outputs kept in f32">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def FormUnitsPass : Pass<"fsdp-form-units", "::mlir::ModuleOp"> {
  let summary = "Group parameters into units and lay each out as one flat buffer";
  let description = [{
    Declares the device mesh (`@mesh`, and `@solo` for the unsharded reference)
    and one `fsdp.unit` per group of parameters that is gathered together:

    - a **layer**: parameters whose names share a prefix that ends in a number
      (`h.3.`, `model.layers.7.`, `blocks.2.`), or that match `transformer-layer`;
    - with the policy `size`: the smallest modules (prefixes of names) of at least
      `min-num-params` elements that are in no unit yet; what remains is left to the
      module around. Modules whose children are numbers alone are lists, never units;
    - with the policy `manual`: what a file lists;
    - what `fsdp.unit = "name"` on an argument says, whatever the policy;
    - a **table** that is looked up by rows (`gather-rows`), instead of being in the root;
    - the **root** unit: everything else. It is kept from the forward to the backward unless told otherwise;
    - frozen parameters, ignored ones, and parameters of another element type, are split
      off into units of their own (`@"h.3.frozen"`, `@root.ignored`, `@root.f32`).

    Within a unit, parameters with weight decay (rank 2 and more) come first. Every
    offset is a multiple of 32 elements. `shard_size` is the S-th part of the
    unit, rounded up to 64 elements (1024 in units above 64 Ki elements): any S works.

    The strategy is a row of a table of placements (see `#fsdp.placement`).

    - Requires: one public function, as after Import; no mesh and no unit yet.
    - Ensures: every parameter lies in exactly one unit, used or not; the
      function is called `@loss`.
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
    StepOption<"rootReshard", "reshard-root", "std::string">,
    StepOption<"gatherRows", "gather-rows", "std::string">,
    StepOption<"remarks", "remarks", "bool">
  ];
  let statistics = [
    Statistic<"numUnits", "units", "Units formed">,
    Statistic<"numParams", "parameters", "Parameters laid out">,
    Statistic<"numPadding", "padding-bytes", "Bytes of padding over all shards of all units">
  ];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
}

def InsertUnshardPass : Pass<"fsdp-insert-unshard", "::mlir::ModuleOp"> {
  let summary = "Pass shards instead of parameters and gather them before their use";
  let description = [{
    ```mlir
    func.func @loss(%w: tensor<4x8xf32> {fsdp.param = "w", ...}, %x: ...)
    // becomes
    func.func @loss(%s: tensor<64xf32> {fsdp.unit = @root}, %x: ...) attributes {fsdp.program = "step", ...} {
      %w = fsdp.unshard %s @root site 0 : tensor<64xf32> -> tensor<4x8xf32>
    ```

    and once more as `@reference`, whose arguments are the whole flat buffers and
    which runs alone (`@solo`) over the micro-batches of all ranks.

    - Requires: `fsdp-form-units`.
    - Ensures: one shard argument per unit, in the order of the units, before the
      batch; one gather per unit that is used, right before its first use.
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
  let summary = "Check what Shard promises";
  let description = [{
    - Requires: nothing.
    - Ensures: a mesh and its solo; every unit has the mesh's shards, aligned
      offsets and parameters with decay first; the programs `step` and `reference`
      take one shard per unit, in order, of the right size, then the batch; each
      shard is read by at most one `fsdp.unshard`, of site 0; no parameter
      argument is left.
    - Keeps: everything.
  }];
  let statistics = [
    Statistic<"numChecked", "checked-units", "Units checked, once per program">
  ];
}

#endif // FSDP_SHARD_PASSES_TD
