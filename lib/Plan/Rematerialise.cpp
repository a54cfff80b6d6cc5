//===- Rematerialise.cpp - Compute activations again ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Activation checkpointing: what the forward computed is computed again in the backward, rather
// than kept (RecomputeGraph.cpp shows how).
//
//   none                  nothing
//   full                  all of a unit but what it hands on
//   selective=KINDS       the same, but results of these kinds of kernels are kept; of KIND/N those
//                         of the first of each N calls of a unit, in their order
//
//  1. Each block of the program `step`: its forward, and what of it waits for the backward.
//  2. The calls of the policy are computed again.
//
// O(uses).
//
//===----------------------------------------------------------------------===//

#include "MemorySearch.h"
#include "RecomputeGraph.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/Plan/Checkpointing.h"
#include "fsdp/Plan/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_REMATERIALISEPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static StringRef getKind(KernelCallOp call, SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<func::FuncOp>(call, call.getKernelAttr());
  auto kind = kernel ? kernel->getAttrOfType<StringAttr>(kindAttr) : StringAttr();
  return kind ? kind.getValue() : StringRef();
}

namespace {

class RematerialisePass : public fsdp::impl::RematerialisePassBase<RematerialisePass> {
  using Base::Base;

  void runOnOperation() override {
    std::string problem;
    std::optional<CheckpointingPolicy> parsed = CheckpointingPolicy::parse(policy, problem);
    if (!parsed) {
      getOperation().emitError("activations to compute again, '") << policy << "': " << problem;
      return signalPassFailure();
    }
    if (parsed->mode == CheckpointingPolicy::Mode::None)
      return;
    bool isAuto = parsed->mode == CheckpointingPolicy::Mode::Auto;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto program = function->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
      if (program && program.getValue() == "step" &&
          failed(isAuto ? chooseAndApply(function) : apply(function, *parsed)))
        return signalPassFailure();
    }
  }

  LogicalResult apply(func::FuncOp function, const CheckpointingPolicy &parsed) {
    for (Block *block : getStepBlocks(function)) {
      Aliasing aliasing(function);
      RecomputeGraph graph(*block, aliasing);
      apply(graph, graph.getNeeded(findRecomputed(graph, parsed)));
    }
    return success();
  }

  /// The candidates whose results the policy does not keep. Calls that are kept anyway count, too.
  static llvm::BitVector findRecomputed(const RecomputeGraph &graph,
                                        const CheckpointingPolicy &parsed) {
    SymbolTableCollection tables;
    llvm::BitVector recomputed(graph.getCalls().size());
    llvm::StringMap<int64_t> counts; // of calls of the segment
    unsigned segment = 0;
    for (auto [number, call] : llvm::enumerate(graph.getCalls())) {
      if (call.segment != segment)
        counts.clear();
      segment = call.segment;
      StringRef kind = getKind(call.op, tables);
      auto every = parsed.kept.find(kind);
      bool isKept = every != parsed.kept.end() && counts[kind]++ % every->second == 0;
      recomputed[number] = graph.isCandidate(number) && !isKept;
    }
    return recomputed;
  }

  LogicalResult chooseAndApply(func::FuncOp function) {
    FailureOr<Cluster> machines = loadCluster(&getContext(), cluster);
    if (failed(machines))
      return failure();
    std::string expected;
    std::optional<OffloadKinds> kinds = parseValue<OffloadKinds>(offload, expected);
    MemorySearchOptions options{memoryLimit,     keepGathers, kinds && kinds->activations,
                                offloadMinBytes, schedule,    {}};
    options.addSchedule = [&](OpPassManager &pm, bool atAllCosts) {
      if (offload != "none")
        pm.addPass(
            createOffloadBuffersPass({offload, offloadMinBytes, /*marked=*/true, hostComputes}));
      if (schedule)
        pm.addPass(createScheduleCollectivesPass(
            {prefetch, memoryLimit, cluster, bucketBytes, atAllCosts}));
    };
    FailureOr<FoundChoice> choice = searchMemory(function, *machines, options);
    if (failed(choice))
      return failure();
    savedBytes += applyChoice(function, choice->block, *choice);
    numRecomputed += choice->recomputed.count();
    numOffloaded += choice->offloaded.count();
    numKept += choice->kept.count();
    numPlans += choice->plans;
    describe(function, *choice, options);
    return success();
  }

  void describe(func::FuncOp function, const FoundChoice &choice,
                const MemorySearchOptions &options) {
    InFlightDiagnostic diag = function.emitRemark("activations of ")
                              << choice.recomputed.count()
                              << " kernel calls are computed again, of " << choice.numCalls
                              << " in the forward, ";
    if (options.offload)
      diag << "those of " << choice.offloaded.count() << " may wait on the host, ";
    if (options.keepGathers)
      diag << choice.kept.count() << " of " << choice.numGathers
           << " gathers stay until the backward, ";
    diag << "so that the arena takes " << choice.bytes << " bytes without workspace ("
         << choice.plans << " plans)";
  }

  void apply(RecomputeGraph &graph, const llvm::BitVector &recomputed) {
    numRecomputed += recomputed.count();
    savedBytes +=
        graph.getSavedBytes(llvm::BitVector(recomputed.size())) - graph.getSavedBytes(recomputed);
    graph.apply(recomputed);
  }
};

} // namespace
