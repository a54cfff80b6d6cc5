//===- ScheduleCollectives.cpp - Overlap transfers with compute --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   launch a                             collective 0 all_gather channel 1
//   collective 0 all_gather @h.1   =>    launch a
//   launch b (reads it)                  wait 0
//                                        launch b
//
// 1. For each block of each program, find the dependences between commands
//    (Analysis/CommandGraph.cpp), and the number of bytes that are alive at each command.
// 2. Choose places for the starts and waits of collectives, and for the starts and waits of copies
//    between the arenas of device and host (ScheduleSolver.cpp). Repeat this for several values of
//    `slack`, the factor by which transfers are assumed to take longer than estimated. Simulate
//    each schedule (Analysis/Timeline.cpp) with links at half of their speed, so that the chosen
//    schedule is also good if the estimates are inaccurate. Keep the first schedule unless a later
//    one is at least 0.5 % faster.
//    If the cluster has copy engines, schedule with and without all-gathers by them.
// 3. If the packed arena exceeds the memory limit, but the arena of the original order does not,
//    lower the limit by the excess and repeat step 2. Do this at most a few times. If no schedule
//    fits, keep the original order, and wait for each transfer directly after its start.
// 4. Recompute the lifetimes of the buffers.
//
// A program that already contains waits is not changed. No start moves from one iteration of a loop
// to another.
//
//===----------------------------------------------------------------------===//

#include "PackArenas.h"
#include "Schedule/BlockSchedule.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/Analysis/Schedule.h"
#include "fsdp/IR/InFlight.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/Plan/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SCHEDULECOLLECTIVESPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Returns, for each command number, how many bytes of the device's arena are alive at the command.
static SmallVector<int64_t> countLiveBytes(LayoutOp layout, ProgramOp program, size_t commands) {
  SmallVector<int64_t> live(commands + 1, 0);
  int64_t always = 0;
  for (auto buffer : layout.getOps<BufferOp>()) {
    if (getMemory(buffer) != Memory::device)
      continue;
    int64_t bytes = llvm::alignTo(buffer.getBytes(), bufferAlignment);
    if (buffer.isPersistent())
      always += bytes;
    else if (buffer.getProgramAttr().getAttr() == program.getSymNameAttr()) {
      live[*buffer.getFirst()] += bytes;
      live[*buffer.getLast() + 1] -= bytes;
    }
  }
  int64_t sum = always;
  for (int64_t &bytes : live)
    bytes = sum += bytes;
  return live;
}

/// Returns the duration of a scheduled program in seconds.
static double getScheduled(ProgramOp program) {
  return program->getAttrOfType<DictionaryAttr>(scheduleAttr)
      .getAs<FloatAttr>("scheduled")
      .getValueAsDouble();
}

namespace {

/// Times in seconds of one run of a block, or of all iterations of a loop.
struct Times {
  double compute = 0, slowed = 0, unscheduled = 0, scheduled = 0, bound = 0;

  Times() = default;
  Times(const ScheduleProblem &problem, const ScheduleSolver &solver, double turns, bool inOrder) {
    Timeline line = solver.simulate();
    compute = turns * line.computeSeconds;
    slowed = inOrder ? 0 : turns * line.slowedSeconds;
    unscheduled = turns * problem.getUnscheduled();
    scheduled = inOrder ? unscheduled : turns * line.seconds;
    bound = turns * solver.getLowerBound();
  }

  /// Corrects the times of a block that contains a loop. Before the correction, each of these times
  /// includes the scheduled time of the loop. The correction replaces the scheduled time by the
  /// corresponding time of `loop`.
  void refine(const Times &loop) {
    compute += loop.compute - loop.scheduled;
    slowed += loop.slowed;
    unscheduled += loop.unscheduled - loop.scheduled;
    bound += loop.bound - loop.scheduled;
  }

