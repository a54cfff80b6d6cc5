//===- FSDPProgramOps.td - The step as data ----------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   kernels              func.func private @k_<hash> {fsdp.kernel}
//   fsdp.kernel_call     a kernel applied to tensors (between the passes of Plan)
//   fsdp.layout          an arena: its buffers, states and inputs
//   fsdp.program         commands on slices of the buffers of one layout
//
// The commands of a program are numbered from 0 in textual order. The commands in a loop have the
// numbers that follow the number of the loop itself.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDPPROGRAMOPS_TD
#define FSDP_IR_FSDPPROGRAMOPS_TD

include "fsdp/IR/FSDPBase.td"

def FSDP_KernelCallOp : FSDP_Op<"kernel_call", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a kernel applied to tensors";
  let description = [{
    `fsdp-outline-kernels` replaces an `fsdp.dispatch` by this op and a kernel function. `inplace`
    has the same meaning in both ops.

    Constraints:

    - (C1) `kernel` names a function with `fsdp.kernel`.
    - (C2) The arguments of the function are the operands, then one destination per result that is
      not in place. Destinations carry `fsdp.out`, and operands that are overwritten carry
      `fsdp.inout`.
    - (C3) The results of the function have the types of the op's results.

    ```mlir
    %y = fsdp.kernel_call @k_0123456789abcdef(%a, %b) inplace [0] : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$inputs, DenseI64ArrayAttr:$inplace);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` `inplace` $inplace attr-dict `:` functional-type($inputs, $outputs)
  }];
}

