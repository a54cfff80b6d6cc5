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
  let summary = "Convert shards beside collectives that change the type";
  let description = [{
    - Requires: nothing.
    - Ensures: `fsdp.unshard` and `fsdp.reduce_scatter` have one element type; what
      they converted on the way is a dispatch on the shard, which is the smaller side.
    - Keeps: values.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numCasts", "num-casts", "Dispatches added">];
}

def JoinCollectivesPass : Pass<"fsdp-join-collectives", "::mlir::func::FuncOp"> {
  let summary = "Make collectives that overlap with nothing one op again";
  let description = [{
    - Requires: nothing.
    - Ensures: no `fsdp.await` directly after the start of its token: the collective is
      the op without `_start`, which has no token, no channel and no id.
    - Keeps: values, the order of the other collectives.

    A pass and no canonicalisation: a scheduler that puts starts and waits one after
    the other, to move them apart later, must find them again.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numJoined", "num-joined", "Collectives that became one op">];
}

def OutlineKernelsPass : Pass<"fsdp-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Make each distinct dispatch a kernel function";
  let description = [{
    - Requires: dispatches with static types.
    - Ensures: no `fsdp.dispatch`; `fsdp.kernel_call` instead, and one
      `func.func private @k_<hash>` for all dispatches of the same structure. The
      hash is of the region's text without locations and value names, so that
      kernels keep their names from run to run.
    - Keeps: values, the order of ops, attributes of dispatches (on the calls).
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect", "::mlir::func::FuncDialect"];
  let statistics = [Statistic<"numCalls", "num-calls", "Dispatches outlined">,
                    Statistic<"numKernels", "num-kernels", "Distinct kernels">];
}

def UnrollLoopsPass : Pass<"fsdp-unroll-loops", "::mlir::func::FuncOp"> {
  let summary = "Leave one level of each nest of loops";
  let description = [{
    - Requires: loops with constant bounds.
    - Ensures: no loop stands in a loop. Of a nest, the loop with the most iterations
      stays (the inner one of equals); the others are unrolled in full.
    - Keeps: values, the order of ops.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numUnrolled", "num-unrolled", "Loops unrolled">];
}

def SinkToUsesPass : Pass<"fsdp-sink-to-uses", "::mlir::func::FuncOp"> {
  let summary = "Move what is needed late to where it is needed";
  let description = [{
    - Requires: kernel calls (`fsdp-outline-kernels`).
    - Ensures: a kernel call, gather or view stands right before its first use, unless
      its operands would then live longer than it is worth, in bytes times ops.
    - Keeps: values; the order of all collectives but gathers; what is written in place.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numMoved", "num-moved", "Kernel calls and gathers moved">];
}

def RematerialisePass : Pass<"fsdp-rematerialise", "::mlir::ModuleOp"> {
  let summary = "Compute activations again in the backward";
  let description = [{
    - Requires: kernel calls (`fsdp-outline-kernels`), in the order that `fsdp-sink-to-uses` leaves.
    - Ensures: in the program `step`, calls of the forward whose results wait for the backward are there a second time,
      before their first reader in it, and read the parameters that are gathered for the backward. With `full` these are all
      calls of a unit but those whose results other units read; `selective` keeps the results of some kinds of kernels
      (`contract`, `attention`, `row`, `map`, `column`, `scatter`, `copy`), or, as `contract/2`, those of the first of each
      2 calls of a kind in a unit, in their order. The last unit of the forward, whose backward begins at
      once, is left alone. With `auto` the limit decides, together, what is computed again, which results wait on the host (calls
      with `fsdp.offload`), and which parameters stay from the forward on instead of being gathered again: what fits
      at the least estimated time, found by packing one plan after the other.
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
                 Option<"keepGathers", "keep-gathers", "bool", "true", "auto: parameters may stay from the forward on.">,
                 Option<"hostComputes", "host-computes", "bool", "true", "As of fsdp-offload-buffers.">];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numRecomputed", "num-recomputed", "Kernel calls that are computed again">,
                    Statistic<"numOffloaded", "num-offloaded", "auto: kernel calls whose results may wait on the host">,
                    Statistic<"numKept", "num-kept", "auto: gathers of the backward that the forward's stand for">,
                    Statistic<"numPlans", "num-plans", "Plans that were packed to choose">,
                    Statistic<"savedBytes", "saved-bytes", "Bytes that no longer wait for the backward">];
}

def AssignBuffersPass : Pass<"fsdp-assign-buffers", "::mlir::ModuleOp"> {
  let summary = "Turn functions on tensors into programs on buffers";
  let description = [{
    - Requires: functions with `fsdp.program` that hold kernel calls, collectives,
      contiguous views, one level of `scf.for`, index constants.
    - Ensures: an `fsdp.program` in place of each, over `fsdp.layout @arena` (step, eval)
      or `@reference_arena`; every value is a slice of a buffer, and buffers have their
      lifetimes. State that a result updates stays where it is; views, results in
      place and gathers within one rank share their operand's buffer; gradients are
      written into the flat buffer that is reduced.
    - Keeps: values, the order of commands. A copy is added where a value is
      overwritten that is read again, and counted.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numBuffers", "num-buffers", "Buffers">,
                    Statistic<"numCopies", "num-copies", "Copies that no alias could avoid">,
                    Statistic<"numFills", "num-fills", "Fills of gaps and sums">];
}

def OffloadBuffersPass : Pass<"fsdp-offload-buffers", "::mlir::ModuleOp"> {
  let summary = "Keep state, gradients and activations in the host's memory";
  let description = [{
    - Requires: programs on buffers (`fsdp-assign-buffers`).
    - Ensures: buffers of the kinds are in the host's arena, in the programs over `@arena`. A launch has all of its
      buffers there, or none: the optimizer's update runs where its state is, and what it needs from the other arena is copied. With
      `host-computes=false` every launch runs on the device, and the state that an update needs is copied there and back.
      State in a file (`optimizer:file`) is copied from there and back. Collectives have theirs on the device. Lifetimes are
      those of the new commands.
    - Keeps: values; the order of all other commands.
  }];
  let options = [StepOption<"what", "offload", "std::string">,
                 StepOption<"minBytes", "offload-min-bytes", "int64_t">,
                 Option<"marked", "marked", "bool", "false", "Of activations only those that fsdp-rematerialise chose.">,
                 Option<"hostComputes", "host-computes", "bool", "true", "Launches may run in the host's arena, as those for a CPU can.">];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numOnHost", "num-on-host", "Buffers in the host's arena">,
                    Statistic<"numCopies", "num-copies", "Copies between the arenas">];
}

def ScheduleCollectivesPass : Pass<"fsdp-schedule-collectives", "::mlir::ModuleOp"> {
  let summary = "Start collectives early and wait for them late";
  let description = [{
    - Requires: programs on buffers (`fsdp-assign-buffers`) whose collectives are done when their command is.
    - Ensures: every collective of a program is a start on channel 1 (gathers) or 2 (reductions) and an
      `fsdp.wait`, and so is every copy between the arenas of 4 KiB and more, on channel 3 (to the device) or 4 (to the host),
      and each from a rank's file (5, what one launch needs beside the one before it) and to it (6):
      gathers, and copies of what is needed, start as late as hides them by estimated time; reductions, and copies of what is
      not needed where it was, are waited for as early as they
      are done. What only prepares a gather, or takes up a reduction, moves along. Lifetimes are those of the new order.
      With `bucket-bytes` starts of one kind stand beside each other, which is one launch: gathers are early for it, reductions late.
      `fsdp.limit` on a transfer that is not hidden says what stopped it: its source, the first use of its result,
      the beginning, the prefetch depth, or memory.
    - Keeps: values; the order of all other commands; one order of collectives for all ranks.
  }];
  let options = [
    StepOption<"prefetch", "prefetch", "std::string">,
    StepOption<"memoryLimit", "memory-limit", "int64_t">,
    StepOption<"cluster", "cluster", "std::string">,
    StepOption<"bucketBytes", "bucket-bytes", "int64_t">,
    Option<"atAllCosts", "at-all-costs", "bool", "true",
           "Keeps to the memory limit also where that hides less: by less memory for starts ahead, at last none.">];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numCollectives", "num-collectives", "Collectives that were split">,
                    Statistic<"numCopies", "num-copies", "Copies between the arenas that were split">];
}

def AddInitProgramsPass : Pass<"fsdp-add-init-programs", "::mlir::ModuleOp"> {
  let summary = "Write the programs that set the first state";
  let description = [{
    - Requires: layouts with state slots.
    - Ensures: `fsdp.program @init` over `@arena` and `@reference_init` over
      `@reference_arena`: every state is filled with zero, then parameters and their
      masters get their initial values.
    - Keeps: all else.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"numInitialised", "num-initialised", "Parameters of states initialised">];
}

def PackArenasPass : Pass<"fsdp-pack-arenas", "::mlir::ModuleOp"> {
  let summary = "Give every buffer its offset in the arena";
  let description = [{
    - Requires: buffers with lifetimes (`fsdp-assign-buffers`).
    - Ensures: buffers that always live stand first, in order; after them the buffers
      of each program, packed by lifetime; programs of one layout share that
      room. `arena_bytes` and `lower_bound` are set; `host_bytes` where buffers are in the host's arena.
    - Keeps: commands.
  }];
  let options = [Option<"enough", "enough", "int64_t", "0",
                        "Bytes of the device's arena that will do: no longer search for fewer, nor where fewer are alive; 0: as few as are found.">];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"arenaBytes", "arena-bytes", "Bytes of the largest arena">,
                    Statistic<"boundBytes", "bound-bytes", "Its lower bound">];
}

def AddWorkspacePass : Pass<"fsdp-add-workspace", "::mlir::ModuleOp"> {
  let summary = "Give each arena the scratch that its kernels need";
  let description = [{
    ```
    | buffers ...        | (page) shared scratch | worker 0 | worker 1 | ... |
    0                    workspace_offset                                     arena_bytes
    ```

    - Requires: packed arenas (`fsdp-pack-arenas`), and the scratch of the compiled kernels (`fsdp.kernel_scratch`).
    - Ensures: after the buffers of each layout, the scratch of the launch that needs most, shared and for each
      of `threads-per-rank` workers; `arena_bytes` is final.
    - Keeps: everything else. Running it again gives the same.
  }];
  let options = [StepOption<"threadsPerRank", "threads-per-rank", "int64_t">];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"workspaceBytes", "workspace-bytes", "Bytes of the largest workspace">];
}

def VerifyPlannedPass : Pass<"fsdp-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Check what holds after the Plan stage";
  let description = [{
    - Requires: nothing.
    - Ensures: no function with `fsdp.program` is left; every buffer has an offset;
      no command touches a buffer outside its lifetime; no command reads a byte that
      nothing wrote before it; buffers that live at the same time do not overlap (a check
      by sweep, which shares nothing with the packer); a launch has all its buffers in one arena, a collective on
      the device; source and target of a
      collective are left alone until it is done.
    - Keeps: everything.
  }];
  let statistics = [Statistic<"numCommands", "num-commands", "Commands checked">];
}

#endif // FSDP_PLAN_PASSES_TD
