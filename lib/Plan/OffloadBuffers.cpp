//===- OffloadBuffers.cpp - Buffers in host memory --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Moves buffers of the chosen kinds to the arena of the host, and adds copies where they are used.
//
//   reduce_scatter @flat -> @grad            reduce_scatter @flat -> @grad.0
//   launch update(@param, @grad, @moment)    copy @grad.0 -> @host.0
//                                       =>   copy @param -> @host.1
//   with @moment on the host                 launch update(@host.1, @host.0, @moment)
//                                            copy @host.1 -> @param
//
// 1. Choose the buffers that move to the host: states of the given kinds, and gradients that no
//    collective reads.
// 2. A launch runs on the host if two conditions hold. It accesses a buffer that is not on the
//    device, and each of its buffers has the category parameters, gradients, optimizer, staging or
//    control. Operands that are on the device are copied to the host before the launch, and results
//    are copied back. Skip this step if the target's kernels do not run on the host.
// 3. All other launches, and all collectives, run on the device. Before each of them, its operands
//    on the host are copied to the device. Commands that copy or fill access both arenas directly.
//    Buffers in the rank's file are copied in the same way as buffers on the host.
// 4. Find the activations (all, or only marked ones) that are not used for a long time between two
//    uses. Directly after the first of these uses, add a copy to the host. Directly before the
//    second use, add a copy to a new buffer of the device.
//
// Takes O(commands · bindings) time, and O(accesses of the buffer) for each offloaded activation.
// Sets lifetimes again. There are separate copies for each launch, even if two launches need the
// same buffer. ScheduleCollectives.cpp overlaps copies with computation.
//
//===----------------------------------------------------------------------===//

#include "LayoutNames.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/Packing.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/Plan/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_OFFLOADBUFFERSPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Copies of an activation are added only if at least this number of commands is between two uses.
/// A layer has about this number of commands.
static constexpr int64_t minCommandsAway = 16;

namespace {

/// Moves buffers of one layout to host memory, in all programs of the layout.
class Offloader {
public:
  Offloader(LayoutOp layout, const OffloadKinds &kinds, int64_t minBytes, bool marked,
            bool hostComputes)
      : layout(layout), kinds(kinds), minBytes(minBytes), marked(marked),
        hostComputes(hostComputes), builder(layout.getContext()) {
    for (auto buffer : layout.getOps<BufferOp>())
      buffers[buffer.getSymNameAttr()] = buffer;
  }

  void markStates();
  void run(ProgramOp program);

  unsigned numCopies = 0;

private:
  void markGradients();
  void placeLaunch(LaunchOp launch);
  void placeCollective(CollectiveOp collective);
  void splitActivations(Block &block);
  void split(BufferOp buffer, ArrayRef<Operation *> uses);

  BufferOp getBuffer(FlatSymbolRefAttr name) { return buffers.at(name.getAttr()); }
  BufferOp getBuffer(SliceAttr slice) { return getBuffer(slice.getBuffer()); }
  Memory getMemory(SliceAttr slice) { return fsdp::getMemory(getBuffer(slice)); }
  bool runsOnHost(LaunchOp launch);
  BufferOp addBuffer(StringRef kind, const Twine &label, Category category, int64_t bytes,
                     bool host, Location loc);
  SliceAttr getWhole(BufferOp buffer);
  void copy(SliceAttr from, SliceAttr to, StringRef label, Location loc);
  /// Must be called if the buffer of `access` is not in the memory of the place where `op` runs:
  /// the host if `host` is true, otherwise the device. Adds the necessary copies before and after
  /// `op`. Returns the slice that `op` uses instead of `access`.
  SliceAttr stage(const Access &access, bool host, Operation *op);

