//===- FSDPShardingOps.td - Meshes, units, collectives -----*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPSHARDINGOPS_TD
#define FSDP_IR_FSDPSHARDINGOPS_TD

include "fsdp/IR/FSDPBase.td"

def FSDP_TokenType : FSDP_Type<"Token", "token"> {
  let summary = "a collective in flight, and what it will give";
  let description = [{
    `!fsdp.token<tensor<4x8xbf16>, tensor<8xbf16>>` is what `fsdp.await` turns into two tensors.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Type", "types of what it gives">:$types);
  let assemblyFormat = "`<` $types `>`";
}

def FSDP_MeshOp : FSDP_Op<"mesh", [Symbol]> {
  let summary = "the device mesh";
  let description = [{
    Axes outermost first. Ranks are numbered row-major over the axes.

    What names an axis may name groups of neighbours on it instead: `"shard:2"` on 6 ranks is the
    groups {0 1} {2 3} {4 5}, however the axis is factored.

    Constraints: (C1) at least one axis, names distinct and without `:`; (C2) every factor ≥ 1.

    ```mlir
    fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [4]>]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedArrayAttrBase<FSDP_AxisAttr, "axes">:$axes);
  let assemblyFormat = "$sym_name $axes attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Ranks along the axis called `name`, or in a group of neighbours as in "shard:2"; 1 when there is none.
    int64_t getAxisSize(::llvm::StringRef name);
    /// Whether it is an axis, or groups of neighbours into which one divides.
    bool hasAxis(::llvm::StringRef name);
    /// What names the groups of `ranks` neighbours on `axis`; the axis itself where that is all of them.
    std::string getNeighbours(::llvm::StringRef axis, int64_t ranks);
    int64_t getNumRanks();
  }];
}

def FSDP_UnitOp : FSDP_Op<"unit", [Symbol]> {
  let summary = "parameters that are gathered and reduced together";
  let description = [{
    The flat buffer of a unit has `shards × shard_size` elements; slice r of
    `shard_size` elements is the shard of rank r of the shard axis. Shard layout
    = gather layout = parameter views, so nothing is ever copied between them.

    ```
      flat   | p0 | p1      .| p2   .. pad |      '.' alignment gap
      rank   |     0     |     1     |          shard_size elements each
    ```

    Constraints: (C1) all parameters have the unit's dtype; (C2) they lie in the
    flat buffer, in order, without overlap; (C3) names are distinct; (C4) the lists of
    `placement` are beginnings of `["shard", "replicate"]`, each no longer than the next;
    (C5) a `hoisted` unit is not gathered again; (C6) `within` N: the unit is gathered again, its
    parameters are in pieces over `shard`, and N is less than `shards`, at least 2 and divides them;
    (C7) the dtype is a float, or an integer where no parameter is trained; (C8) with `rows` the unit is one
    table: one parameter, of rank 2 and of floats, at offset 0, and a shard is whole rows of it.

    `reshard`: gathered again in the backward (true) or kept from the forward. `within` N: of each
    gathered buffer a rank keeps the N-th part, its own among N neighbours on `shard`, and the backward
    gathers among those alone. `hoisted`: not even
    gathered for each micro-batch, but once per step. `rows`: lookups take the rows they need from the
    ranks that have them, instead of the gathered table. Without a `placement` everything is in pieces
    over `shard`, as with `full_shard`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$shards, I64Attr:$shard_size,
                       TypeAttr:$dtype, BoolAttr:$reshard,
                       TypedArrayAttrBase<FSDP_ParamAttr, "parameters">:$params,
                       OptionalAttr<FSDP_PlacementAttr>:$placement, UnitAttr:$hoisted,
                       OptionalAttr<I64Attr>:$within, UnitAttr:$rows);
  let assemblyFormat = [{
    $sym_name `shards` $shards `x` $shard_size `:` $dtype `reshard` $reshard (`within` $within^)? (`hoisted` $hoisted^)?
    (`rows` $rows^)? $params (`placement` $placement^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Elements of the whole flat buffer.
    int64_t getFlatSize() { return getShards() * getShardSize(); }
    /// The axes over which parameters, accumulated gradients and optimizer state are in pieces.
    ::llvm::SmallVector<::llvm::StringRef> getParameterAxes();
    ::llvm::SmallVector<::llvm::StringRef> getGradientAxes();
    ::llvm::SmallVector<::llvm::StringRef> getOptimizerAxes();
    /// Elements of one of the pieces over `axes`.
    int64_t getPieceSize(::llvm::ArrayRef<::llvm::StringRef> axes, ::mlir::fsdp::MeshOp mesh);
    ::mlir::fsdp::ParamAttr getParam(unsigned index) {
      return ::llvm::cast<::mlir::fsdp::ParamAttr>(getParams()[index]);
    }
    unsigned getNumParams() { return getParams().size(); }
  }];
}

def FSDP_UnshardOp : FSDP_Op<"unshard", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "make all parameters of a unit whole";
  let description = [{
    Gathers the shards of `unit` and returns every parameter, in the unit's
    order. `site` tells one gather from another (0: forward, 1: backward), so
    that gathering again is not folded into the first. The size of the operand says among how
    many neighbours: pieces of the S-th part among all S, larger ones among fewer.

    Constraints: (C1) `unit` names an `fsdp.unit`; (C2) one result per
    parameter, of its shape; all of one element type (the gather dtype);
    (C3) the operand is 1-D and its size divides the unit's flat size.

    ```mlir
    %w, %b = fsdp.unshard %shard @"h.0" site 0 : tensor<640xf32> -> tensor<4x8xf32>, tensor<8xf32>
    ```
  }];
  let arguments = (ins 1DTensorOf<[AnyFloat, AnyInteger]>:$shard, FlatSymbolRefAttr:$unit,
                       DefaultValuedAttr<I64Attr, "0">:$site);
  let results = (outs Variadic<RankedTensorOf<[AnyFloat, AnyInteger]>>:$params);
  let assemblyFormat = "$shard $unit `site` $site attr-dict `:` type($shard) `->` type($params)";
}

def FSDP_ReduceScatterOp : FSDP_Op<"reduce_scatter", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "reduce a unit's gradients over ranks, keep this rank's shard";
  let description = [{
    The adjoint of `fsdp.unshard`. Operand i is the cotangent of parameter
    `params[i]`; parameters that are not listed, and the padding, contribute zero.
    Contributions are added in rank order, starting from +0; `avg` then multiplies by 1/n.

    Constraints: (C1) `unit` names an `fsdp.unit`; (C2) `params` is strictly
    increasing and in range; (C3) each operand has its parameter's shape, all of
    one element type (the reduce dtype); (C4) the result's size divides the flat size.
  }];
  let arguments = (ins Variadic<RankedTensorOf<[AnyFloat]>>:$grads, FlatSymbolRefAttr:$unit,
                       DenseI64ArrayAttr:$params, FSDP_ReductionAttr:$reduction);
  let results = (outs 1DTensorOf<[AnyFloat]>:$shard);
  let assemblyFormat = [{
    $unit $reduction `params` $params `(` $grads `)` attr-dict `:` functional-type($grads, $shard)
  }];
}

def FSDP_UnshardRowsOp : FSDP_Op<"unshard_rows", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "rows of a table that is in pieces, at ids";
  let description = [{
    `result[i.., :] = 0 + table[ids[i..], :]`, the table being the one parameter of `unit`, and each row of it with
    the rank whose shard it lies in. Each rank has ids of its own. (0 is added since ranks are: -0 becomes 0.)

    Constraints: (C1) `unit` names an `fsdp.unit` with `rows`; (C2) the result is the shape of ids with the
    table's columns appended; (C3) the operand is 1-D, and a shard of the unit or its whole buffer.

    ```mlir
    %e = fsdp.unshard_rows %shard[%ids] @wte : tensor<1024xf32>, tensor<2x8xi64> -> tensor<2x8x16xf32>
    ```
  }];
  let arguments = (ins 1DTensorOf<[AnyFloat]>:$shard, RankedTensorOf<[AnyInteger]>:$ids, FlatSymbolRefAttr:$unit);
  let results = (outs RankedTensorOf<[AnyFloat]>:$rows);
  let assemblyFormat = [{
    $shard `[` $ids `]` $unit attr-dict `:` type($shard) `,` type($ids) `->` type($rows)
  }];
}

def FSDP_ReduceRowsOp : FSDP_Op<"reduce_rows", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "add rows of all ranks into a table that is in pieces, at ids";
  let description = [{
    The adjoint of `fsdp.unshard_rows`: of a table of +0, `table[ids[i], :] += rows[i, :]` for i in order, rank by
    rank; `avg` then multiplies by 1/n. Each rank keeps its shard. Of equal ids of one rank all but one
    have rows of zeros, so that this is the sum over ranks of what each would add up for itself.

    Constraints: (C1) `unit` names an `fsdp.unit` with `rows`; (C2) ids have rank 1, rows their
    shape with the table's columns appended; (C3) the result is 1-D, and a shard of the unit or its whole buffer.

    ```mlir
    %g = fsdp.reduce_rows @wte avg %rows at %ids : tensor<16x16xf32>, tensor<16xi64> -> tensor<1024xf32>
    ```
  }];
  let arguments = (ins 2DTensorOf<[AnyFloat]>:$rows, 1DTensorOf<[AnyInteger]>:$ids, FlatSymbolRefAttr:$unit,
                       FSDP_ReductionAttr:$reduction);
  let results = (outs 1DTensorOf<[AnyFloat]>:$shard);
  let assemblyFormat = [{
    $unit $reduction $rows `at` $ids attr-dict `:` type($rows) `,` type($ids) `->` type($shard)
  }];
}

def FSDP_ShardOp : FSDP_Op<"shard", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "this rank's slice of a unit's whole parameters";
  let description = [{
    The inverse of `fsdp.unshard`. Where the backward gathers within groups of N neighbours
    it makes what a rank keeps after the forward, the N-th part; Plan copies it.
    Constraints: as of `fsdp.unshard`, with
    operands and results exchanged.
  }];
  let arguments = (ins Variadic<RankedTensorOf<[AnyFloat, AnyInteger]>>:$params, FlatSymbolRefAttr:$unit);
  let results = (outs 1DTensorOf<[AnyFloat, AnyInteger]>:$shard);
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = "$unit `(` $params `)` attr-dict `:` functional-type($params, $shard)";
}

class FSDP_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : FSDP_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)>;

def FSDP_AllReduceOp : FSDP_CollectiveOp<"all_reduce", [SameOperandsAndResultType]> {
  let summary = "reduce a tensor over the ranks of some mesh axes";
  let description = [{
    Contributions are added in rank order, starting from +0; `avg` then
    multiplies by 1/n. Constraints: (C1) `mesh` names an `fsdp.mesh`; (C2) each of
    `axes` is one of its axes, or neighbours on one, none twice.
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input, FlatSymbolRefAttr:$mesh,
                       StrArrayAttr:$axes, FSDP_ReductionAttr:$reduction);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = "$input $mesh $axes $reduction attr-dict `:` type($input)";
}

def FSDP_AllGatherOp : FSDP_CollectiveOp<"all_gather"> {
  let summary = "concatenate 1-D tensors of the ranks of some mesh axes";
  let description = [{
    Constraints: (C1), (C2) as of `fsdp.all_reduce`; (C3) the result has n times
    the elements of the operand, n the number of ranks.
  }];
  let arguments = (ins 1DTensorOf<[AnyType]>:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes);
  let results = (outs 1DTensorOf<[AnyType]>:$result);
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = "$input $mesh $axes attr-dict `:` type($input) `->` type($result)";
}

def FSDP_FlatReduceScatterOp : FSDP_CollectiveOp<"flat_reduce_scatter"> {
  let summary = "reduce a 1-D tensor over the ranks of some mesh axes, keep this rank's piece";
  let description = [{
    The adjoint of `fsdp.all_gather`. Contributions are added in rank order,
    starting from +0; `avg` then multiplies by 1/n.

    Constraints: (C1), (C2) as of `fsdp.all_reduce`; (C3) the operand has n times
    the elements of the result, n the number of ranks.
  }];
  let arguments = (ins 1DTensorOf<[AnyFloat]>:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes,
                       FSDP_ReductionAttr:$reduction);
  let results = (outs 1DTensorOf<[AnyFloat]>:$result);
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = "$input $mesh $axes $reduction attr-dict `:` type($input) `->` type($result)";
}

def FSDP_OwnPieceOp : FSDP_CollectiveOp<"own_piece"> {
  let summary = "this rank's piece of a 1-D tensor";
  let description = [{
    The inverse of `fsdp.all_gather`, a view: of n equal pieces, the one whose number is the
    rank's index on `axes`. No rank hears of another.

    Constraints: (C1), (C2) as of `fsdp.all_reduce`; (C3) the operand has n times
    the elements of the result.
  }];
  let arguments = (ins 1DTensorOf<[AnyType]>:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes);
  let results = (outs 1DTensorOf<[AnyType]>:$result);
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = "$input $mesh $axes attr-dict `:` type($input) `->` type($result)";
}

def FSDP_BroadcastOp : FSDP_CollectiveOp<"broadcast", [SameOperandsAndResultType]> {
  let summary = "the value of rank `root` of a group, on all its ranks";
  let description = [{
    Constraints: (C1), (C2) as of `fsdp.all_reduce`; (C3) `root` is a rank of the group.
  }];
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes, I64Attr:$root);
  let results = (outs AnyRankedTensor:$result);
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = "$input $mesh $axes `root` $root attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// Collectives in flight
//===----------------------------------------------------------------------===//

def FSDP_Fabric : Resource<"::mlir::fsdp::FabricResource">;

// What all of these have: `channel` and `id`, and a token instead of the results.
class FSDP_StartOp<string mnemonic>
    : FSDP_Op<mnemonic, [DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemWrite<FSDP_Fabric>]>]> {
  let results = (outs FSDP_TokenType:$token);
  string startDescription = [{
    Nothing but `fsdp.await` takes the token. Until then the source has to stay as it
    is: peers read it in place. `channel` is the queue that it is put on, in order;
    `id` is the same on all ranks, and in every listing of the plan.

    These forms are a schedule, so they have effects and no canonicalisation: nothing
    moves one over another, merges two or drops one. `fsdp-join-collectives` undoes
    those that overlap with nothing.

    Constraints: as of the form without `_start`, of which the token's types are the
    results; (S1) `channel` is at least 1 (0 is the form without a token), `id` at
    least 0; (S2) the token has one use, an `fsdp.await` after it in the same block.
  }];
}

def FSDP_UnshardStartOp : FSDP_StartOp<"unshard_start"> {
  let summary = "begin to make all parameters of a unit whole";
  let description = !strconcat(startDescription, [{

    ```mlir
    %t = fsdp.unshard_start %shard @"h.0" site 0 channel 1 id 4
        : tensor<640xf32> -> !fsdp.token<tensor<4x8xf32>, tensor<8xf32>>
    %w, %b = fsdp.await %t : !fsdp.token<tensor<4x8xf32>, tensor<8xf32>>
    ```
  }]);
  let arguments = (ins 1DTensorOf<[AnyFloat, AnyInteger]>:$shard, FlatSymbolRefAttr:$unit,
                       DefaultValuedAttr<I64Attr, "0">:$site, I64Attr:$channel, I64Attr:$id);
  let assemblyFormat = [{
    $shard $unit `site` $site `channel` $channel `id` $id attr-dict `:` type($shard) `->` qualified(type($token))
  }];
}

def FSDP_ReduceScatterStartOp : FSDP_StartOp<"reduce_scatter_start"> {
  let summary = "begin to reduce a unit's gradients";
  let description = startDescription;
  let arguments = (ins Variadic<RankedTensorOf<[AnyFloat]>>:$grads, FlatSymbolRefAttr:$unit,
                       DenseI64ArrayAttr:$params, FSDP_ReductionAttr:$reduction, I64Attr:$channel, I64Attr:$id);
  let assemblyFormat = [{
    $unit $reduction `params` $params `(` $grads `)` `channel` $channel `id` $id attr-dict `:`
    `(` type($grads) `)` `->` qualified(type($token))
  }];
}

def FSDP_AllReduceStartOp : FSDP_StartOp<"all_reduce_start"> {
  let summary = "begin to reduce a tensor over ranks";
  let description = startDescription;
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes,
                       FSDP_ReductionAttr:$reduction, I64Attr:$channel, I64Attr:$id);
  let assemblyFormat = [{
    $input $mesh $axes $reduction `channel` $channel `id` $id attr-dict `:` type($input) `->` qualified(type($token))
  }];
}

def FSDP_AllGatherStartOp : FSDP_StartOp<"all_gather_start"> {
  let summary = "begin to concatenate 1-D tensors of ranks";
  let description = startDescription;
  let arguments = (ins 1DTensorOf<[AnyType]>:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes,
                       I64Attr:$channel, I64Attr:$id);
  let assemblyFormat = [{
    $input $mesh $axes `channel` $channel `id` $id attr-dict `:` type($input) `->` qualified(type($token))
  }];
}

def FSDP_BroadcastStartOp : FSDP_StartOp<"broadcast_start"> {
  let summary = "begin to send the value of rank `root` to its group";
  let description = startDescription;
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes, I64Attr:$root,
                       I64Attr:$channel, I64Attr:$id);
  let assemblyFormat = [{
    $input $mesh $axes `root` $root `channel` $channel `id` $id attr-dict `:` type($input) `->` qualified(type($token))
  }];
}

def FSDP_AwaitOp : FSDP_Op<"await", [MemoryEffects<[MemWrite<FSDP_Fabric>]>]> {
  let summary = "the results of a collective in flight";
  let description = [{
    After it the results are complete *and* the source may be reused. Plan makes of
    it the command `fsdp.wait`, of the collective's `id`.

    Constraints: (C1) the results have the types of the token; (C2) the token comes from
    a `_start` in the same block (which checks that it is awaited once).

    ```mlir
    %y = fsdp.await %t : !fsdp.token<tensor<8xf32>>
    ```
  }];
  let arguments = (ins FSDP_TokenType:$token);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let hasVerifier = 1;
  let hasCustomAssemblyFormat = 1;
}

#endif // FSDP_IR_FSDPSHARDINGOPS_TD
