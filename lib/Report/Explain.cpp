//===- Explain.cpp - Explain a plan in text or JSON -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Report/Explain.h"
#include "ExplainUnits.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/Schedule.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Largest number of buffers that the report lists as alive at the peak.
static constexpr unsigned maxBuffers = 10;

/// Categories of buffers, in the order of the rows of the table.
static constexpr Category categories[] = {
    Category::parameters,  Category::gradients, Category::optimizer,
    Category::activations, Category::gathered,  Category::staging,
    Category::workspace,   Category::inputs,    Category::control};
/// Category of buffers that exist only on the host.
static constexpr Category hostCategory = Category::snapshot;

std::string fsdp::printType(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static int64_t countCommands(ProgramOp program, StringRef op) {
  int64_t number = 0;
  for (const NumberedCommand &command : numberCommands(program))
    number += command.op->getName().getStringRef() == op ? command.turns : 0;
  return number;
}

static MeshOp getMesh(ModuleOp module) {
  for (auto program : module.getOps<ProgramOp>())
    if (program.getSymName() == "step" && program.getMeshAttr())
      return SymbolTable::lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr());
  return {};
}

static void writeMemory(const MemoryReport &memory, llvm::json::OStream &json) {
  json.attributeObject("memory", [&] {
    for (Category category : categories)
      json.attribute(stringifyCategory(category), memory[category]);
    json.attribute("peak", memory.peak);
    json.attribute("lower_bound", memory.lowerBound);
    json.attribute("host", memory.host);
    if (memory.host)
      json.attributeObject("on_host", [&] {
        for (Category category : categories)
          json.attribute(stringifyCategory(category),
                         memory.hostBytes[static_cast<unsigned>(category)]);
        json.attribute(stringifyCategory(hostCategory),
                       memory.hostBytes[static_cast<unsigned>(hostCategory)]);
      });
    json.attribute("file", memory.file);
    json.attribute("padding", memory.padding);
    json.attribute("owned", memory[Category::parameters] + memory[Category::gradients] +
                                memory[Category::optimizer]);
  });
  json.attributeObject("unsharded", [&] {
    json.attribute("parameters", memory.unshardedParameters);
    json.attribute("gradients", memory.unshardedGradients);
    json.attribute("optimizer", memory.unshardedOptimizer);
    json.attribute("owned", memory.getUnshardedOwned());
    json.attribute("peak", memory.unshardedPeak);
  });
  if (!memory.peakCommand)
    return;
  json.attributeObject("moment_of_peak", [&] {
    json.attribute("program", memory.peakCommand->getParentOfType<ProgramOp>().getSymName());
    json.attribute("command", memory.peakNumber);
    json.attribute("label", describeCommand(memory.peakCommand));
    json.attribute("bytes", memory.peakBytes);
    json.attribute("owned", memory.getOwnedAtPeak());
    for (Category category : categories)
      json.attribute(stringifyCategory(category), memory.getAtPeak(category));
    json.attributeArray("buffers", [&] {
      for (BufferOp buffer : ArrayRef(memory.peakBuffers).take_front(maxBuffers))
        json.object([&] {
          json.attribute("name", buffer.getLabel());
          json.attribute("category", stringifyCategory(buffer.getCategory()));
          json.attribute("bytes", static_cast<int64_t>(buffer.getBytes()));
        });
    });
  });
}

static void writeCommunication(ArrayRef<CommunicationReport> rows, llvm::json::OStream &json) {
  json.attributeArray("communication", [&] {
    for (const CommunicationReport &row : rows)
      json.object([&] {
        json.attribute("kind", stringifyCollectiveKind(row.kind));
        json.attribute("axis", row.axis);
        json.attribute("dtype", printType(row.dtype));
        json.attribute("bytes", row.bytes);
        json.attribute("wire_bytes", row.wireBytes);
        json.attribute("count", row.count);
        json.attribute("control", row.control);
      });
  });
}

static void writePrograms(ModuleOp module, llvm::json::OStream &json) {
  json.attributeArray("programs", [&] {
    for (auto program : module.getOps<ProgramOp>())
      json.object([&] {
        json.attribute("name", program.getSymName());
        json.attribute("launches", countCommands(program, LaunchOp::getOperationName()));
        json.attribute("collectives", countCommands(program, CollectiveOp::getOperationName()));
        json.attribute("copies", countCommands(program, CopyOp::getOperationName()));
        json.attribute("fills", countCommands(program, FillOp::getOperationName()));
      });
  });
  json.attributeArray("arenas", [&] {
    for (auto layout : module.getOps<LayoutOp>())
      json.object([&] {
        json.attribute("name", layout.getSymName());
        json.attribute("bytes", static_cast<int64_t>(layout.getArenaBytes()));
        json.attribute("lower_bound",
                       static_cast<int64_t>(layout.getLowerBound()) + layout.getWorkspaceBytes());
      });
  });
}

