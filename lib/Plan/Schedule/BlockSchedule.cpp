//===- BlockSchedule.cpp - Starts and waits in one block of a program -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Converts the commands of a block to a ScheduleProblem (Analysis/ScheduleProblem.h). The transfers
// of the problem are the collectives that have no channel yet, and the copies between different
// memories. Small copies between device and host are not transfers. Before any command moves, the
// order that the solver has found is verified.
//
//===----------------------------------------------------------------------===//

#include "Schedule/BlockSchedule.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/Schedule.h"
#include "fsdp/IR/InFlight.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/IR/TensorSplit.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Minimum size in bytes of a copy between device and host that is a transfer. Another thread makes
/// such a copy. For a smaller copy, waking up the thread would take longer than the copy.
static constexpr int64_t minBytesApart = 4096;

static bool isReduction(CollectiveOp op) {
  return op.getKind() == CollectiveKind::reduce_scatter ||
         op.getKind() == CollectiveKind::all_reduce;
}

static std::optional<ScheduleProblem::Transfer> describe(CollectiveOp op, unsigned number,
                                                         llvm::DenseSet<Attribute> &gathered) {
  if (op.getChannel())
    return std::nullopt;
  ScheduleProblem::Transfer transfer;
  transfer.command = number;
  transfer.isLate = !isReduction(op);
  transfer.channel = transfer.isLate ? gatherChannel : reduceChannel;
  bool isPiece = op.getSource().getBuffer() == op.getTarget().getBuffer();
  transfer.bytes = transfer.isLate ? op.getTarget().getBytes()
                   : isPiece       ? 0
                                   : op.getSource().getBytes();
  transfer.isBackward = transfer.isLate && op.getUnitAttr() && !op.getRows() &&
                        !gathered.insert(op.getUnitAttr()).second;
  StringRef axis = cast<StringAttr>(op.getAxes()[0]).getValue();
  transfer.isOfActivations = !op.getUnitAttr() && (axis == tensorAxis || axis == contextAxis);
  return transfer;
}

/// Describes a copy as a transfer. Returns nothing if the copy is not a transfer. A copy to the
/// host is early if the memory of its source becomes free after the copy. The memory does not
/// become free if the source is a state. A copy to a file is always early.
static std::optional<ScheduleProblem::Transfer>
describe(CopyOp op, unsigned number, LayoutOp layout, SymbolTableCollection &tables) {
  auto source = tables.lookupSymbolIn<BufferOp>(layout, op.getSource().getBuffer());
  auto target = tables.lookupSymbolIn<BufferOp>(layout, op.getTarget().getBuffer());
  int64_t bytes = op.getSource().getBytes();
  Memory from = getMemory(source), to = getMemory(target);
  bool isFile = from == Memory::file || to == Memory::file;
  if (getChannel(op) || from == to || (bytes < minBytesApart && !isFile))
    return std::nullopt;
  ScheduleProblem::Transfer transfer;
  transfer.command = number;
  transfer.channel = from == Memory::file   ? fromFileChannel
                     : to == Memory::file   ? toFileChannel
                     : to == Memory::device ? toDeviceChannel
                                            : toHostChannel;
  transfer.isLate = to == Memory::device || (to == Memory::host && source.isPersistent());
  BufferOp held = transfer.isLate ? target : source;
  transfer.bytes = getMemory(held) != Memory::device || held.isPersistent() ? 0 : bytes;
  return transfer;
}

/// Returns true if a copy reads a part of a device buffer that is no state.
static bool keepsPart(CopyOp op, LayoutOp layout, SymbolTableCollection &tables) {
  auto source = tables.lookupSymbolIn<BufferOp>(layout, op.getSource().getBuffer());
  return getMemory(source) == Memory::device && !source.isPersistent() &&
         op.getSource().getBytes() < static_cast<int64_t>(source.getBytes());
}

static ScheduleProblem::Kind getKind(Operation *command) {
  using Kind = ScheduleProblem::Kind;
  return isa<LaunchOp>(command) ? Kind::launch
         : isa<CopyOp>(command) ? Kind::copy
         : isa<LoopOp>(command) ? Kind::loop
                                : Kind::other;
}

