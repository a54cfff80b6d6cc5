//===- FSDPDialect.td - The fsdp dialect -------------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPDIALECT_TD
#define FSDP_IR_FSDPDIALECT_TD

include "mlir/IR/OpBase.td"

def FSDP_Dialect : Dialect {
  let name = "fsdp";
  let cppNamespace = "::mlir::fsdp";
  let summary = "Fully sharded training: units, collectives, kernels, programs";
  let description = [{
    The local, per-rank view of one training step. Values are plain tensors, so
    upstream passes still apply; what the dialect adds is *where a parameter
    lives* and *what crosses ranks*.

    ```
        import     shard          differentiate        fuse          plan
      fsdp.param  fsdp.unit      fsdp.reduce_scatter  fsdp.dispatch  fsdp.program
      attributes  fsdp.unshard   fsdp.unshard again                  fsdp.launch
    ```

    Life of a parameter: every rank owns one of S equal slices ("the shard") of
    each unit's flat buffer. `fsdp.unshard` makes the parameters of the unit
    whole, its adjoint `fsdp.reduce_scatter` brings the gradient back to a
    shard, and the optimizer updates the shard in place.

    Discardable attributes of functions and their arguments:

    | attribute | on | meaning |
    |---|---|---|
    | `fsdp.param = "name"` | argument (after Import) | a parameter |
    | `fsdp.frozen` | the same | no gradient, no optimizer state |
    | `fsdp.init = #fsdp.init<...>` | the same | how it starts |
    | `fsdp.master_dtype = f32` | the same | the parameter's type before it was made narrow |
    | `fsdp.values = {name = dense_resource<...>}` | module | initial values that came with the model, by parameter |
    | `fsdp.batch = "tokens"` | argument | a batch input: `tokens`, `targets` or a name |
    | `fsdp.limit = N` | batch argument of ids | every id is in [0, N) |
    | `fsdp.extra_ids = array<i64: -100>` | the same | or one of these, which the model keeps from its lookups |
    | `fsdp.loss_weight` | argument (after Differentiate) | what the loss of a micro-batch is multiplied by |
    | `fsdp.loss_scale` | the same | what the backward starts from |
    | `fsdp.unit = @u` | argument (after Shard) | this rank's shard of the unit |
    | `fsdp.state = "parameter"` | the same (after Update) | `parameter`, `first_moment`, `second_moment`, `momentum`, `master` |
    | `fsdp.block` | argument (after Update) | the step block |
    | `fsdp.rank` | argument (after Update) | the rank block |
    | `fsdp.updates = I` | result (after Update) | the new value of argument I, in place |
    | `fsdp.unit = @u` | result (after Differentiate) | the gradient shard of the unit |
    | `fsdp.rows = @u` | result (after Differentiate) | what rows that were looked up add to the gradient of the unit |
    | `fsdp.rows = @u` | collective (after Update) | it moves ids, or rows at them, of the table that the unit is |
    | `fsdp.gradient = I` | result (after Differentiate) | the gradient of parameter I of a function without units |
    | `fsdp.lookup = {...}` | result (from Import to Update) | 0, or an index of a lookup that is out of range: `location`, `extent`, `what` |
    | `fsdp.lookups = [...]` | module (after Update) | the lookups that are checked in each step |
    | `fsdp.recompute` | op (after Differentiate) | a forward op computed again in the backward: kept apart from its original |
    | `fsdp.program = "step"` | function | `step`, `eval` or `reference` |
    | `fsdp.mesh = @m` | function (after Shard) | the mesh that its collectives run on |
    | `fsdp.micro_batches = K` | function (after Shard) | gradients of K micro-batches are accumulated |
    | `fsdp.no_sync` | function (after Shard) | they are summed before they cross ranks |
    | `fsdp.key = "seed"`, `"step"` or `"sample"` | argument (until Update) | what random numbers follow from: the seed of the run, the number of the step, and that of the first sample in the global batch |
    | `fsdp.constants = ["name", ...]` | module (after Import) | tensors of floats in the model that nothing trains and that stay constants |
    | `fsdp.seed = N` | module | seed of initial values and samples, where a run gives none |
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::linalg::LinalgDialect"];
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral paramAttr = "fsdp.param";
    static constexpr ::llvm::StringLiteral frozenAttr = "fsdp.frozen";
    static constexpr ::llvm::StringLiteral initAttr = "fsdp.init";
    static constexpr ::llvm::StringLiteral masterDtypeAttr = "fsdp.master_dtype";
    static constexpr ::llvm::StringLiteral valuesAttr = "fsdp.values";
    static constexpr ::llvm::StringLiteral batchAttr = "fsdp.batch";
    static constexpr ::llvm::StringLiteral keyAttr = "fsdp.key";
    static constexpr ::llvm::StringLiteral limitAttr = "fsdp.limit";
    static constexpr ::llvm::StringLiteral extraIdsAttr = "fsdp.extra_ids";
    static constexpr ::llvm::StringLiteral unitAttr = "fsdp.unit";
    static constexpr ::llvm::StringLiteral stateAttr = "fsdp.state";
    static constexpr ::llvm::StringLiteral blockAttr = "fsdp.block";
    static constexpr ::llvm::StringLiteral rankAttr = "fsdp.rank";
    static constexpr ::llvm::StringLiteral updatesAttr = "fsdp.updates";
    static constexpr ::llvm::StringLiteral gradientAttr = "fsdp.gradient";
    static constexpr ::llvm::StringLiteral rowsAttr = "fsdp.rows";
    static constexpr ::llvm::StringLiteral recomputeAttr = "fsdp.recompute";
    static constexpr ::llvm::StringLiteral programAttr = "fsdp.program";
    static constexpr ::llvm::StringLiteral meshAttr = "fsdp.mesh";
    static constexpr ::llvm::StringLiteral microBatchesAttr = "fsdp.micro_batches";
    static constexpr ::llvm::StringLiteral noSyncAttr = "fsdp.no_sync";
    static constexpr ::llvm::StringLiteral seedAttr = "fsdp.seed";
  }];
}

#endif // FSDP_IR_FSDPDIALECT_TD
