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
  let summary = "Units, collectives, kernels and programs of fully sharded training";
  let description = [{
    The dialect describes one training step as seen by one rank. Values have MLIR's tensor types, so
    the passes of MLIR can be applied to them. The dialect adds two things: *where a parameter is
    stored*, and *which data ranks exchange*.

    ```
        import     shard          differentiate        fuse          plan
      fsdp.param  fsdp.unit      fsdp.reduce_scatter  fsdp.dispatch  fsdp.program
      attributes  fsdp.unshard   fsdp.unshard again                  fsdp.launch
    ```

    A unit is a group of parameters with one flat buffer. Between the uses of a parameter, every
    rank owns one of S equal slices (the shard) of the flat buffer of the parameter's unit.
    `fsdp.unshard` gathers the parameters of the unit. The adjoint op `fsdp.reduce_scatter` reduces
    the gradients of the unit to a shard, and the optimizer updates the shard.

    The table lists the discardable attributes. In the table, "after X" means that the attribute may
    be present after stage X.

    | attribute | on | meaning |
    |---|---|---|
    | `fsdp.param = "name"` | argument (after Import) | a parameter, and its name |
    | `fsdp.frozen` | parameter argument | the parameter has no gradient and no optimizer state |
    | `fsdp.init = #fsdp.init<...>` | parameter argument | distribution of the initial values |
    | `fsdp.master_dtype = f32` | parameter argument | type of the parameter before Shard narrowed it |
    | `fsdp.keep_f32` | product or attention (after Shard) | `--keep-f32` asks for the f32 operands of the op |
    | `fsdp.kept_wide = {"reason" = array<i64: N, E>}` | module (after Shard) | `--param-dtype` was applied; for each reason, N values with E elements remained f32 |
    | `fsdp.values = {name = dense_resource<...>}` | module | initial values from the model's file, by parameter |
    | `fsdp.batch = "tokens"` | argument | a batch input: `tokens`, `targets` or another name |
    | `fsdp.limit = N` | batch argument of ids | every id is in [0, N) |
    | `fsdp.extra_ids = array<i64: -100>` | batch argument of ids | ids outside the limit that are allowed, because the model does not look them up |
    | `fsdp.loss_weight` | argument (after Differentiate) | factor of the loss of a micro-batch |
    | `fsdp.loss_scale` | argument (after Differentiate) | loss scale, with which the backward starts |
    | `fsdp.unit = @u` | argument (after Shard) | this rank's shard of the unit |
    | `fsdp.state = "parameter"` | argument (after Update) | role of the state: `parameter`, `first_moment`, `second_moment`, `momentum`, `master` |
    | `fsdp.block` | argument (after Update) | the step block |
    | `fsdp.rank` | argument (after Update) | the rank block |
    | `fsdp.updates = I` | result (after Update) | the new value of argument I, in place |
    | `fsdp.unit = @u` | result (after Differentiate) | the gradient shard of the unit |
    | `fsdp.rows = @u` | result (after Differentiate) | gradient of the unit's table from looked-up rows |
    | `fsdp.rows = @u` | collective (after Update) | the collective transfers ids, or rows at ids, of the unit's table |
    | `fsdp.gradient = I` | result (after Differentiate) | gradient of parameter I of a function without units |
    | `fsdp.lookup = {...}` | result (from Import to Update) | the result is 0, or an index of a lookup that is out of range; the attribute has `location`, `extent`, `what` |
    | `fsdp.lookups = [...]` | module (after Update) | the lookups that are checked in each step |
    | `fsdp.dynamic_loss_scale` | module (after Update) | the step changes the loss scale in the step block |
    | `fsdp.recompute` | op (after Differentiate) | a forward op recomputed in the backward; it is not merged with its original |
    | `fsdp.program = "step"` | function | `step`, `eval` or `reference` |
    | `fsdp.mesh = @m` | function (after Shard) | mesh of the function's collectives |
    | `fsdp.micro_batches = K` | function (after Shard) | gradients of K micro-batches are accumulated |
    | `fsdp.no_sync` | function (after Shard) | gradients are summed over micro-batches before ranks |
    | `fsdp.key = "seed"`, `"step"` or `"sample"` | argument (until Update) | a key of random numbers: the seed of the run, the number of the step, or the number of the first sample in the global batch |
    | `fsdp.key = "context"` or `"tensor"` | argument (from Shard until Update) | coordinate of the rank on this axis of the mesh |
    | `fsdp.constants = ["name", ...]` | module (after Import) | float tensors of the model that are not trained and remain constants |
    | `fsdp.seed = N` | module | default seed of a run, for initial values and samples |
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
    static constexpr ::llvm::StringLiteral keepF32Attr = "fsdp.keep_f32";
    static constexpr ::llvm::StringLiteral keptWideAttr = "fsdp.kept_wide";
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
