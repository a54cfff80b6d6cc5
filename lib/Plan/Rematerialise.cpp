//===- Rematerialise.cpp - Recompute activations ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements activation checkpointing: results of the forward are not kept in memory until the
// backward, but are computed again for the backward (RecomputeGraph.cpp). The policies are:
//
// - none: nothing is computed again.
// - full: all results of a unit are computed again, except the results that other units read.
// - selective=KINDS: as with `full`, but results of kernels of the listed kinds are kept, too. With
//   KIND/N, of every N calls of this kind in a unit, only the results of the first call are kept.
//
// 1. In each block of the program `step`, find the forward and the results that the backward reads.
// 2. Let the backward recompute the calls whose results the policy does not keep.
//
// Takes O(uses) time.
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
      getOperation().emitError("policy of activation checkpointing '")
          << policy << "': " << problem;
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

  /// Returns the calls that may be computed again and whose results the policy does not keep.
  /// Boundary calls may not be computed again, but they are counted when one of every N calls is
  /// selected (KIND/N).
  static llvm::BitVector findRecomputed(const RecomputeGraph &graph,
                                        const CheckpointingPolicy &parsed) {
    SymbolTableCollection tables;
    llvm::BitVector recomputed(graph.getCalls().size());
    llvm::StringMap<int64_t> counts; // number of calls in the segment, by kind
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
    if (!kinds)
      return mlir::emitError(function.getLoc(), "offload: ")
             << expected << ", found '" << offload << "'";
    MemorySearchOptions options{memoryLimit,     keepGathers, kinds->activations,
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
    InFlightDiagnostic diag = function.emitRemark("results of ")
                              << choice.recomputed.count() << " of " << choice.numCalls
                              << " kernel calls of the forward are computed again, ";
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
