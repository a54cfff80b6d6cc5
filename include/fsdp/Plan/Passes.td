//===- Passes.td - Passes of the Plan stage ----------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_PASSES_TD
#define FSDP_PLAN_PASSES_TD

include "fsdp/Options/StepOption.td"
include "mlir/Pass/PassBase.td"

def CastCollectivesPass : Pass<"fsdp-cast-collectives", "::mlir::func::FuncOp"> {
  let summary = "Move type conversions of collectives into dispatches on shards";
  let description = [{
    - Requires: nothing.
    - Ensures: the operands and results of an `fsdp.unshard` or `fsdp.reduce_scatter` have the same
      element type. A dispatch converts the type of the shard, because the shard is smaller than the
      whole parameters.
    - Keeps: values.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numCasts", "num-casts", "Dispatches added for conversions">];
}

def JoinCollectivesPass : Pass<"fsdp-join-collectives", "::mlir::func::FuncOp"> {
  let summary = "Join the start and the await of a collective if no op is between the two";
  let description = [{
    - Requires: nothing.
    - Ensures: no `fsdp.await` directly follows the start that produced its token. A start and an
      await that directly follow each other become the op without `_start`. This op has no token, no
      channel and no id.
    - Keeps: values, and the order of the other collectives.

    This is a pass and not a canonicalisation, because a scheduler may place a start directly
    before its await and move the two apart later.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numJoined", "num-joined", "Pairs of start and wait that were joined">];
}

def OutlineKernelsPass : Pass<"fsdp-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Make each distinct dispatch a kernel function";
  let description = [{
    - Requires: dispatches with static types.
    - Ensures: each `fsdp.dispatch` becomes an `fsdp.kernel_call`. Dispatches of the same structure
      share one kernel function, `func.func private @k_<hash>`. The hash covers the region's text
      without locations and value names, so that kernels have the same names in every compilation.
    - Keeps: values and the order of ops. The attributes of dispatches move to the calls.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::func::FuncDialect"];
  let statistics = [Statistic<"numCalls", "num-calls", "Dispatches outlined">,
                    Statistic<"numKernels", "num-kernels", "Distinct kernels">];
}

def UnrollLoopsPass : Pass<"fsdp-unroll-loops", "::mlir::func::FuncOp"> {
  let summary = "Unroll nested loops until one level is left";
  let description = [{
    - Requires: loops with constant bounds.
    - Ensures: no loop contains a loop. In each nest, the loop with the most iterations remains. If
      several loops have this number of iterations, the innermost of them remains. All other loops
      of the nest are unrolled completely.
    - Keeps: values and the order of ops.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numUnrolled", "num-unrolled", "Loops unrolled">];
}

def SinkToUsesPass : Pass<"fsdp-sink-to-uses", "::mlir::func::FuncOp"> {
  let summary = "Move kernel calls and gathers to their first use";
  let description = [{
    - Requires: kernel calls (`fsdp-outline-kernels`).
    - Ensures: a kernel call, gather or view is directly before its first use. There is one
      exception: an op is not moved if the move would lengthen the lifetimes of its operands by more
      than it shortens the lifetimes of its results, measured in bytes times ops.
    - Keeps: values, writes in place, and the order of all collectives except gathers.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numMoved", "num-moved", "Kernel calls and gathers moved">];
}

def RematerialisePass : Pass<"fsdp-rematerialise", "::mlir::ModuleOp"> {
  let summary = "Recompute activations in the backward";
  let description = [{
    In the program `step`, kernel calls of the forward whose results the backward reads are repeated
    before the first reader in the backward. The repeated calls read the parameters that are
    gathered for the backward.

    | policy | calls that are repeated |
    |---|---|
    | `full` | all calls of a unit whose results no other unit reads |
    | `selective=KINDS` | like `full`, but the results of these kinds of kernels are kept |
    | `auto` | the calls that the pass chooses, as described below |

    KINDS are one or more of `contract`, `attention`, `row`, `map`, `column`, `scatter` and `copy`,
    joined by `+`. With `contract/2`, only the first of every 2 calls of kind `contract` in a unit
    keeps its results.

    Calls of the last unit of the forward are not repeated, because the backward of this unit begins
    directly after its forward. With `auto`, the pass makes three choices together, so that the plan
    satisfies the memory limit at the lowest estimated time. The pass packs the arena for each
    combination of choices that it considers. The choices are:

    - which calls are repeated;
    - which results are kept in host memory (calls with `fsdp.offload`);
    - which gathered parameters are kept from the forward to the backward.

    - Requires: kernel calls (`fsdp-outline-kernels`) in the order that `fsdp-sink-to-uses`
      leaves.
    - Ensures: the backward recomputes activations as the policy specifies.
    - Keeps: values.
  }];
  let options = [StepOption<"policy", "activation-checkpointing", "std::string">,
                 StepOption<"memoryLimit", "memory-limit", "int64_t">,
                 StepOption<"schedule", "overlap", "bool">,
                 StepOption<"prefetch", "prefetch", "std::string">,
                 StepOption<"cluster", "cluster", "std::string">,
                 StepOption<"offload", "offload", "std::string">,
                 StepOption<"offloadMinBytes", "offload-min-bytes", "int64_t">,
                 StepOption<"bucketBytes", "bucket-bytes", "int64_t">,
                 Option<"keepGathers", "keep-gathers", "bool", "true", "With auto: allow parameters to stay gathered from the forward to the backward.">,
                 Option<"hostComputes", "host-computes", "bool", "true", "The same option as that of fsdp-offload-buffers.">];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numRecomputed", "num-recomputed", "Kernel calls that are recomputed">,
                    Statistic<"numOffloaded", "num-offloaded", "With auto: kernel calls whose results may be kept in host memory">,
                    Statistic<"numKept", "num-kept", "With auto: gathers of the backward that were removed because the forward's are kept">,
                    Statistic<"numPlans", "num-plans", "Plans that were packed and compared">,
                    Statistic<"savedBytes", "saved-bytes", "Size of the results no longer kept for the backward, in bytes">];
}

def AssignBuffersPass : Pass<"fsdp-assign-buffers", "::mlir::ModuleOp"> {
  let summary = "Rewrite functions on tensors as programs on buffers";
  let description = [{
    - Requires: functions with `fsdp.program` that contain only kernel calls, collectives,
      contiguous views, one level of `scf.for`, and index constants.
    - Ensures: each function becomes an `fsdp.program`. The programs `step` and `eval` use
      `fsdp.layout @arena`, and the program `reference` uses `@reference_arena`. Every value is a
      slice of a buffer, and each buffer has a lifetime. Some values share a buffer:
      - a state and the result that updates the state;
      - the operand and the result of a view, of a write in place, or of a gather on one rank;
      - the gradients of a unit and the flat buffer that their reduction reads.
    - Keeps: values and the order of commands. If a value is read again after its buffer is
      overwritten, the pass adds a copy of the value.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numBuffers", "num-buffers", "Buffers created">,
                    Statistic<"numCopies", "num-copies", "Copies that sharing a buffer could not avoid">,
                    Statistic<"numFills", "num-fills", "Fills of padding and of accumulators">];
}

def OffloadBuffersPass : Pass<"fsdp-offload-buffers", "::mlir::ModuleOp"> {
  let summary = "Keep state, gradients and activations in host memory";
  let description = [{
    - Requires: programs on buffers (`fsdp-assign-buffers`).
    - Ensures: `offload` lists kinds of buffers. In the programs over `@arena`, the buffers of these
      kinds are in the host's arena. The pass adds copies, so it computes the lifetimes of buffers again.
      - All buffers of a launch are in one arena. For the update of a unit, this is the arena that
        contains the unit's optimizer state. The other operands of the update are copied to this
        arena.
      - With `host-computes=false`, every launch runs on the device, and the state that an update
        needs is copied to the device and back.
      - State in a file (`optimizer:file`) is copied from the file before the update, and back to
        the file after the update.
      - The source and the target of a collective are in the device's arena.
    - Keeps: values, and the order of all other commands.
  }];
  let options = [StepOption<"what", "offload", "std::string">,
                 StepOption<"minBytes", "offload-min-bytes", "int64_t">,
                 Option<"marked", "marked", "bool", "false", "Offload only those activations that fsdp-rematerialise chose.">,
                 Option<"hostComputes", "host-computes", "bool", "true", "Allow launches on buffers of the host's arena, which kernels for a CPU support.">];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numOnHost", "num-on-host", "Buffers placed in the host's arena">,
                    Statistic<"numCopies", "num-copies", "Copies between the arenas">];
}

def ScheduleCollectivesPass : Pass<"fsdp-schedule-collectives", "::mlir::ModuleOp"> {
  let summary = "Start collectives early and wait for them late";
  let description = [{
    Every collective of a program becomes a start on a channel and an `fsdp.wait`. Copies from and
    to a rank's file, and copies of at least 4 KiB between the arenas, are split in the same way.

    | channel | transfers | order |
    |---|---|---|
    | 1 | gathers | start as late as possible while their estimated time is hidden |
    | 2 | reductions | wait as soon as they are complete |
    | 3 | copies to the device | like gathers |
    | 4 | copies to the host | like reductions |
    | 5 | copies from the file | like gathers, at most one launch ahead |
    | 6 | copies to the file | like reductions, at most one launch later |

    A command moves with a gather if it only prepares the gather, and with a reduction if it only
    uses the reduction's result. With `bucket-bytes`, starts of collectives of one kind are placed
    next to each other and form one launch. For this purpose, gathers start earlier, and reductions
    start later. If kernels do not hide the estimated time of a transfer, the attribute `fsdp.limit`
    of the transfer names the cause. The cause is the source of the transfer, the first use of the
    result, the beginning of the program, the prefetch depth, or memory.

    - Requires: programs on buffers (`fsdp-assign-buffers`) with synchronous collectives.
    - Ensures: starts and waits have the order of the table. The lifetimes of buffers are
      computed from this order.
    - Keeps: values, and the order of all other commands. The order of collectives is equal on all
      ranks.
  }];
  let options = [
    StepOption<"prefetch", "prefetch", "std::string">,
    StepOption<"memoryLimit", "memory-limit", "int64_t">,
    StepOption<"cluster", "cluster", "std::string">,
    StepOption<"bucketBytes", "bucket-bytes", "int64_t">,
    Option<"atAllCosts", "at-all-costs", "bool", "true",
           "Satisfy the memory limit even if that hides less, down to no early starts at all.">];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numCollectives", "num-collectives", "Collectives split into start and wait">,
                    Statistic<"numCopies", "num-copies", "Copies between arenas split into start and wait">];
}

def AddInitProgramsPass : Pass<"fsdp-add-init-programs", "::mlir::ModuleOp"> {
  let summary = "Add the programs that set the initial state";
  let description = [{
    - Requires: layouts with state slots.
    - Ensures: the module has `fsdp.program @init` over `@arena`, and `@reference_init` over
      `@reference_arena`. Both programs fill every state with zeros, then write the initial values
      of parameters and of their masters.
    - Keeps: everything else.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numInitialised", "num-initialised", "Parameters and masters that get initial values">];
}

def AddSnapshotProgramPass : Pass<"fsdp-add-snapshot-program", "::mlir::ModuleOp"> {
  let summary = "Add the program that copies the state to host memory";
  let description = [{
    - Requires: the layout `@arena` with state slots.
    - Ensures: `fsdp.program @snapshot` copies each state to a separate buffer in host memory. These
      buffers are persistent, and no other program uses them, so that the runtime can write them to
      a save while training continues.
    - Keeps: everything else.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numCopied", "num-copied", "States copied">,
                    Statistic<"snapshotBytes", "snapshot-bytes", "Size of the copies, in bytes">];
}

def PackArenasPass : Pass<"fsdp-pack-arenas", "::mlir::ModuleOp"> {
  let summary = "Assign an offset in the arena to every buffer";
  let description = [{
    - Requires: buffers with lifetimes (`fsdp-assign-buffers`).
    - Ensures: in each arena, the persistent buffers come first, in the order of the layout. The
      buffers of each program follow, packed by lifetime. All programs of a layout use the same
      range after the persistent buffers. The layout has `arena_bytes`, `lower_bound`, and
      `host_bytes` if buffers are in the host's arena.
    - Keeps: the commands of all programs.
  }];
  let options = [Option<"enough", "enough", "int64_t", "0",
                        "Arena size in bytes at which the search stops; 0 (default): search for the smallest.">];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"arenaBytes", "arena-bytes", "Size of the largest arena, in bytes">,
                    Statistic<"boundBytes", "bound-bytes", "Lower bound of the size of that arena, in bytes">];
}

def AddWorkspacePass : Pass<"fsdp-add-workspace", "::mlir::ModuleOp"> {
  let summary = "Append the workspace of the kernels to each arena";
  let description = [{
    ```
    | buffers ...        | (page) shared scratch | worker 0 | worker 1 | ... |
    0                    workspace_offset                                     arena_bytes
    ```

    - Requires: packed arenas (`fsdp-pack-arenas`), and the scratch sizes of the compiled kernels
      (`fsdp.kernel_scratch`).
    - Ensures: each arena has scratch memory after its buffers. This memory has one shared part, and
      one part for each of `threads-per-rank` workers. Each part has the largest size that a launch
      needs for this part. `arena_bytes` is final.
    - Keeps: everything else. Running the pass again changes nothing.
  }];
  let options = [StepOption<"threadsPerRank", "threads-per-rank", "int64_t">];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"workspaceBytes", "workspace-bytes", "Size of the largest workspace, in bytes">];
}

def VerifyPlannedPass : Pass<"fsdp-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Check the rules that hold after Plan";
  let description = [{
    - Requires: nothing.
    - Ensures:
      - no function with `fsdp.program` is left, and every buffer has an offset;
      - no command uses a buffer outside its lifetime;
      - no command reads a byte that no earlier command wrote;
      - buffers that are alive at the same time do not overlap (the check does not use the packer);
      - all buffers of a launch are in one arena;
      - all buffers of collectives are in the device's arena;
      - before a collective is complete, no command writes its source or accesses its target.
    - Keeps: the IR.
  }];
  let statistics = [Statistic<"numCommands", "num-commands", "Commands checked">];
}

#endif // FSDP_PLAN_PASSES_TD
