//===- FSDPShardingOps.td - Meshes, units, collectives -----*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPSHARDINGOPS_TD
#define FSDP_IR_FSDPSHARDINGOPS_TD

include "fsdp/IR/FSDPBase.td"

def FSDP_TokenType : FSDP_Type<"Token", "token"> {
  let summary = "a collective that has started, with the types of its results";
  let description = [{
    `fsdp.await` turns a value of `!fsdp.token<tensor<4x8xbf16>, tensor<8xbf16>>` into two tensors
    of these types.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Type", "types of the results">:$types);
  let assemblyFormat = "`<` $types `>`";
}

def FSDP_MeshOp : FSDP_Op<"mesh", [Symbol]> {
  let summary = "the device mesh";
  let description = [{
    Axes are listed outermost first. Ranks are numbered row-major over the axes.

    `"axis:N"` names the groups of N neighbours on an axis. On an axis `shard` of 6 ranks,
    `"shard:2"` means the groups {0 1} {2 3} {4 5}. The factors of the axis have no effect.

    With `context C`, `"context"` is another name of the groups of C neighbours on the axis
    `shard`. The C ranks of a group read the same samples, and each has a part of the sequence.
    Units are sharded over the whole axis `shard`, so that it has C times as many ranks as read
    different samples.

    Constraints: (C1) there is at least one axis, and names are distinct, printable, without `:` and
    not `context`; (C2) every factor is at least 1; (C3) `context` divides the size of the axis `shard`.

    ```mlir
    fsdp.mesh @mesh [#fsdp.axis<"replicate", [1]>, #fsdp.axis<"shard", [4]>]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedArrayAttrBase<FSDP_AxisAttr, "axes">:$axes,
                       OptionalAttr<I64Attr>:$context_size);
  let assemblyFormat = "$sym_name $axes (`context` $context_size^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the size of the axis `name`. For a name such as "shard:2", which denotes groups of
    /// neighbouring ranks on an axis, returns the number of ranks in a group. Returns 1 if the mesh
    /// has no axis of this name.
    int64_t getAxisSize(::llvm::StringRef name);
    /// Returns true if `name` is the name of an axis, or has the form "AXIS:N" where N divides the
    /// size of the axis AXIS.
    bool hasAxis(::llvm::StringRef name);
    /// Returns `axis` if `ranks` is the size of the axis. Else returns the name "AXIS:N", which
    /// denotes the groups of N = `ranks` neighbouring ranks on the axis.
    std::string getNeighbours(::llvm::StringRef axis, int64_t ranks);
    int64_t getNumRanks();
    /// Returns the number of ranks that read the same samples, which are consecutive.
    int64_t getNumReaders();
  }];
}

def FSDP_UnitOp : FSDP_Op<"unit", [Symbol]> {
  let summary = "a group of parameters that are gathered and reduced together";
  let description = [{
    The flat buffer of a unit has `shards × shard_size` elements. The r-th slice of `shard_size`
    elements is the shard of rank r on the axis `shard`. A gather of the shards yields the flat
    buffer. The parameters are views of the flat buffer, so that no copies are needed.

    ```
      flat   | p0 | p1      .| p2   .. pad |      '.' alignment gap
      rank   |     0     |     1     |          shard_size elements each
    ```

    | attribute | meaning |
    |---|---|
    | `reshard` | true: the backward gathers the unit again; false: it reads the parameters gathered in the forward |
    | `within` N | after the forward, a rank keeps 1/N of each gathered buffer, and the backward gathers among N neighbours on `shard` |
    | `hoisted` | the unit is gathered once per step instead of once per micro-batch |
    | `rows` | lookups exchange the rows that they need instead of gathering the table |
    | `placement` | axes over which tensors are split; default: `shard` for all tensors, as with `full_shard` |

    Constraints:

    - (C1) All parameters have the unit's dtype.
    - (C2) Parameters are within the flat buffer, in order, without overlap.
    - (C3) Names of parameters are distinct.
    - (C4) The lists of `placement` are prefixes of `["shard", "replicate"]`. No list is longer than
      the next list.
    - (C5) A `hoisted` unit has `reshard false`.
    - (C6) A unit with `within` N has `reshard true`, and its parameters are split over `shard`. N
      is at least 2 and less than `shards`, and N divides `shards`.
    - (C7) The dtype is a float, or an integer if no parameter is trained.
    - (C8) A unit with `rows` consists of one table: a float parameter of rank 2 at offset 0. A
      shard consists of whole rows.
    - (C9) The names of the unit and of its parameters are UTF-8 without control characters.
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
    /// Returns the number of elements of the flat buffer of the unit.
    int64_t getFlatSize() { return getShards() * getShardSize(); }
    /// Return the axes over which the parameters, the accumulated gradients or the optimizer state
    /// are split.
    ::llvm::SmallVector<::llvm::StringRef> getParameterAxes();
    ::llvm::SmallVector<::llvm::StringRef> getGradientAxes();
    ::llvm::SmallVector<::llvm::StringRef> getOptimizerAxes();
    /// Returns the number of elements of each piece into which the flat buffer is split over
    /// `axes`.
    int64_t getPieceSize(::llvm::ArrayRef<::llvm::StringRef> axes, ::mlir::fsdp::MeshOp mesh);
    ::mlir::fsdp::ParamAttr getParam(unsigned index) {
      return ::llvm::cast<::mlir::fsdp::ParamAttr>(getParams()[index]);
    }
    unsigned getNumParams() { return getParams().size(); }
  }];
}

def FSDP_UnshardOp : FSDP_Op<"unshard", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "gather all parameters of a unit";
  let description = [{
    Gathers the shards of `unit` and returns every parameter, in the unit's order. `site` is 0 in
    the forward and 1 in the backward, so that CSE does not merge the two gathers of a unit. If the
    operand is 1/S of the unit, all S ranks take part in the gather. If the operand is 1/N of the
    unit, the N ranks of a group of neighbours take part.

    Constraints:

    - (C1) `unit` names an `fsdp.unit`.
    - (C2) There is one result per parameter, with the parameter's shape. All results have one
      element type (the gather dtype).
    - (C3) The operand is 1-D, and its size divides the unit's flat size.

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
  let summary = "reduce a unit's gradients over ranks and keep this rank's shard";
  let description = [{
    This is the adjoint of `fsdp.unshard`. Operand i is the cotangent of parameter `params[i]`.
    Parameters that are not listed, and the padding, contribute zeros. The contributions of the
    ranks are added in rank order, starting from +0. With `avg`, the sum is then multiplied by 1/n
    for n ranks.

    Constraints:

    - (C1) `unit` names an `fsdp.unit`.
    - (C2) `params` is strictly increasing and in range.
    - (C3) Each operand has its parameter's shape. All operands have one element type (the reduce
      dtype).
    - (C4) The flat size is a multiple of the size of the result.
  }];
  let arguments = (ins Variadic<RankedTensorOf<[AnyFloat]>>:$grads, FlatSymbolRefAttr:$unit,
                       DenseI64ArrayAttr:$params, FSDP_ReductionAttr:$reduction);
  let results = (outs 1DTensorOf<[AnyFloat]>:$shard);
  let assemblyFormat = [{
    $unit $reduction `params` $params `(` $grads `)` attr-dict `:` functional-type($grads, $shard)
  }];
}

def FSDP_UnshardRowsOp : FSDP_Op<"unshard_rows", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "look up rows of a sharded table at ids";
  let description = [{
    `result[i.., :] = 0 + table[ids[i..], :]`. The table is the only parameter of `unit`, and each
    row is on the rank whose shard contains it. The ids may differ between ranks. The formula adds 0
    because ranks that do not own a row add zeros to the row, which turns -0 into 0.

    Constraints:

    - (C1) `unit` names an `fsdp.unit` with `rows`.
    - (C2) The result has the shape of the ids followed by the table's columns.
    - (C3) The operand is 1-D, and is a shard of the unit or the unit's whole buffer.

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
  let summary = "add rows of all ranks into a sharded table at ids";
  let description = [{
    This is the adjoint of `fsdp.unshard_rows`. All elements of the table start as +0. For each rank
    in order, and for each i in order, the op computes `table[ids[i], :] += rows[i, :]`. With `avg`,
    the table is then multiplied by 1/n for n ranks. Each rank keeps its shard of the table. If
    several ids of a rank are equal, at most one of the rows for these ids may be nonzero. For each
    id, the result is thus a sum with one term per rank.

    Constraints:

    - (C1) `unit` names an `fsdp.unit` with `rows`.
    - (C2) Ids have rank 1, and rows have the shape of the ids followed by the table's columns.
    - (C3) The result is 1-D, and is a shard of the unit or the unit's whole buffer.

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
  let summary = "this rank's slice of the whole parameters of a unit";
  let description = [{
    This is the inverse of `fsdp.unshard`. If the backward gathers within groups of N neighbours,
    each rank keeps 1/N of the parameters after the forward. The op returns this part. The stage
    Plan turns the op into a copy.

    Constraints: the constraints of `fsdp.unshard`, with operands and results exchanged.
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
    The contributions of the ranks are added in rank order, starting from +0. With `avg`, the sum is
    then multiplied by 1/n for n ranks.

    Constraints: (C1) `mesh` names an `fsdp.mesh`; (C2) each element of `axes` names an axis of the
    mesh, or groups of neighbours on an axis, and no axis occurs twice.
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
    The adjoint is an `fsdp.flat_reduce_scatter`: every rank has a part of the cotangent of the result.

    Constraints: (C1), (C2) as in `fsdp.all_reduce`; (C3) the result has n times as many elements as
    the operand, where n is the number of ranks.
  }];
  let arguments = (ins 1DTensorOf<[AnyType]>:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes);
  let results = (outs 1DTensorOf<[AnyType]>:$result);
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = "$input $mesh $axes attr-dict `:` type($input) `->` type($result)";
}

def FSDP_FlatReduceScatterOp : FSDP_CollectiveOp<"flat_reduce_scatter"> {
  let summary = "reduce a 1-D tensor over the ranks of some mesh axes and keep this rank's piece";
  let description = [{
    This is the adjoint of `fsdp.all_gather`, which is its adjoint. The contributions of the ranks
    are added in rank order, starting from +0. With `avg`, the sum is then multiplied by 1/n for n
    ranks.

    Constraints: (C1), (C2) as in `fsdp.all_reduce`; (C3) the operand has n times as many elements
    as the result, where n is the number of ranks.
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
    This is the inverse of `fsdp.all_gather`. Of n equal pieces, the op selects the piece whose
    index is the rank's index on `axes`. The op is a view and needs no communication. The cotangent
    that a rank computes is zero outside of its piece. Over the axis `tensor`, each rank has the
    whole cotangent of its piece: the adjoint is an `fsdp.all_gather`, and Differentiate replaces
    the op by a kernel.

    Constraints: (C1), (C2) as in `fsdp.all_reduce`; (C3) the operand has n times as many elements
    as the result.
  }];
  let arguments = (ins 1DTensorOf<[AnyType]>:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes);
  let results = (outs 1DTensorOf<[AnyType]>:$result);
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = "$input $mesh $axes attr-dict `:` type($input) `->` type($result)";
}

def FSDP_BroadcastOp : FSDP_CollectiveOp<"broadcast", [SameOperandsAndResultType]> {
  let summary = "copy the value of rank `root` of a group to all ranks of the group";
  let description = [{
    Constraints: (C1), (C2) as in `fsdp.all_reduce`; (C3) `root` is a rank of the group.
  }];
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes, I64Attr:$root);
  let results = (outs AnyRankedTensor:$result);
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = "$input $mesh $axes `root` $root attr-dict `:` type($input)";
}

def FSDP_ShiftOp : FSDP_CollectiveOp<"shift", [SameOperandsAndResultType]> {
  let summary = "send a tensor to the next rank of a group";
  let description = [{
    Rank i of a group of n ranks receives the tensor of rank (i - 1) mod n. `site` is 0 in the
    forward and 1 in the backward, so that CSE does not merge the two shifts of a tensor.

    Constraints: (C1), (C2) as in `fsdp.all_reduce`.

    ```mlir
    %next = fsdp.shift %keys @mesh ["context"] site 0 : tensor<2x4x64x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes, I64Attr:$site);
  let results = (outs AnyRankedTensor:$result);
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = "$input $mesh $axes `site` $site attr-dict `:` type($input)";
}

def FSDP_Fabric : Resource<"::mlir::fsdp::FabricResource">;

// An op that starts an asynchronous collective. It has the attributes `channel` and `id`, and
// returns a token instead of the results of the collective.
class FSDP_StartOp<string mnemonic>
    : FSDP_Op<mnemonic, [DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemWrite<FSDP_Fabric>]>]> {
  let results = (outs FSDP_TokenType:$token);
  string startDescription = [{
    Only an `fsdp.await` may use the token. Before this `fsdp.await`, the operands must not change,
    because other ranks read them in place. Collectives with the same number `channel` run one after
    another, in the order of their `_start` ops. The number `id` identifies the collective. Its
    value is equal on all ranks, and listings of the plan print the number.

    The order of the `_start` and `fsdp.await` ops is the schedule of the collectives. These ops
    have memory effects and no canonicalisation, so that no pass reorders, merges or erases them.
    `fsdp-join-collectives` joins a `_start` op and its `fsdp.await` if no op is between the two.

    The constraints of the op without `_start` apply here too. Its result types are the types in the
    token.

    - (S1) `channel` is at least 1, and `id` is at least 0.
    - (S2) The only use of the token is a later `fsdp.await` in the same block.
  }];
}

def FSDP_UnshardStartOp : FSDP_StartOp<"unshard_start"> {
  let summary = "start gathering all parameters of a unit";
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
  let summary = "start reducing a unit's gradients over ranks";
  let description = startDescription;
  let arguments = (ins Variadic<RankedTensorOf<[AnyFloat]>>:$grads, FlatSymbolRefAttr:$unit,
                       DenseI64ArrayAttr:$params, FSDP_ReductionAttr:$reduction, I64Attr:$channel, I64Attr:$id);
  let assemblyFormat = [{
    $unit $reduction `params` $params `(` $grads `)` `channel` $channel `id` $id attr-dict `:`
    `(` type($grads) `)` `->` qualified(type($token))
  }];
}

def FSDP_AllReduceStartOp : FSDP_StartOp<"all_reduce_start"> {
  let summary = "start reducing a tensor over the ranks of some mesh axes";
  let description = startDescription;
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes,
                       FSDP_ReductionAttr:$reduction, I64Attr:$channel, I64Attr:$id);
  let assemblyFormat = [{
    $input $mesh $axes $reduction `channel` $channel `id` $id attr-dict `:` type($input) `->` qualified(type($token))
  }];
}

def FSDP_AllGatherStartOp : FSDP_StartOp<"all_gather_start"> {
  let summary = "start concatenating 1-D tensors of the ranks of some mesh axes";
  let description = startDescription;
  let arguments = (ins 1DTensorOf<[AnyType]>:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes,
                       I64Attr:$channel, I64Attr:$id);
  let assemblyFormat = [{
    $input $mesh $axes `channel` $channel `id` $id attr-dict `:` type($input) `->` qualified(type($token))
  }];
}

def FSDP_BroadcastStartOp : FSDP_StartOp<"broadcast_start"> {
  let summary = "start copying the value of rank `root` of a group to all ranks of the group";
  let description = startDescription;
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes, I64Attr:$root,
                       I64Attr:$channel, I64Attr:$id);
  let assemblyFormat = [{
    $input $mesh $axes `root` $root `channel` $channel `id` $id attr-dict `:` type($input) `->` qualified(type($token))
  }];
}

def FSDP_ShiftStartOp : FSDP_StartOp<"shift_start"> {
  let summary = "start sending a tensor to the next rank of a group";
  let description = startDescription;
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes, I64Attr:$site,
                       I64Attr:$channel, I64Attr:$id);
  let assemblyFormat = [{
    $input $mesh $axes `site` $site `channel` $channel `id` $id attr-dict `:` type($input) `->` qualified(type($token))
  }];
}

def FSDP_AwaitOp : FSDP_Op<"await", [MemoryEffects<[MemWrite<FSDP_Fabric>]>]> {
  let summary = "wait for a collective that has started, and return its results";
  let description = [{
    After the op, the results are complete, *and* the operands of the `_start` op may be
    overwritten. Plan lowers the op to the command `fsdp.wait` with the collective's `id`.

    Constraints: (C1) the results have the types of the token; (C2) the token comes from a `_start`
    op in the same block. The verifier of the `_start` op checks that the token is awaited once.

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
