//===- VerifyPlanned.cpp - Contract after Plan ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks the planned programs. The checks do not use the results or the code of the passes that
// assigned buffers and offsets.
//
// 1. No op of an earlier stage is left, and every buffer has an offset.
// 2. Check the memory: visit the command numbers of a program in order, and keep the buffers that
//    are alive sorted by their offsets. A buffer that becomes alive must not overlap its two
//    neighbours in this order. Takes O(n log n) time for n buffers.
// 3. Check the commands of a program in order:
//    - A command accesses only buffers that are alive. A buffer that is used in a loop is alive
//      either during the whole loop, or only within one iteration.
//    - A command reads only bytes that an earlier command has written. States and inputs count as
//      written before the first command. If a buffer lives within one iteration, its bytes count as
//      not written when the iteration begins.
//    - All buffers of a launch are in the same arena: the device's arena or the host's arena. All
//      buffers of a collective are in the device's arena.
//    - While a collective or a copy is in flight, no command writes its source and no command reads
//      or writes its target.
//
// It is enough to check one iteration of a loop, because later iterations only add to the set of
// written bytes.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Commands.h"
#include "fsdp/IR/InFlight.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/Plan/Passes.h"
#include <map>
#include <set>

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYPLANNEDPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The set of the bytes that were written, stored as disjoint ranges.
class Ranges {
public:
  void add(int64_t begin, int64_t end) {
    auto next = ranges.upper_bound(begin);
    if (next != ranges.begin() && std::prev(next)->second >= begin)
      --next;
    while (next != ranges.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = ranges.erase(next);
    }
    ranges[begin] = end;
  }
  bool contains(int64_t begin, int64_t end) const {
    if (begin >= end)
      return true;
    auto next = ranges.upper_bound(begin);
    return next != ranges.begin() && std::prev(next)->second >= end;
  }

private:
  std::map<int64_t, int64_t> ranges;
};
} // namespace

static InFlightDiagnostic emitOverlap(BufferOp buffer, BufferOp other) {
  InFlightDiagnostic diag = buffer.emitError("overlaps @")
                            << other.getSymName() << ", which lives at the same time";
  diag.attachNote(other.getLoc()) << "@" << other.getSymName() << " takes " << other.getBytes()
                                  << " bytes at " << *other.getOffset();
  return diag;
}

/// Checks the memory (step 2) for the buffers of one program and the buffers that are always alive.
static LogicalResult checkMemory(ArrayRef<BufferOp> buffers) {
  // A lifetime includes its last command. Therefore, at each command, lifetimes that begin are
  // sorted before lifetimes that end.
  struct Event {
    int64_t moment;
    bool ends;
    BufferOp buffer;
  };
  SmallVector<Event> events;
  for (BufferOp buffer : buffers) {
    if (buffer.getBytes() == 0)
      continue;
    bool always = buffer.isPersistent();
    events.push_back({always ? -1 : static_cast<int64_t>(*buffer.getFirst()), false, buffer});
    if (!always)
      events.push_back({static_cast<int64_t>(*buffer.getLast()), true, buffer});
  }
  llvm::sort(events, [](const Event &a, const Event &b) {
    return std::make_tuple(a.moment, a.ends, BufferOp(a.buffer).getSymName()) <
           std::make_tuple(b.moment, b.ends, BufferOp(b.buffer).getSymName());
  });
  std::map<int64_t, BufferOp> alive;
  for (Event &event : events) {
    BufferOp buffer = event.buffer;
    int64_t begin = *buffer.getOffset(), end = begin + static_cast<int64_t>(buffer.getBytes());
    if (event.ends) {
      alive.erase(begin);
      continue;
    }
    auto next = alive.lower_bound(begin);
    if (next != alive.end() && next->first < end)
      return emitOverlap(buffer, next->second);
    if (next != alive.begin()) {
      BufferOp before = std::prev(next)->second;
      if (static_cast<int64_t>(*before.getOffset() + before.getBytes()) > begin)
        return emitOverlap(buffer, before);
    }
    alive.insert({begin, buffer});
  }
  return success();
}

namespace {

/// Checks the commands of one program (step 3 of the file header).
class CommandChecker {
public:
  CommandChecker(ProgramOp program, LayoutOp layout, SymbolTableCollection &tables)
      : program(program), layout(layout), tables(tables) {}

  LogicalResult run(SmallVector<NumberedCommand> &commands) {
    for (const NumberedCommand &command : commands) {
      SmallVector<Access> accesses = getAccesses(command.op, tables);
      if (failed(checkArenas(command, accesses)))
        return failure();
      for (const Access &access : accesses)
        if (failed(checkLifetime(command, access)) || failed(checkInFlight(command, access)) ||
            failed(checkWritten(command, access)))
          return failure();
      for (const Access &access : accesses)
        if (access.writes)
          written[access.slice.getBuffer()].add(access.slice.getOffset(),
                                                getReach(access.slice, command));
      if (std::optional<int64_t> id = getInFlightId(command.op))
        inFlight[*id] = {command.op, accesses};
      if (auto wait = dyn_cast<WaitOp>(command.op))
        inFlight.erase(wait.getId());
    }
    return success();
  }

private:
  /// A collective or a copy that has started and for which no command has waited yet.
  struct Started {
    Operation *op;
    SmallVector<Access> accesses;
  };

  /// Returns the end of the range of bytes that a slice covers over all iterations of its loop. A
  /// slice that is written has a stride of 0 or its size. Only slices of inputs have other strides.
  static int64_t getReach(SliceAttr slice, const NumberedCommand &command) {
    return slice.getOffset() + slice.getBytes() + slice.getStride() * (command.turns - 1);
  }