  LayoutOp layout;
  const OffloadKinds &kinds;
  int64_t minBytes;
  bool marked, hostComputes;
  OpBuilder builder;
  ProgramOp program;
  DenseMap<StringAttr, BufferOp> buffers; ///< buffers of the layout, including new ones
  SymbolTableCollection tables;           ///< symbol tables that find kernels by name
  unsigned numBuffers = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Step 1
//===----------------------------------------------------------------------===//

void Offloader::markStates() {
  for (auto state : layout.getOps<StateSlotOp>()) {
    bool isParameter = state.getRole() == StateRole::parameter;
    if (!isParameter && kinds.optimizerFile)
      getBuffer(state.getBufferAttr())->setAttr(fileAttr, builder.getUnitAttr());
    else if (isParameter ? kinds.parameters : kinds.optimizer)
      getBuffer(state.getBufferAttr()).setHost(true);
  }
}

/// Marks gradients for the host, except gradients that a collective still reads.
void Offloader::markGradients() {
  llvm::DenseSet<Attribute> read, used;
  program.walk([&](Operation *op) {
    for (const Access &access : getAccesses(op, tables)) {
      used.insert(access.slice.getBuffer());
      if (access.reads && isa<CollectiveOp>(op))
        read.insert(access.slice.getBuffer());
    }
  });
  for (auto buffer : layout.getOps<BufferOp>()) {
    auto name = FlatSymbolRefAttr::get(buffer.getSymNameAttr());
    if (buffer.getCategory() == Category::gradients && used.contains(name) && !read.contains(name))
      buffer.setHost(true);
  }
}

//===----------------------------------------------------------------------===//
// Copies for launches (steps 2 and 3 of the file header)
//===----------------------------------------------------------------------===//

BufferOp Offloader::addBuffer(StringRef kind, const Twine &label, Category category, int64_t bytes,
                              bool host, Location loc) {
  OpBuilder atEnd = OpBuilder::atBlockEnd(&layout.getBody().front());
  std::string symbol = (program.getSymName() + "." + kind + "." + Twine(numBuffers++)).str();
  auto buffer = BufferOp::create(atEnd, loc, symbol, label.str(), category, bytes, IntegerAttr(),
                                 nullptr, IntegerAttr(), IntegerAttr(), host);
  return buffers[buffer.getSymNameAttr()] = buffer;
}

SliceAttr Offloader::getWhole(BufferOp buffer) {
  return SliceAttr::get(builder.getContext(), FlatSymbolRefAttr::get(buffer.getSymNameAttr()), 0,
                        buffer.getBytes(), 0, 0, ArrayAttr());
}

void Offloader::copy(SliceAttr from, SliceAttr to, StringRef label, Location loc) {
  CopyOp::create(builder, loc, from, to, builder.getStringAttr(label));
  ++numCopies;
}

/// Returns the label of a copy.
static std::string describeCopy(Memory from, Memory to, StringRef what) {
  StringRef way = to == Memory::file     ? "to the file: "
                  : from == Memory::file ? "from the file: "
                  : to == Memory::host   ? "to the host: "
                                         : "to the device: ";
  return (way + what).str();
}

SliceAttr Offloader::stage(const Access &access, bool host, Operation *op) {
  BufferOp home = getBuffer(access.slice);
  std::string label = home.getLabel().str();
  BufferOp staged =
      addBuffer(host ? "host" : "device", (host ? "on the host: " : "on the device: ") + label,
                Category::staging, access.slice.getBytes(), host, op->getLoc());
  SliceAttr slice = getWhole(staged);
  Memory from = fsdp::getMemory(home), to = fsdp::getMemory(staged);
  if (access.reads) {
    builder.setInsertionPoint(op);
    copy(access.slice, slice, describeCopy(from, to, label), op->getLoc());
  }
  if (access.writes) {
    builder.setInsertionPointAfter(op);
    copy(slice, access.slice, describeCopy(to, from, label), op->getLoc());
  }
  return slice;
}

bool Offloader::runsOnHost(LaunchOp launch) {
  if (!hostComputes)
    return false;
  bool touches = false;
  for (SliceAttr slice : launch.getBindings().getAsRange<SliceAttr>()) {
    BufferOp buffer = getBuffer(slice);
    touches |= fsdp::getMemory(buffer) != Memory::device;
    switch (buffer.getCategory()) {
    case Category::parameters:
    case Category::gradients:
    case Category::optimizer:
    case Category::staging:
    case Category::control:
      break;
    default:
      return false;
    }
  }
  return touches;
}

void Offloader::placeLaunch(LaunchOp launch) {
  bool host = runsOnHost(launch);
  SmallVector<Attribute> bindings;
  for (const Access &access : getAccesses(launch, tables))
    bindings.push_back(getMemory(access.slice) == (host ? Memory::host : Memory::device)
                           ? access.slice
                           : stage(access, host, launch));
  launch.setBindingsAttr(builder.getArrayAttr(bindings));
}

void Offloader::placeCollective(CollectiveOp collective) {
  SliceAttr source = collective.getSource(), target = collective.getTarget();
  if (source == target && getMemory(source) != Memory::device) {
    SliceAttr both = stage({source, true, true}, /*host=*/false, collective);
    collective.setSourceAttr(both);
    collective.setTargetAttr(both);
    return;
  }
  if (getMemory(source) != Memory::device)
    collective.setSourceAttr(stage({source, true, false}, /*host=*/false, collective));
  if (getMemory(target) != Memory::device)
    collective.setTargetAttr(stage({target, false, true}, /*host=*/false, collective));
}

//===----------------------------------------------------------------------===//
// Step 4
//===----------------------------------------------------------------------===//

/// Replaces the buffer `from` by the buffer `to` in all slices of a command.
static void redirect(Operation *op, FlatSymbolRefAttr from, FlatSymbolRefAttr to) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](SliceAttr slice) -> std::optional<Attribute> {
    if (slice.getBuffer() != from)
      return std::nullopt;
    return SliceAttr::get(slice.getContext(), to, slice.getOffset(), slice.getBytes(),
                          slice.getStride(), slice.getPiece(), slice.getAxes());
  });
  replacer.replaceElementsIn(op);
}

