//===- Passes.td - Passes of the Plan stage ----------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_PASSES_TD
#define FSDP_PLAN_PASSES_TD

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
    - Ensures: no `fsdp.await` right behind the start of its token: the collective is
      the op without `_start`, which has no token, no channel and no id.
    - Keeps: values, the order of the other collectives.

    A pass and no canonicalisation: a scheduler that puts starts and waits one behind
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
    - Ensures: buffers that always live stand first, in order; behind them the buffers
      of each program, packed by lifetime; programs of one layout share that
      room. `arena_bytes` and `lower_bound` are set.
    - Keeps: commands.
  }];
  let dependentDialects = ["::mlir::fsdp::FSDPDialect"];
  let statistics = [Statistic<"arenaBytes", "arena-bytes", "Bytes of the largest arena">,
                    Statistic<"boundBytes", "bound-bytes", "Its lower bound">];
}

def ExplainPlanPass : Pass<"fsdp-explain-plan", "::mlir::ModuleOp"> {
  let summary = "Print the memory and the communication of a plan";
  let description = [{
    - Requires: `fsdp-pack-arenas`.
    - Ensures: a table, or JSON, on standard error (standard output belongs to the IR).
    - Keeps: everything.
  }];
  let options = [Option<"json", "json", "bool", "false", "JSON instead of a table.">];
  let statistics = [Statistic<"peakBytes", "peak-bytes", "Bytes of the arena of a step">];
}

def VerifyPlannedPass : Pass<"fsdp-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Check what holds after the Plan stage";
  let description = [{
    - Requires: nothing.
    - Ensures: no function with `fsdp.program` is left; every buffer has an offset;
      no command touches a buffer outside its lifetime; no command reads a byte that
      nothing wrote before it; buffers that live at the same time do not overlap (a check
      by sweep, which shares nothing with the packer); source and target of a
      collective are left alone until it is done.
    - Keeps: everything.
  }];
  let statistics = [Statistic<"numCommands", "num-commands", "Commands checked">];
}

#endif // FSDP_PLAN_PASSES_TD