  BufferOp getBuffer(SliceAttr slice) {
    return tables.lookupSymbolIn<BufferOp>(layout, slice.getBuffer());
  }

  LogicalResult checkArenas(const NumberedCommand &command, ArrayRef<Access> accesses) {
    if (!isa<LaunchOp, CollectiveOp>(command.op) || accesses.empty())
      return success();
    bool host =
        isa<LaunchOp>(command.op) && getMemory(getBuffer(accesses.front().slice)) == Memory::host;
    for (const Access &access : accesses) {
      BufferOp buffer = getBuffer(access.slice);
      Memory memory = getMemory(buffer);
      if (memory == (host ? Memory::host : Memory::device))
        continue;
      InFlightDiagnostic diag = command.op->emitError("command ")
                                << command.number << " (" << describeCommand(command.op)
                                << ") runs on the " << (host ? "host" : "device") << ", but @"
                                << buffer.getSymName()
                                << (memory == Memory::file ? " is in the " : " is on the ")
                                << getName(memory) << "; expected a copy between them";
      diag.attachNote(buffer.getLoc()) << "the buffer is declared here";
      return diag;
    }
    return success();
  }

  LogicalResult checkLifetime(const NumberedCommand &command, const Access &access) {
    BufferOp buffer = getBuffer(access.slice);
    if (buffer.isPersistent())
      return success();
    int64_t first = *buffer.getFirst(), last = *buffer.getLast();
    bool inside = buffer.getProgramAttr().getAttr() == program.getSymNameAttr() &&
                  first <= command.number && command.number <= last;
    if (inside && command.loopFirst >= 0) {
      bool isLocal = first > command.loopFirst && last <= command.loopLast;
      inside = isLocal || (first <= command.loopFirst && last >= command.loopLast);
    }
    if (inside)
      return success();
    InFlightDiagnostic diag = command.op->emitError("command ")
                              << command.number << " (" << describeCommand(command.op) << ") uses @"
                              << buffer.getSymName() << " outside of its lifetime, " << first
                              << " to " << last << " of " << buffer.getProgramAttr();
    diag.attachNote(buffer.getLoc()) << "the buffer is declared here";
    return diag;
  }

  LogicalResult checkWritten(const NumberedCommand &command, const Access &access) {
    BufferOp buffer = getBuffer(access.slice);
    if (!access.reads || buffer.isPersistent() ||
        written[access.slice.getBuffer()].contains(access.slice.getOffset(),
                                                   getReach(access.slice, command)))
      return success();
    InFlightDiagnostic diag = command.op->emitError("command ")
                              << command.number << " (" << describeCommand(command.op)
                              << ") reads bytes of @" << buffer.getSymName()
                              << " that no command before it wrote";
    diag.attachNote(buffer.getLoc()) << "the buffer is declared here";
    return diag;
  }

  LogicalResult checkInFlight(const NumberedCommand &command, const Access &access) {
    for (auto &[id, started] : inFlight) {
      bool clash = llvm::any_of(started.accesses, [&](const Access &moved) {
        return (access.writes || moved.writes) && meet(access.slice, moved.slice);
      });
      if (!clash)
        continue;
      StringRef what = isa<CopyOp>(started.op) ? "copy" : "collective";
      InFlightDiagnostic diag = command.op->emitError("command ")
                                << command.number << " (" << describeCommand(command.op)
                                << ") accesses bytes that " << what << " " << id
                                << " in flight uses; expected a wait for it before";
      diag.attachNote(started.op->getLoc()) << "the " << what << " starts here";
      return diag;
    }
    return success();
  }

  static bool meet(SliceAttr a, SliceAttr b) {
    return a.getBuffer() == b.getBuffer() && a.getOffset() < b.getOffset() + b.getBytes() &&
           b.getOffset() < a.getOffset() + a.getBytes();
  }

  ProgramOp program;
  LayoutOp layout;
  SymbolTableCollection &tables;
  DenseMap<Attribute, Ranges> written;
  std::map<int64_t, Started> inFlight; // transfers in flight by id
};

class VerifyPlannedPass : public fsdp::impl::VerifyPlannedPassBase<VerifyPlannedPass> {
  void runOnOperation() override {
    if (failed(checkRemains()))
      return signalPassFailure();
    SymbolTableCollection tables;
    for (auto program : getOperation().getOps<ProgramOp>()) {
      auto layout = tables.lookupNearestSymbolFrom<LayoutOp>(program, program.getLayoutAttr());
      SmallVector<BufferOp> buffers[3]; // buffers by memory
      for (auto buffer : layout.getOps<BufferOp>())
        if (buffer.isPersistent() || buffer.getProgramAttr().getAttr() == program.getSymNameAttr())
          buffers[static_cast<unsigned>(getMemory(buffer))].push_back(buffer);
      SmallVector<NumberedCommand> commands = numberCommands(program);
      numCommands += commands.size();
      if (failed(checkMemory(buffers[0])) || failed(checkMemory(buffers[1])) ||
          failed(checkMemory(buffers[2])) ||
          failed(CommandChecker(program, layout, tables).run(commands)))
        return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

  /// Checks that no op of an earlier stage is left and that every buffer has an offset.
  LogicalResult checkRemains() {
    LogicalResult result = success();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(FSDPDialect::programAttr))
        result = function.emitError(
            "expected programs instead of functions on tensors; run fsdp-assign-buffers");
    getOperation().walk([&](Operation *op) {
      if (isa<DispatchOp, KernelCallOp>(op))
        result = op->emitError("expected launches in programs, found '") << op->getName() << "'";
      auto buffer = dyn_cast<BufferOp>(op);
      if (buffer && !buffer.getOffset())
        result = buffer.emitError("expected an offset; run fsdp-pack-arenas");
    });
    return result;
  }
};

} // namespace