  DictionaryAttr getAttr(MLIRContext *context, StringRef cluster, bool copies) const {
    Builder b(context);
    auto number = [&](StringRef name, double value) {
      return b.getNamedAttr(name, b.getF64FloatAttr(value));
    };
    SmallVector<NamedAttribute> entries = {
        b.getNamedAttr("cluster", b.getStringAttr(cluster)), number("compute", compute),
        number("unscheduled", unscheduled), number("scheduled", scheduled), number("bound", bound)};
    if (slowed > 0)
      entries.push_back(number("slowed", slowed));
    if (copies)
      entries.push_back(b.getNamedAttr("copy_engines", b.getUnitAttr()));
    return b.getDictionaryAttr(entries);
  }
};

class ScheduleCollectivesPass
    : public fsdp::impl::ScheduleCollectivesPassBase<ScheduleCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<Cluster> costs = loadCluster(&getContext(), cluster);
    if (failed(costs))
      return signalPassFailure();
    if (std::optional<std::string> expected = readValue(prefetch, depth)) {
      getOperation().emitError("prefetch: ") << *expected << ", found '" << prefetch << "'";
      return signalPassFailure();
    }
    CostModel kernels(*costs), copies(*costs, /*copies=*/true);
    SymbolTableCollection tables;
    for (auto program : getOperation().getOps<ProgramOp>())
      schedule(program, kernels, costs->hasCopyEngines() ? &copies : nullptr, costs->name, tables);
  }

  Prefetch depth;

  /// Schedules a program with the costs `kernels`. If there are also costs with copy engines, keeps
  /// the faster one of the two schedules.
  void schedule(ProgramOp program, CostModel &kernels, CostModel *copies, StringRef name,
                SymbolTableCollection &tables) {
    bool isScheduled = false;
    program.walk([&](WaitOp) { isScheduled = true; });
    if (isScheduled || !program.getMeshAttr())
      return;
    auto layout = tables.lookupNearestSymbolFrom<LayoutOp>(program, program.getLayoutAttr());
    CostModel *model = &kernels;
    auto attempt = [&](int64_t bytes, bool inOrder) {
      ProgramOp copy = program.clone();
      copy.setSymName((program.getSymName() + ".attempt").str());
      program->getBlock()->getOperations().insertAfter(program->getIterator(), copy);
      Times times = placeAll(copy, countLiveBytes(layout, program, numberCommands(copy).size()),
                             bytes, inOrder, layout, *model, tables);
      copy->setAttr(scheduleAttr, times.getAttr(program.getContext(), name, model == copies));
      return copy;
    };
    auto measure = [&](ProgramOp copy) {
      return measureArena(layout, program.getSymNameAttr(), getLifetimes(copy, tables),
                          memoryLimit);
    };
    ProgramOp placed = attempt(memoryLimit, /*inOrder=*/false);
    if (copies) {
      model = copies;
      ProgramOp other = attempt(memoryLimit, /*inOrder=*/false);
      bool isFaster = getScheduled(other) < getScheduled(placed);
      model = isFaster ? copies : &kernels;
      (isFaster ? placed : other).erase();
      placed = isFaster ? other : placed;
    }
    if (int64_t bytes = memoryLimit > 0 && atAllCosts ? measure(placed) : 0; bytes > memoryLimit)
      placed = keepToLimit(placed, bytes, attempt, measure);
    program.getBodyRegion().takeBody(placed.getBodyRegion());
    program->setAttr(scheduleAttr, placed->getAttr(scheduleAttr));
    placed.erase();
    program.walk([&](Operation *op) {
      numCollectives += isa<CollectiveOp>(op);
      numCopies += isa<CopyOp>(op) && getInFlightId(op);
    });
    setLifetimes(program, layout, tables);
  }

  /// Keeps a program within the memory limit if possible (step 3). The arena of its schedule
  /// `placed` takes `bytes` bytes.
  ProgramOp keepToLimit(ProgramOp placed, int64_t bytes,
                        llvm::function_ref<ProgramOp(int64_t, bool)> attempt,
                        llvm::function_ref<int64_t(ProgramOp)> measure) {
    static constexpr unsigned mostAttempts = 4;
    ProgramOp ordered = attempt(memoryLimit, /*inOrder=*/true);
    if (measure(ordered) > memoryLimit) {
      ordered.erase();
      return placed;
    }
    placed.erase();
    int64_t allowed = memoryLimit;
    for (unsigned count = 0; count < mostAttempts; ++count) {
      allowed -= bytes - memoryLimit;
      if (allowed <= 0)
        break;
      ProgramOp tighter = attempt(allowed, /*inOrder=*/false);
      bytes = measure(tighter);
      (bytes <= memoryLimit ? ordered : tighter).erase();
      if (bytes <= memoryLimit)
        return tighter;
    }
    return ordered;
  }

  /// Schedules all blocks of a program. `live` holds the number of live bytes at each command
  /// number.
  Times placeAll(ProgramOp program, ArrayRef<int64_t> live, int64_t bytes, bool inOrder,
                 LayoutOp layout, CostModel &model, SymbolTableCollection &tables) {
    // Visit inner blocks first, because the cost of a loop is the cost of its scheduled commands.
    llvm::MapVector<Block *, SmallVector<int64_t>> blocks;
    for (const NumberedCommand &command : numberCommands(program))
      blocks[command.op->getBlock()].push_back(live[command.number]);
    llvm::MapVector<Operation *, Times> loops;
    int64_t nextId = 0;
    program.walk(
        [&](CollectiveOp op) { nextId = std::max(nextId, static_cast<int64_t>(op.getId()) + 1); });
    auto place = [&](Block &block) {
      CommandGraph graph(block, tables);
      auto getSeconds = [&](Operation *command) {
        auto loop = loops.find(command);
        return loop != loops.end() ? loop->second.scheduled : model.getSeconds(command);
      };
      FailureOr<ScheduleProblem> problem =
          describeBlock(graph, layout, getSeconds, model, blocks[&block]);
      if (failed(problem)) {
        signalPassFailure();
        return Times();
      }
      ScheduleSolver solver(*problem);
      choose(solver, bytes);
      auto loop = dyn_cast<LoopOp>(block.getParentOp());
      Times times(*problem, solver, loop ? static_cast<double>(loop.getCount()) : 1, inOrder);
      if (inOrder)
        applyInOrder(graph, *problem, nextId);
      else if (failed(applySchedule(block, graph, *problem, solver, nextId)))
        signalPassFailure();
      return times;
    };
    for (auto loop : program.getBody().front().getOps<LoopOp>())
      loops.insert({loop, place(loop.getBody().front())});
    Times times = place(program.getBody().front());
    for (auto &[loop, inner] : loops)
      times.refine(inner);
    return times;
  }

  /// Chooses the places of the starts and waits of one block (step 2 of the file header).
  void choose(ScheduleSolver &solver, int64_t bytes) {
    static constexpr double doubt = 2;
    ScheduleLimits limits{depth.forward, depth.backward, depth.copy, bucketBytes, bytes};
    double best = 0, least = 0;
    for (double slack : scheduleSlacks) {
      limits.slack = slack;
      solver.place(limits);
      double time = solver.simulate(doubt).seconds;
      if (best == 0 || time < least * 0.995) {
        best = slack;
        least = time;
      }
    }
    limits.slack = best;
    solver.place(limits);
  }
};

} // namespace
