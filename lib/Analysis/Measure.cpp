//===- Measure.cpp - Memory and traffic of a plan ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The measures are exact. Memory is computed from the buffers and their lifetimes. Communication is
// computed from the collectives and the trip counts of the loops around them.
//
//   payload     all_gather, reduce_scatter: the whole flat buffer; all_reduce, broadcast: the
//               tensor
//   sent        payload * (n - 1) / n bytes by each of n ranks; for an all_reduce, twice as many
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/Packing.h"
#include "fsdp/Analysis/PlanMeasures.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/IR/TensorSplit.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string fsdp::formatSize(int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  unsigned unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}

static int64_t getAlignedBytes(BufferOp buffer) {
  return llvm::alignTo(buffer.getBytes(), bufferAlignment);
}

/// Returns the program named `step` and its layout. If no program has this name, returns the first
/// program and its layout.
static std::pair<LayoutOp, ProgramOp> getStep(ModuleOp module) {
  ProgramOp step;
  for (auto program : module.getOps<ProgramOp>())
    if (!step || program.getSymName() == "step")
      step = program;
  if (!step)
    return {};
  return {SymbolTable::lookupNearestSymbolFrom<LayoutOp>(step, step.getLayoutAttr()), step};
}

namespace {
/// Buffers of one program. `intervals` contains their sizes and lifetimes.
struct ProgramBuffers {
  SmallVector<BufferOp> buffers;
  SmallVector<Interval> intervals;

  void add(BufferOp buffer) {
    buffers.push_back(buffer);
    intervals.push_back({static_cast<int64_t>(buffer.getBytes()),
                         static_cast<int64_t>(*buffer.getFirst()),
                         static_cast<int64_t>(*buffer.getLast())});
  }
};
} // namespace

static void addPeak(MemoryReport &report, ModuleOp module, StringAttr name,
                    const ProgramBuffers &own, int64_t always, ArrayRef<BufferOp> persistent) {
  int64_t moment = 0, bytes = always + getLiveBytes(own.intervals, &moment);
  if (bytes <= report.peakBytes)
    return;
  auto program = SymbolTable(module).lookup<ProgramOp>(name);
  report.peakBytes = bytes;
  report.peakNumber = moment;
  report.peakBuffers.assign(persistent.begin(), persistent.end());
  for (auto [buffer, interval] : llvm::zip_equal(own.buffers, own.intervals))
    if (interval.meets({0, moment, moment}))
      report.peakBuffers.push_back(buffer);
  llvm::sort(report.peakBuffers, [](BufferOp a, BufferOp b) {
    return std::make_tuple(-static_cast<int64_t>(a.getBytes()), a.getSymName()) <
           std::make_tuple(-static_cast<int64_t>(b.getBytes()), b.getSymName());
  });
  for (const NumberedCommand &command : numberCommands(program))
    if (command.number == moment)
      report.peakCommand = command.op;
}

/// For each category, adds two numbers to `bytes`: the bytes of its persistent buffers, and the
/// largest peak that the live bytes of its other buffers reach in any program.
static void addMost(ArrayRef<BufferOp> buffers, int64_t (&bytes)[numCategories]) {
  llvm::MapVector<std::pair<StringAttr, unsigned>, ProgramBuffers> parts;
  for (BufferOp buffer : buffers) {
    unsigned category = static_cast<unsigned>(buffer.getCategory());
    if (buffer.isPersistent())
      bytes[category] += getAlignedBytes(buffer);
    else
      parts[{buffer.getProgramAttr().getAttr(), category}].add(buffer);
  }
  int64_t most[numCategories] = {};
  for (auto &[key, part] : parts)
    most[key.second] = std::max(most[key.second], getLiveBytes(part.intervals));
  for (unsigned category = 0; category < numCategories; ++category)
    bytes[category] += most[category];
}