static void writeChoices(ArrayRef<ChoiceReport> choices, llvm::json::OStream &json) {
  json.attributeArray("accumulation", [&] {
    for (const ChoiceReport &choice : choices)
      json.object([&] {
        json.attribute("option", choice.option);
        json.attribute("taken", choice.isTaken);
        json.attribute("peak", choice.arenaBytes);
        json.attribute("gathered_bytes", choice.gatheredBytes);
        json.attribute("reduced_bytes", choice.reducedBytes);
      });
  });
}

void fsdp::writeExplanation(ModuleOp module, llvm::json::OStream &json,
                            ArrayRef<ChoiceReport> accumulation, ArrayRef<DtypeRow> dtypes,
                            const KernelReport &kernels) {
  if (MeshOp mesh = getMesh(module))
    json.attributeObject("mesh", [&] {
      for (auto axis : mesh.getAxes().getAsRange<AxisAttr>())
        json.attribute(axis.getName(), axis.getSize());
    });
  writeParameters(module, json);
  writeMemory(measureMemory(module), json);
  writeUnits(measureUnits(module), json);
  writeCommunication(measureCommunication(module), json);
  writeSchedule(measureSchedule(module), json);
  if (!accumulation.empty())
    writeChoices(accumulation, json);
  if (!dtypes.empty())
    writeDtypes(dtypes, json);
  if (!kernels.chip.empty())
    writeKernels(kernels, json);
  writePrograms(module, json);
}

static void explainJson(ModuleOp module, raw_ostream &os, ArrayRef<ChoiceReport> accumulation,
                        ArrayRef<DtypeRow> dtypes, const KernelReport &kernels) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] { writeExplanation(module, json, accumulation, dtypes, kernels); });
  os << "\n";
}

/// Returns a text with the bytes of each category on the host, such as ": optimizer 1.2 MiB,
/// staging 32.0 KiB".
static std::string describeHost(const MemoryReport &memory) {
  std::string text;
  auto describe = [&](Category category) {
    if (int64_t bytes = memory.hostBytes[static_cast<unsigned>(category)])
      text += (text.empty() ? ": " : ", ") + stringifyCategory(category).str() + " " +
              formatSize(bytes);
  };
  llvm::for_each(categories, describe);
  describe(hostCategory);
  return text;
}

static void writeRow(raw_ostream &os, StringRef name, int64_t bytes, const Twine &remark = "") {
  os << "  " << llvm::left_justify(name, 14)
     << llvm::format("%16lld", static_cast<long long>(bytes))
     << llvm::right_justify(formatSize(bytes), 12);
  if (std::string text = remark.str(); !text.empty())
    os << "   " << text;
  os << "\n";
}

/// Writes a line on parameters, gradients and optimizer state together, and a line on the arena. A
/// line contains the size, the size without sharding, and the ratio of the two sizes.
static void writeReduction(const MemoryReport &memory, raw_ostream &os) {
  int64_t owned =
      memory[Category::parameters] + memory[Category::gradients] + memory[Category::optimizer];
  auto write = [&](StringRef name, int64_t here, int64_t alone) {
    if (here > 0 && alone > 0)
      os << "  " << llvm::left_justify(name, 14) << llvm::right_justify(formatSize(here), 16)
         << llvm::right_justify(formatSize(alone), 12)
         << " unsharded: " << llvm::format("1/%.2f", double(alone) / here) << "\n";
  };
  write("owned", owned, memory.getUnshardedOwned());
  write("arena", memory.peak, memory.unshardedPeak);
}

/// Writes the number of live bytes at the peak as a sum over groups of categories.
static void writeSum(const MemoryReport &memory, raw_ostream &os) {
  int64_t named = memory.getAtPeak(Category::activations) + memory.getAtPeak(Category::gathered) +
                  memory.getOwnedAtPeak();
  os << "  = activations " << formatSize(memory.getAtPeak(Category::activations)) << " + gathered "
     << formatSize(memory.getAtPeak(Category::gathered)) << " + owned "
     << formatSize(memory.getOwnedAtPeak()) << " + others " << formatSize(memory.peakBytes - named)
     << "\n";
}

