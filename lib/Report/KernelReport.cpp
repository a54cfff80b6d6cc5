//===- KernelReport.cpp - Predicted times of GPU kernels --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Report/KernelReport.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/MultiplyAdds.h"
#include "fsdp/Analysis/PlanMeasures.h"
#include "fsdpcommon/KernelTime.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::fsdp;
using fsdpcommon::KernelTime;

/// Measures one run of a kernel.
static KernelRow measureRun(func::FuncOp kernel, const KernelInfo &info, const GpuCode &code,
                            const Cluster *cluster) {
  KernelRow row;
  auto kind = kernel->getAttrOfType<StringAttr>(kindAttr);
  row.kind = kind ? kind.str() : "";
  row.name = kernel.getSymName().str();
  row.runs = 1;
  row.onceBytes = static_cast<double>(countMovedBytes(kernel));
  for (const PhaseInfo &phase : info.phases) {
    GpuCost cost = code.costs.lookup(phase.symbol);
    ++row.launches;
    row.bytes += cost.bytes;
    row.clocks += cost.clocks;
    if (!cluster)
      continue;
    const GpuClocks &units = cost.units;
    KernelTime time =
        fsdpcommon::timeByClocks(*cluster, {cost.clocks, units.tensor, units.issue, units.special,
                                            units.shared, units.cache, cost.bytes, cost.balance});
    row.seconds += time.seconds;
    if (time.seconds > row.longest) {
      row.longest = time.seconds;
      row.bound = fsdpcommon::nameOf(time.bound);
    }
  }
  return row;
}

/// Adds `turns` runs to a sum.
static void addRuns(KernelRow &sum, const KernelRow &one, int64_t turns) {
  auto times = static_cast<double>(turns);
  sum.runs += turns;
  sum.launches += one.launches * turns;
  sum.bytes += one.bytes * times;
  sum.onceBytes += one.onceBytes * times;
  sum.clocks += one.clocks * times;
  sum.seconds += one.seconds * times;
  if (one.longest > sum.longest) {
    sum.longest = one.longest;
    sum.bound = one.bound;
  }
}

KernelReport fsdp::measureKernels(ModuleOp planned, const CompiledKernels &kernels,
                                  const Cluster &cluster) {
  KernelReport report;
  auto step = planned.lookupSymbol<ProgramOp>("step");
  if (!kernels.gpu.isPresent() || !step)
    return report;
  bool isTimed = cluster.chip == kernels.gpu.chip;
  report.chip = kernels.gpu.chip;
  report.cluster = cluster.name;
  report.clocksPerSecond = isTimed ? cluster.clocksPerSecond : 0;
  llvm::StringMap<const KernelInfo *> infos;
  for (const KernelInfo &info : kernels.image.kernels)
    infos[info.name] = &info;
  llvm::StringMap<KernelRow> runs;
  llvm::MapVector<StringRef, KernelRow> byKernel;
  llvm::MapVector<StringRef, KernelRow> byKind;
  for (const NumberedCommand &command : numberCommands(step)) {
    auto launch = dyn_cast<LaunchOp>(command.op);
    if (!launch)
      continue;
    auto kernel = planned.lookupSymbol<func::FuncOp>(launch.getKernelAttr());
    const KernelInfo *info = kernel ? infos.lookup(kernel.getSymName()) : nullptr;
    if (!info)
      continue;
    auto [one, isNew] = runs.try_emplace(kernel.getSymName());
    if (isNew)
      one->second = measureRun(kernel, *info, kernels.gpu, isTimed ? &cluster : nullptr);
    KernelRow &own = byKernel[kernel.getSymName()], &kind = byKind[one->second.kind];
    if (own.runs == 0) {
      own.name = one->second.name;
      own.label = describeCommand(launch);
      own.kind = one->second.kind;
    }
    kind.kind = one->second.kind;
    for (KernelRow *sum : {&own, &kind, &report.all})
      addRuns(*sum, one->second, command.turns);
  }
  auto sorted = [](llvm::MapVector<StringRef, KernelRow> &rows) {
    SmallVector<KernelRow> list = llvm::map_to_vector(rows, [](auto &row) { return row.second; });
    llvm::stable_sort(list, [](const KernelRow &a, const KernelRow &b) {
      return std::pair(a.seconds, a.clocks) > std::pair(b.seconds, b.clocks);
    });
    return list;
  };
  report.kernels = sorted(byKernel);
  report.kinds = sorted(byKind);
  return report;
}

static void writeRow(const KernelRow &row, bool isTimed, llvm::json::OStream &json) {
  json.object([&] {
    json.attribute("kind", row.kind);
    if (!row.name.empty()) {
      json.attribute("name", row.name);
      json.attribute("label", row.label);
    }
    json.attribute("runs", row.runs);
    json.attribute("launches", row.launches);
    json.attribute("bytes", static_cast<int64_t>(row.bytes));
    json.attribute("once_bytes", static_cast<int64_t>(row.onceBytes));
    json.attribute("clocks", static_cast<int64_t>(row.clocks));
    if (isTimed) {
      json.attribute("seconds", row.seconds);
      json.attribute("bound", row.bound);
    }
  });
}

void fsdp::writeKernels(const KernelReport &report, llvm::json::OStream &json) {
  json.attributeObject("kernels", [&] {
    bool isTimed = report.clocksPerSecond > 0;
    json.attribute("chip", report.chip);
    if (isTimed) {
      json.attribute("cluster", report.cluster);
      json.attribute("clocks_per_second", report.clocksPerSecond);
    }
    for (auto [name, rows] : {std::pair("kinds", ArrayRef(report.kinds)),
                              std::pair("kernels", ArrayRef(report.kernels))})
      json.attributeArray(name, [&, rows = rows] {
        for (const KernelRow &row : rows)
          writeRow(row, isTimed, json);
      });
  });
}

void fsdp::writeKernels(const KernelReport &report, raw_ostream &os) {
  bool isTimed = report.clocksPerSecond > 0;
  os << "\nKernels of a step on " << report.chip << ", by kind";
  if (isTimed)
    os << llvm::format(" (times by their clocks at %.3f GHz, on ", report.clocksPerSecond / 1e9)
       << report.cluster << ")";
  os << "\n  kind           runs launches       moved        once   Mclocks"
     << (isTimed ? "          ms" : "") << "\n";
  auto write = [&](StringRef kind, const KernelRow &row) {
    os << "  " << llvm::left_justify(kind, 11)
       << llvm::format("%8lld%9lld", static_cast<long long>(row.runs),
                       static_cast<long long>(row.launches))
       << llvm::right_justify(formatSize(static_cast<int64_t>(row.bytes)), 12)
       << llvm::right_justify(formatSize(static_cast<int64_t>(row.onceBytes)), 12)
       << llvm::format("%10.2f", row.clocks / 1e6);
    if (isTimed)
      os << llvm::format("%12.3f", row.seconds * 1e3);
    os << "\n";
  };
  for (const KernelRow &row : report.kinds)
    write(row.kind, row);
  write("all", report.all);
}