/// Adds to `report` the bytes of the whole model on one rank, and the padding of parameters.
static void addUnits(MemoryReport &report, ModuleOp module, LayoutOp layout) {
  auto getWidth = [](StateSlotOp state) {
    return getStorageBytes(state.getTensorType().clone({1}));
  };
  // Sums over micro-batches have the type of masters, or that of parameters without masters.
  DenseMap<Attribute, int64_t> sumWidths;
  for (auto state : layout.getOps<StateSlotOp>())
    if (state.getRole() == StateRole::parameter || state.getRole() == StateRole::master)
      sumWidths[state.getUnitAttr()] = std::max(sumWidths[state.getUnitAttr()], getWidth(state));
  bool hasSums = llvm::any_of(layout.getOps<InputSlotOp>(),
                              [](InputSlotOp input) { return input.getMicroBatches() > 1; });
  llvm::StringMap<int64_t> flatBytes; // by the label of a buffer (lib/Plan/CollectivePlan.cpp)
  for (auto buffer : layout.getOps<BufferOp>())
    if (buffer.getProgram() == StringRef("step"))
      flatBytes.try_emplace(buffer.getLabel(), buffer.getBytes());
  for (auto state : layout.getOps<StateSlotOp>()) {
    auto unit = SymbolTable::lookupNearestSymbolFrom<UnitOp>(module, state.getUnitAttr());
    int64_t width = getWidth(state), all = 0, trained = 0;
    int64_t slices = 0; // elements in the unit of one rank of the axis `tensor`
    for (auto param : unit.getParams().getAsRange<ParamAttr>()) {
      int64_t whole = ShapedType::getNumElements(getWholeShape(unit, param));
      slices += param.getType().getNumElements();
      all += whole;
      trained += param.getTrainable() ? whole : 0;
    }
    bool isParameter = state.getRole() == StateRole::parameter;
    (isParameter ? report.unshardedParameters : report.unshardedOptimizer) +=
        (isParameter ? all : trained) * width;
    if (!isParameter)
      continue;
    // Without the flat buffer of gradients in a reduction, gradients are those of parameters.
    auto flat = flatBytes.find(("gradients of " + unit.getSymName()).str());
    int64_t sums = sumWidths[state.getUnitAttr()];
    int64_t gradient = flat == flatBytes.end() ? sums : flat->second / unit.getFlatSize();
    report.unshardedGradients += trained * (gradient + (hasSums ? sums : 0));
    int64_t copies = slices ? all / slices : 1; // ranks of the axis with slices of their own
    report.padding += (unit.getFlatSize() - slices) * width * copies;
  }
}

MemoryReport fsdp::measureMemory(ModuleOp module) {
  MemoryReport report;
  LayoutOp layout = getStep(module).first;
  if (!layout)
    return report;
  int64_t always = layout.getWorkspaceBytes();
  SmallVector<BufferOp> persistent, device, host;
  llvm::MapVector<StringAttr, ProgramBuffers> programs;
  for (auto buffer : layout.getOps<BufferOp>()) {
    if (getMemory(buffer) == Memory::host)
      host.push_back(buffer);
    if (getMemory(buffer) != Memory::device)
      continue;
    device.push_back(buffer);
    if (buffer.isPersistent()) {
      persistent.push_back(buffer);
      always += getAlignedBytes(buffer);
      continue;
    }
    programs[buffer.getProgramAttr().getAttr()].add(buffer);
  }
  addMost(device, report.bytes);
  addMost(host, report.hostBytes);
  report.bytes[static_cast<unsigned>(Category::workspace)] += layout.getWorkspaceBytes();
  for (auto &[name, own] : programs)
    addPeak(report, module, name, own, always, persistent);
  for (BufferOp buffer : report.peakBuffers)
    report.atPeak[static_cast<unsigned>(buffer.getCategory())] += getAlignedBytes(buffer);
  report.atPeak[static_cast<unsigned>(Category::workspace)] += layout.getWorkspaceBytes();
  for (auto program : module.getOps<ProgramOp>())
    if (program.getSymName() == "reference")
      report.unshardedPeak =
          SymbolTable::lookupNearestSymbolFrom<LayoutOp>(program, program.getLayoutAttr())
              .getArenaBytes();
  report.peak = layout.getArenaBytes();
  report.host = layout.getHostBytes();
  report.file = getFileBytes(layout);
  report.lowerBound = layout.getLowerBound() + layout.getWorkspaceBytes();
  addUnits(report, module, layout);
  return report;
}

SmallVector<CommunicationReport> fsdp::measureCommunication(ModuleOp module) {
  SmallVector<CommunicationReport> rows;
  auto [layout, step] = getStep(module);
  if (!step || !step.getMeshAttr())
    return rows;
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(step, step.getMeshAttr());
  SymbolTable buffers(layout);
  for (const NumberedCommand &command : numberCommands(step)) {
    auto op = dyn_cast<CollectiveOp>(command.op);
    if (!op)
      continue;
    int64_t ranks = 1;
    SmallVector<StringRef> axes;
    for (auto axis : op.getAxes().getAsRange<StringAttr>()) {
      axes.push_back(axis.getValue());
      ranks *= mesh.getAxisSize(axis.getValue());
    }
    Category category =
        buffers.lookup<BufferOp>(op.getTarget().getBuffer().getValue()).getCategory();
    CommunicationReport fresh{op.getKind(), llvm::join(axes, " x "), op.getDtype(),
                              category == Category::control};
    auto row = llvm::find_if(rows, [&](const CommunicationReport &r) {
      return r.kind == fresh.kind && r.axis == fresh.axis && r.dtype == fresh.dtype &&
             r.control == fresh.control;
    });
    if (row == rows.end()) {
      rows.push_back(fresh);
      row = &rows.back();
    }
    int64_t payload = std::max(op.getSource().getBytes(), op.getTarget().getBytes());
    int64_t sent = payload / ranks * (ranks - 1) + payload % ranks * (ranks - 1) / ranks;
    if (op.getKind() == CollectiveKind::shift && ranks > 1)
      sent = payload;
    row->bytes += payload * command.turns;
    row->wireBytes += sent * command.turns * (op.getKind() == CollectiveKind::all_reduce ? 2 : 1);
    row->count += command.turns;
  }
  return rows;
}