FailureOr<ScheduleProblem> fsdp::describeBlock(const CommandGraph &graph, LayoutOp layout,
                                               llvm::function_ref<double(Operation *)> getSeconds,
                                               CostModel &model, ArrayRef<int64_t> live) {
  ScheduleProblem problem;
  problem.setMultiprocessors(model.getMultiprocessors());
  llvm::DenseSet<Attribute> gathered;
  // Contains one collective of each group of collectives that may start as one launch.
  SmallVector<CollectiveOp> kinds;
  SymbolTableCollection tables;
  for (auto [number, command] : llvm::enumerate(graph.getCommands())) {
    double seconds = getSeconds(command);
    problem.addCommand(getKind(command), seconds, live[number]);
    if (auto launch = dyn_cast<LaunchOp>(command)) {
      const fsdpcommon::KernelTime &time = model.getKernelTime(launch);
      problem.setParts(number, time.busySeconds, time.memorySeconds);
    }
    for (unsigned earlier : graph.getBefore(number))
      problem.addDependence(earlier, number);
    auto collective = dyn_cast<CollectiveOp>(command);
    std::optional<ScheduleProblem::Transfer> transfer;
    if (collective)
      transfer = describe(collective, number, gathered);
    else if (auto copy = dyn_cast<CopyOp>(command)) {
      transfer = describe(copy, number, layout, tables);
      if (keepsPart(copy, layout, tables))
        problem.setKeepsPart(number);
    }
    if (!transfer)
      continue;
    transfer->seconds = seconds;
    if (collective) {
      transfer->latency = std::min(seconds, model.getLatency(collective));
      transfer->multiprocessors = model.getMultiprocessors(collective);
      transfer->sentBytes =
          std::max(collective.getSource().getBytes(), collective.getTarget().getBytes());
      auto alike = llvm::find_if(
          kinds, [&](CollectiveOp other) { return canStartTogether(other, collective); });
      transfer->alike = alike - kinds.begin();
      if (alike == kinds.end())
        kinds.push_back(collective);
    }
    problem.addTransfer(*transfer);
  }
  if (std::string why = problem.check(); !why.empty()) {
    layout.emitError("internal error: schedule problem: ") << why;
    return failure();
  }
  problem.derive();
  return problem;
}

/// Sets the channel and the attributes of the transfer that `op` starts, and returns `op`.
static Operation *startTransfer(Operation *op, int64_t channel, double seconds, double exposed,
                                StringRef limit, int64_t &nextId) {
  Builder b(op->getContext());
  if (auto copy = dyn_cast<CopyOp>(op))
    setInFlight(copy, nextId++, channel);
  else
    cast<CollectiveOp>(op).setChannel(channel);
  op->setAttr(secondsAttr, b.getF64FloatAttr(seconds));
  op->setAttr(exposedAttr, b.getF64FloatAttr(exposed));
  if (!limit.empty())
    op->setAttr(limitAttr, b.getStringAttr(limit));
  return op;
}

void fsdp::applyInOrder(const CommandGraph &graph, const ScheduleProblem &problem,
                        int64_t &nextId) {
  for (const ScheduleProblem::Transfer &transfer : problem.getTransfers()) {
    Operation *op = startTransfer(graph.getCommands()[transfer.command], transfer.channel,
                                  transfer.seconds, transfer.seconds, "memory", nextId);
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    WaitOp::create(b, op->getLoc(), *getInFlightId(op));
  }
}

LogicalResult fsdp::applySchedule(Block &block, const CommandGraph &graph,
                                  const ScheduleProblem &problem, const ScheduleSolver &solver,
                                  int64_t &nextId) {
  SmallVector<ScheduleEvent> order = solver.getOrder();
  if (std::string why = problem.verify(order); !why.empty())
    return block.getParentOp()->emitError("internal error: schedule: ") << why;
  OpBuilder b(block.getParentOp()->getContext());
  Timeline line = solver.simulate();
  for (const ScheduleEvent &event : order) {
    if (event.kind == ScheduleEvent::Kind::compute) {
      graph.getCommands()[event.index]->moveBefore(&block, block.end());
      continue;
    }
    const ScheduleProblem::Transfer &transfer = problem.getTransfers()[event.index];
    Operation *op = graph.getCommands()[transfer.command];
    if (event.kind == ScheduleEvent::Kind::start) {
      startTransfer(op, transfer.channel, solver.getSeconds(event.index),
                    solver.getExposed(event.index, line), solver.getLimit(event.index), nextId)
          ->moveBefore(&block, block.end());
    } else {
      b.setInsertionPointToEnd(&block);
      WaitOp::create(b, op->getLoc(), *getInFlightId(op));
    }
  }
  return success();
}
