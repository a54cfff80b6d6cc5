//===- Commands.cpp - Programs as numbered commands -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes lifetimes of buffers as ranges of command numbers:
//
//   0  fill @s             @s  0..3   carried by the loop
//   1  loop 4 {
//   2    launch k(@a)      @a  2..3   dead between iterations
//   3    launch add(@a, @s)
//   4  }  launch f(@s)     (its number is 4: the end of a loop has none)
//
// If all commands that use a buffer are in the same loop, the lifetime of the buffer begins with
// the first of these commands and ends with the last. Otherwise, a use in a loop extends the
// lifetime to the whole loop. The time is O(commands).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Commands.h"
#include "fsdp/IR/InFlight.h"
#include "fsdp/IR/Kernels.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::fsdp;

static SmallVector<Access> getLaunchAccesses(LaunchOp launch, SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr());
  SmallVector<Access> accesses;
  for (auto [index, slice] : llvm::enumerate(launch.getBindings().getAsRange<SliceAttr>())) {
    bool out = kernel && kernel.getArgAttr(index, outAttr),
         inout = kernel && kernel.getArgAttr(index, inoutAttr);
    accesses.push_back({slice, /*reads=*/!out, /*writes=*/out || inout});
  }
  return accesses;
}

/// Returns the range of the state buffer that `fsdp.initialise` writes.
static SmallVector<Access> getInitialiseAccesses(InitialiseOp op, SymbolTableCollection &tables) {
  auto program = op->getParentOfType<ProgramOp>();
  auto layout = tables.lookupNearestSymbolFrom<LayoutOp>(program, program.getLayoutAttr());
  for (auto state : layout.getOps<StateSlotOp>()) {
    if (state.getUnitAttr() != op.getUnitAttr() || state.getRole() != op.getRole())
      continue;
    int64_t bytes = getStorageBytes(state.getTensorType());
    return {{SliceAttr::get(op.getContext(), state.getBufferAttr(), 0, bytes, 0, 0, ArrayAttr()),
             false, true}};
  }
  return {};
}

SmallVector<Access> fsdp::getAccesses(Operation *command, SymbolTableCollection &tables) {
  return llvm::TypeSwitch<Operation *, SmallVector<Access>>(command)
      .Case([&](LaunchOp op) { return getLaunchAccesses(op, tables); })
      .Case([&](InitialiseOp op) { return getInitialiseAccesses(op, tables); })
      .Case<CollectiveOp, CopyOp>([](auto op) {
        return SmallVector<Access>{{op.getSource(), true, false}, {op.getTarget(), false, true}};
      })
      .Case([](FillOp op) { return SmallVector<Access>{{op.getTarget(), false, true}}; })
      .Default([](Operation *) { return SmallVector<Access>(); });
}

std::string fsdp::describeCommand(Operation *command) {
  auto label = command->getAttrOfType<StringAttr>("label");
  std::string name = command->getName().stripDialect().str();
  if (auto collective = dyn_cast<CollectiveOp>(command))
    name = stringifyCollectiveKind(collective.getKind()).str();
  return label ? name + " " + label.str() : name;
}

SmallVector<NumberedCommand> fsdp::numberCommands(ProgramOp program) {
  SmallVector<NumberedCommand> commands;
  for (Operation &op : program.getBody().front()) {
    NumberedCommand outer{&op, static_cast<int64_t>(commands.size())};
    commands.push_back(outer);
    auto loop = dyn_cast<LoopOp>(op);
    if (!loop)
      continue;
    int64_t last = outer.number + loop.getBody().front().getOperations().size();
    for (Operation &inner : loop.getBody().front())
      commands.push_back({&inner, static_cast<int64_t>(commands.size()), outer.number, last,
                          static_cast<int64_t>(loop.getCount())});
  }
  return commands;
}

namespace {
/// First and last command that use a buffer. `exact` contains the numbers of these two commands. In
/// `outer`, a command in a loop counts as the range from the number of the loop to the number of
/// the last command in the loop.
struct Usage {
  Lifetime exact, outer;
  int64_t loop; // number of the loop around all uses; -1 if there is no such loop
};
} // namespace

llvm::MapVector<StringAttr, Lifetime> fsdp::getLifetimes(ProgramOp program,
                                                         SymbolTableCollection &tables) {
  llvm::MapVector<StringAttr, Usage> usages;
  auto use = [&](SliceAttr slice, const NumberedCommand &at) {
    Lifetime exact{at.number, at.number};
    Lifetime outer = at.loopFirst < 0 ? exact : Lifetime{at.loopFirst, at.loopLast};
    auto [entry, fresh] =
        usages.insert({slice.getBuffer().getAttr(), {exact, outer, at.loopFirst}});
    Usage &usage = entry->second;
    usage.exact = {std::min(usage.exact.first, exact.first),
                   std::max(usage.exact.last, exact.last)};
    usage.outer = {std::min(usage.outer.first, outer.first),
                   std::max(usage.outer.last, outer.last)};
    if (usage.loop != at.loopFirst)
      usage.loop = -1;
  };
  DenseMap<int64_t, Operation *> inFlight;
  for (const NumberedCommand &command : numberCommands(program)) {
    for (const Access &access : getAccesses(command.op, tables))
      use(access.slice, command);
    if (std::optional<int64_t> id = getInFlightId(command.op))
      inFlight[*id] = command.op;
    if (auto wait = dyn_cast<WaitOp>(command.op))
      if (Operation *started = inFlight.lookup(wait.getId()))
        for (const Access &access : getAccesses(started, tables))
          use(access.slice, command);
  }
  llvm::MapVector<StringAttr, Lifetime> lifetimes;
  for (auto &[buffer, usage] : usages)
    lifetimes.insert({buffer, usage.loop < 0 ? usage.outer : usage.exact});
  return lifetimes;
}

void fsdp::setLifetimes(ProgramOp program, LayoutOp layout, SymbolTableCollection &tables) {
  auto lifetimes = getLifetimes(program, tables);
  Builder builder(program.getContext());
  std::string prefix = (program.getSymName() + ".").str();
  for (auto buffer : llvm::make_early_inc_range(layout.getOps<BufferOp>())) {
    if (!buffer.getSymName().starts_with(prefix))
      continue;
    auto lifetime = lifetimes.find(buffer.getSymNameAttr());
    if (lifetime == lifetimes.end()) {
      buffer.erase();
      continue;
    }
    buffer.setProgramAttr(FlatSymbolRefAttr::get(program.getSymNameAttr()));
    buffer.setFirstAttr(builder.getI64IntegerAttr(lifetime->second.first));
    buffer.setLastAttr(builder.getI64IntegerAttr(lifetime->second.last));
  }
}