static void writeMemory(const MemoryReport &memory, raw_ostream &os) {
  os << "Memory per rank, in bytes (the most of each at one moment)\n";
  for (Category category : categories) {
    std::string remark;
    if (category == Category::parameters)
      remark = "unsharded " + formatSize(memory.unshardedParameters);
    else if (category == Category::gradients)
      remark = "unsharded " + formatSize(memory.unshardedGradients);
    else if (category == Category::optimizer)
      remark = "unsharded " + formatSize(memory.unshardedOptimizer);
    writeRow(os, stringifyCategory(category), memory[category], remark);
  }
  double quality = memory.lowerBound ? 100.0 * memory.peak / memory.lowerBound : 100.0;
  std::string packed;
  llvm::raw_string_ostream(packed) << llvm::format("%.1f %% of the lower bound", quality);
  writeRow(os, "peak (arena)", memory.peak, packed);
  writeRow(os, "lower bound", memory.lowerBound, "most bytes alive at one moment");
  if (memory.host)
    writeRow(os, "on the host", memory.host, "in an arena of its own" + describeHost(memory));
  if (int64_t bytes = memory.hostBytes[static_cast<unsigned>(hostCategory)])
    writeRow(os, "for saves", bytes, "of it, for the copy of the state that --async-save writes");
  if (memory.file)
    writeRow(os, "in a file", memory.file, "of each rank");
  writeRow(os, "padding", memory.padding, "of parameters, over all ranks");
  writeReduction(memory, os);
  if (!memory.peakCommand)
    return;
  os << "\nMemory peaks at command " << memory.peakNumber << " of @"
     << memory.peakCommand->getParentOfType<ProgramOp>().getSymName() << " ("
     << describeCommand(memory.peakCommand) << "): " << formatSize(memory.peakBytes) << "\n";
  writeSum(memory, os);
  os << "  the largest buffers:\n";
  for (BufferOp buffer : ArrayRef(memory.peakBuffers).take_front(maxBuffers))
    writeRow(os, stringifyCategory(buffer.getCategory()), buffer.getBytes(), buffer.getLabel());
  if (memory.peakBuffers.size() > maxBuffers)
    os << "  and " << memory.peakBuffers.size() - maxBuffers << " smaller ones\n";
}

static void writeCommunication(ArrayRef<CommunicationReport> rows, raw_ostream &os) {
  os << "\nCommunication per rank and step\n";
  if (rows.empty())
    os << "  none\n";
  for (const CommunicationReport &row : rows)
    os << "  " << llvm::left_justify(stringifyCollectiveKind(row.kind), 16)
       << llvm::left_justify((row.control ? "scalars over " : "over ") + row.axis, 33) << " "
       << llvm::left_justify(printType(row.dtype), 6)
       << llvm::right_justify(std::to_string(row.count), 6) << " x"
       << llvm::right_justify(formatSize(row.bytes), 12) << " payload"
       << llvm::right_justify(formatSize(row.wireBytes), 12) << " on the wire\n";
}

static void writeChoices(ArrayRef<ChoiceReport> choices, raw_ostream &os) {
  os << "\nAccumulation of gradients over micro-batches\n";
  for (const ChoiceReport &choice : choices)
    os << "  " << llvm::left_justify(choice.option, 20)
       << llvm::right_justify(formatSize(choice.arenaBytes), 12) << " arena"
       << llvm::right_justify(formatSize(choice.gatheredBytes), 12) << " gathered"
       << llvm::right_justify(formatSize(choice.reducedBytes), 12) << " reduced"
       << (choice.isTaken ? "   (this plan)" : "") << "\n";
}

static void explainText(ModuleOp module, raw_ostream &os, ArrayRef<ChoiceReport> accumulation,
                        ArrayRef<DtypeRow> dtypes, const KernelReport &kernels) {
  if (MeshOp mesh = getMesh(module)) {
    os << "Mesh";
    for (auto axis : mesh.getAxes().getAsRange<AxisAttr>())
      os << " " << axis.getName() << "=" << axis.getSize();
    if (std::optional<int64_t> context = mesh.getContextSize())
      os << " (shard includes context=" << *context << ")";
    os << ": " << mesh.getNumRanks() << (mesh.getNumRanks() == 1 ? " rank" : " ranks") << "\n";
  }
  writeParameters(module, os);
  writeMemory(measureMemory(module), os);
  writeCommunication(measureCommunication(module), os);
  writeSchedule(measureSchedule(module), os);
  if (!accumulation.empty())
    writeChoices(accumulation, os);
  writeUnits(measureUnits(module), os);
  if (!dtypes.empty())
    writeDtypes(dtypes, /*all=*/false, os);
  if (!kernels.chip.empty())
    writeKernels(kernels, os);
  os << "\nPrograms\n";
  for (auto program : module.getOps<ProgramOp>())
    os << "  " << llvm::left_justify(program.getSymName(), 16)
       << countCommands(program, LaunchOp::getOperationName()) << " launches, "
       << countCommands(program, CollectiveOp::getOperationName()) << " collectives, "
       << countCommands(program, CopyOp::getOperationName()) << " copies, "
       << countCommands(program, FillOp::getOperationName()) << " fills\n";
}

ChoiceReport fsdp::measureChoice(ModuleOp planned, StringRef option, bool isTaken) {
  ChoiceReport report{option.str(), isTaken, measureMemory(planned).peak};
  for (const CommunicationReport &row : measureCommunication(planned))
    if (!row.control)
      (row.kind == CollectiveKind::all_gather || row.kind == CollectiveKind::shift
           ? report.gatheredBytes
           : report.reducedBytes) += row.bytes;
  return report;
}

void fsdp::explain(ModuleOp module, raw_ostream &os, bool json, ArrayRef<ChoiceReport> accumulation,
                   ArrayRef<DtypeRow> dtypes, const KernelReport &kernels) {
  if (json)
    explainJson(module, os, accumulation, dtypes, kernels);
  else
    explainText(module, os, accumulation, dtypes, kernels);
}