def FSDP_LayoutOp : FSDP_Op<"layout", [Symbol, SymbolTable, IsolatedFromAbove, SingleBlock, NoTerminator,
                                       NoRegionArguments]> {
  let summary = "an arena and its contents";
  let description = [{
    | attribute | meaning |
    |---|---|
    | `arena_bytes` | size of the arena in bytes; 0 until it is packed |
    | `lower_bound` | largest number of bytes alive at one time; no packing needs less |
    | `block`, `rank` | names of the buffers of the step block and of the rank block |
    | `shared_bytes`, `worker_bytes`, `workers` | workspace: one shared part, and one part per worker |
    | `host_bytes` | size in bytes of a second arena in host memory, for buffers marked `host` |

    The sizes of the workspace are known only after the kernels are compiled.

    ```
      | states .. block rank inputs | buffers of the programs, packed | workspace |
      0                             transient                                arena_bytes
    ```

    Constraints:

    - (C1) The layout contains only `fsdp.buffer`, `fsdp.state_slot` and `fsdp.input_slot`.
    - (C2) `block` and `rank` name buffers of the layout.
    - (C3) A buffer or workspace with an offset is within its arena, at a multiple of 64 bytes.
    - (C4) No size, offset or count is negative.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$arena_bytes,
                       OptionalAttr<FlatSymbolRefAttr>:$block, OptionalAttr<FlatSymbolRefAttr>:$rank,
                       DefaultValuedAttr<I64Attr, "0">:$lower_bound,
                       DefaultValuedAttr<I64Attr, "0">:$workspace_offset,
                       DefaultValuedAttr<I64Attr, "0">:$shared_bytes,
                       DefaultValuedAttr<I64Attr, "0">:$worker_bytes,
                       DefaultValuedAttr<I64Attr, "0">:$workers,
                       DefaultValuedAttr<I64Attr, "0">:$host_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `arena` $arena_bytes (`block` $block^)? (`rank` $rank^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getWorkspaceBytes() { return getSharedBytes() + getWorkers() * getWorkerBytes(); }
    bool isPacked() { return getArenaBytes() > 0; }
  }];
}

class FSDP_LayoutPart<string mnemonic, list<Trait> traits = []>
    : FSDP_Op<mnemonic, !listconcat([HasParent<"LayoutOp">], traits)>;

def FSDP_BufferOp : FSDP_LayoutPart<"buffer", [Symbol]> {
  let summary = "a range of an arena, with a lifetime";
  let description = [{
    The lifetime of a buffer is the range from command `first` to command `last` of `program`, both
    included. A buffer without `program` is persistent. `offset` is set when the arena is packed.

    With `host`, the buffer is a range of the host's arena. Either all buffers of a launch are in
    the host's arena, or none of them is. With the attribute `fsdp.file`, the buffer is a range of
    the rank's file, which only copies, fills and `fsdp.initialise` access.

    Constraints: (C1) `bytes` ≥ 0; (C2) `program`, `first` and `last` are all present or all absent,
    and 0 ≤ first ≤ last; (C3) a buffer with `fsdp.file` has no program and is not marked `host`.

    ```mlir
    fsdp.buffer @step.3 "gathered h.0" gathered 512 at 4096 in @step from 3 to 9
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$label, FSDP_CategoryAttr:$category, I64Attr:$bytes,
                       OptionalAttr<I64Attr>:$offset, OptionalAttr<FlatSymbolRefAttr>:$program,
                       OptionalAttr<I64Attr>:$first, OptionalAttr<I64Attr>:$last, UnitAttr:$host);
  let assemblyFormat = [{
    $sym_name $label $category $bytes (`host` $host^)? (`at` $offset^)? (`in` $program^)? (`from` $first^)? (`to` $last^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{ bool isPersistent() { return !getProgram(); } }];
}

def FSDP_StateSlotOp : FSDP_LayoutPart<"state_slot", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the buffer of a state that a unit keeps from step to step";
  let description = [{
    Constraints:

    - (C1) `unit` names an `fsdp.unit`. The flat size of the unit is a multiple of the number of
      elements of `type`. If ranks of the axis `tensor` have slices of the unit, `type` may also
      have the elements of the flat buffers of all slices.
    - (C2) `buffer` is a buffer of the layout that belongs to no program and has the size of the
      type.
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit, FSDP_StateRoleAttr:$role, FlatSymbolRefAttr:$buffer, TypeAttr:$type);
  let assemblyFormat = "$unit $role $buffer `:` $type attr-dict";
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
  }];
}

def FSDP_InputSlotOp : FSDP_LayoutPart<"input_slot", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the buffer of a batch input";
  let description = [{
    `micro_batches` is the number of micro-batches per step. If `limit` > 0, each id is in [0,
    `limit`) or is one of `extra_ids`, which the model does not look up.

    Constraints:

    - (C1) `buffer` is a buffer of the layout that belongs to no program and has the size of the
      type.
    - (C2) If `micro_batches` > 1, the leading dimension of the type is `micro_batches`.
    - (C3) `extra_ids` need a `limit`, and no extra id is in [0, `limit`).
  }];
  let arguments = (ins StrAttr:$name, FlatSymbolRefAttr:$buffer, TypeAttr:$type,
                       DefaultValuedAttr<I64Attr, "0">:$limit, OptionalAttr<DenseI64ArrayAttr>:$extra_ids,
                       DefaultValuedAttr<I64Attr, "1">:$micro_batches);
  let assemblyFormat = [{
    $name $buffer `:` $type (`limit` $limit^)? (`or` $extra_ids^)? (`micro_batches` $micro_batches^)? attr-dict
  }];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
  }];
}

def FSDP_ProgramOp : FSDP_Op<"program", [Symbol, SingleBlock, NoTerminator, NoRegionArguments,
                                         DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a sequence of commands on the buffers of one layout";
  let description = [{
    A program is a sequence of commands and loops of commands. The collectives of a program run on
    `mesh`.

    Constraints: (C1) `layout` names an `fsdp.layout`, and `mesh` names an `fsdp.mesh`; (C2) the
    program contains only commands.

    ```mlir
    fsdp.program @step layout @arena mesh @mesh {
      fsdp.collective 0 all_gather @state.0[0, 256] -> @step.1[0, 512] of 64 x f32 over ["shard"]
      fsdp.launch @k_0123456789abcdef(@step.1[0, 256], @step.2[0, 64]) "contract w"
      fsdp.fill @step.4[192, 64]
      fsdp.loop 4 {
        fsdp.launch @k_fedcba9876543210(@input.0[0, 64] step 64, @step.2[0, 64])
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$layout, OptionalAttr<FlatSymbolRefAttr>:$mesh);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `layout` $layout (`mesh` $mesh^)? attr-dict-with-keyword $body";
}

class FSDP_Command<string mnemonic, list<Trait> traits = []>
    : FSDP_Op<mnemonic, !listconcat([ParentOneOf<["ProgramOp", "LoopOp"]>,
                                     DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)> {
  // Every slice of a command satisfies the constraints (S1) to (S3) below.
  string sliceConstraints = [{
    Slices:

    - (S1) A slice names a buffer of the program's layout and is within the buffer, for every
      iteration of the enclosing loop and every rank.
    - (S2) The `step` of a slice is 0 outside loops.
    - (S3) The axes of a `piece` are axes of the program's mesh.
  }];
}

def FSDP_LaunchOp : FSDP_Command<"launch"> {
  let summary = "run a kernel";
  let description = !strconcat([{
    Constraints: (C1) `kernel` names a function with `fsdp.kernel`; (C2) there is one binding per
    argument, with the size of the argument; (C3) offsets and steps of bindings are multiples of
    64.
  }], sliceConstraints);
  let arguments = (ins FlatSymbolRefAttr:$kernel, TypedArrayAttrBase<FSDP_SliceAttr, "slices">:$bindings,
                       OptionalAttr<StrAttr>:$label);
  let assemblyFormat = "$kernel custom<Slices>($bindings) ($label^)? attr-dict";
}

def FSDP_CollectiveOp : FSDP_Command<"collective"> {
  let summary = "exchange data with the other ranks of a group";
  let description = !strconcat([{
    A group consists of the ranks whose indices differ only on `axes`. `count` is the number of
    elements of the source or of the target, whichever is smaller. With `channel` 0, the collective
    is complete at the end of the command. With any other channel, the collective is complete after
    the `fsdp.wait` with its id. Before this `fsdp.wait`, the source must not change, and the target
    is undefined. With `unit` alone, the collective transfers the whole unit. With `unit` and
    `rows`, the collective transfers ids of rows of the unit's table, or the rows with these ids.

    Constraints:

    - (C1) The program has a mesh with all axes in `axes`.
    - (C2) The sizes of source and target match `count` and the number of ranks.
    - (C3) Source and target do not overlap. Exceptions are an all-reduce in place, and a gather
      whose source is the rank's piece of the target.
    - (C4) `id` is unique in the program.
    - (C5) If `channel` is not 0, an `fsdp.wait` with the id follows in the same block.
    - (C6) `reduction` is present if and only if the collective reduces.

  }], sliceConstraints);
  let arguments = (ins I64Attr:$id, FSDP_CollectiveKindAttr:$kind, FSDP_SliceAttr:$source, FSDP_SliceAttr:$target,
                       I64Attr:$count, TypeAttr:$dtype, StrArrayAttr:$axes,
                       OptionalAttr<FSDP_ReductionAttr>:$reduction, DefaultValuedAttr<I64Attr, "0">:$channel,
                       OptionalAttr<FlatSymbolRefAttr>:$unit, UnitAttr:$rows, DefaultValuedAttr<I64Attr, "0">:$root,
                       OptionalAttr<StrAttr>:$label);
  let assemblyFormat = [{
    $id $kind custom<Slice>($source) `->` custom<Slice>($target) `of` $count `x` $dtype `over` $axes
    (`reduce` $reduction^)? (`channel` $channel^)? (`unit` $unit^)? (`rows` $rows^)? (`root` $root^)? ($label^)? attr-dict
  }];
}

def FSDP_WaitOp : FSDP_Command<"wait"> {
  let summary = "wait for a collective or a copy on a channel";
  let description = [{
    After the wait, the target of the transfer is complete, and its source may be overwritten.

    Constraints: (C1) a collective or a copy with this id, on a channel, precedes the wait in the
    same block.
  }];
  let arguments = (ins I64Attr:$id);
  let assemblyFormat = "$id attr-dict";
}

def FSDP_CopyOp : FSDP_Command<"copy"> {
  let summary = "copy bytes";
  let description = !strconcat([{
    The command copies bytes within one memory or between two memories. The memories are the
    device's arena, the host's arena and the rank's file. Only copies, fills and `fsdp.initialise`
    access the file. Without a channel, the copy is complete at the end of the command. With
    `fsdp.channel` and an `fsdp.id` that no collective has, the copy is complete after the
    `fsdp.wait` with that id. Before this `fsdp.wait`, the source must not change, and the target is
    undefined. The channels are 3 (to the device), 4 (to the host), 5 (from the file) and 6 (to the
    file).

    Constraints: (C1) source and target have equal sizes; (C2) source and target do not overlap;
    (C3) if the copy has a channel, an `fsdp.wait` with its id follows in the same block.
  }], sliceConstraints);
  let arguments = (ins FSDP_SliceAttr:$source, FSDP_SliceAttr:$target, OptionalAttr<StrAttr>:$label);
  let assemblyFormat = "custom<Slice>($source) `->` custom<Slice>($target) ($label^)? attr-dict";
}

def FSDP_FillOp : FSDP_Command<"fill"> {
  let summary = "write zero bytes";
  let description = sliceConstraints;
  let arguments = (ins FSDP_SliceAttr:$target, OptionalAttr<StrAttr>:$label);
  let assemblyFormat = "custom<Slice>($target) ($label^)? attr-dict";
}

def FSDP_InitialiseOp : FSDP_Command<"initialise"> {
  let summary = "write the initial values of a parameter";
  let description = [{
    The command writes the initial values of parameter `param` of `unit` to the unit's state with
    role `role`. Each rank writes only the elements of its own piece of this state.

    Constraints: (C1) `unit` names an `fsdp.unit` with that parameter; (C2) the layout has that
    state.
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit, FSDP_StateRoleAttr:$role, I64Attr:$param, OptionalAttr<StrAttr>:$label);
  let assemblyFormat = "$unit $role $param ($label^)? attr-dict";
}

def FSDP_LoopOp : FSDP_Op<"loop", [ParentOneOf<["ProgramOp"]>, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "repeat commands";
  let description = [{
    Constraints: (C1) `count` ≥ 1; (C2) the loop contains only commands, and no loop.
  }];
  let arguments = (ins I64Attr:$count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

#endif // FSDP_IR_FSDPPROGRAMOPS_TD