/// Splits the lifetime of a buffer at the widest gap between `uses` if the gap is wide enough.
/// The commands after the gap use a new buffer instead of `buffer`.
void Offloader::split(BufferOp buffer, ArrayRef<Operation *> uses) {
  size_t at = 0;
  int64_t widest = 0;
  for (size_t i = 1; i < uses.size(); ++i) {
    int64_t width = 0;
    for (Operation *op = uses[i - 1]; op != uses[i]; op = op->getNextNode())
      ++width;
    if (width > widest) {
      widest = width;
      at = i;
    }
  }
  if (widest < minCommandsAway)
    return;
  // The copy reads the whole buffer, so a command before it must have written the whole buffer.
  auto whole = getWhole(buffer);
  bool isWhole = llvm::any_of(uses.take_front(at), [&](Operation *op) {
    return llvm::any_of(getAccesses(op, tables), [&](const Access &access) {
      return access.writes && access.slice == whole;
    });
  });
  if (!isWhole)
    return;
  std::string label = buffer.getLabel().str();
  BufferOp away = addBuffer("host", label, buffer.getCategory(), buffer.getBytes(), /*host=*/true,
                            buffer.getLoc());
  BufferOp back = addBuffer("back", label, buffer.getCategory(), buffer.getBytes(), /*host=*/false,
                            buffer.getLoc());
  builder.setInsertionPointAfter(uses[at - 1]);
  copy(whole, getWhole(away), "to the host: " + label, uses[at - 1]->getLoc());
  builder.setInsertionPoint(uses[at]);
  copy(getWhole(away), getWhole(back), "to the device: " + label, uses[at]->getLoc());
  for (Operation *op : uses.drop_front(at))
    redirect(op, whole.getBuffer(), FlatSymbolRefAttr::get(back.getSymNameAttr()));
}

void Offloader::splitActivations(Block &block) {
  llvm::MapVector<Attribute, SmallVector<Operation *>> uses;
  llvm::DenseSet<Attribute> elsewhere;
  program.walk([&](Operation *op) {
    for (const Access &access : getAccesses(op, tables)) {
      if (op->getBlock() != &block)
        elsewhere.insert(access.slice.getBuffer());
      else if (auto &list = uses[access.slice.getBuffer()]; list.empty() || list.back() != op)
        list.push_back(op);
    }
  });
  for (auto &[name, list] : uses) {
    BufferOp buffer = getBuffer(cast<FlatSymbolRefAttr>(name));
    bool isOurs = buffer.getCategory() == Category::activations && !buffer.getHost() &&
                  static_cast<int64_t>(buffer.getBytes()) >= minBytes &&
                  (!marked || buffer->hasAttr(offloadAttr));
    if (isOurs && !elsewhere.contains(name))
      split(buffer, list);
  }
}

void Offloader::run(ProgramOp which) {
  program = which;
  if (kinds.gradients)
    markGradients();
  SmallVector<Operation *> commands;
  program.walk([&](Operation *op) { commands.push_back(op); });
  for (Operation *op : commands)
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](LaunchOp launch) { placeLaunch(launch); })
        .Case([&](CollectiveOp collective) { placeCollective(collective); });
  if (kinds.activations) {
    for (auto loop : program.getBody().getOps<LoopOp>())
      splitActivations(loop.getBody().front());
    splitActivations(program.getBody().front());
  }
  setLifetimes(program, layout, tables);
}

namespace {

class OffloadBuffersPass : public fsdp::impl::OffloadBuffersPassBase<OffloadBuffersPass> {
public:
  using OffloadBuffersPassBase::OffloadBuffersPassBase;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::string expected;
    std::optional<OffloadKinds> kinds = parseValue<OffloadKinds>(what, expected);
    if (!kinds) {
      module.emitError("offload: ") << expected << ", found '" << what << "'";
      return signalPassFailure();
    }
    auto layout = module.lookupSymbol<LayoutOp>(mainLayout);
    if (!layout)
      return;
    Offloader offloader(layout, *kinds, minBytes, marked, hostComputes);
    offloader.markStates();
    for (auto program : module.getOps<ProgramOp>())
      if (program.getLayout() == layout.getSymName())
        offloader.run(program);
    numCopies += offloader.numCopies;
    for (auto buffer : layout.getOps<BufferOp>()) {
      numOnHost += getMemory(buffer) == Memory::host;
      buffer->removeAttr(offloadAttr);
    }
  }
};

} // namespace
