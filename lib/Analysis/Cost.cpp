//===- Cost.cpp - Estimated time of commands --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Cost.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/MultiplyAdds.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/IR/TensorSplit.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::fsdp;
using fsdpcommon::RankSpan;

FailureOr<Cluster> fsdp::loadCluster(MLIRContext *context, StringRef path) {
  if (path.empty())
    return getCpuCluster();
  if (path == gpuClusterName)
    return getGpuCluster();
  JsonProblem problem;
  if (std::optional<Cluster> cluster = readCluster(path.str(), problem))
    return *cluster;
  Location loc = problem.line
                     ? Location(FileLineColLoc::get(context, path, problem.line, problem.column))
                     : UnknownLoc::get(context);
  InFlightDiagnostic diag = emitError(loc)
                            << (problem.line ? "" : "'" + path.str() + "': ") << problem.message;
  if (!problem.line)
    diag.attachNote() << "expected a cluster file as in examples/clusters, or the preset "
                      << gpuClusterName;
  return failure();
}

const fsdpcommon::KernelTime &CostModel::getKernelTime(func::FuncOp kernel) {
  auto [entry, isFresh] = kernels.try_emplace(kernel.getSymNameAttr());
  if (!isFresh)
    return entry->second;
  MultiplyAdds work = countMultiplyAdds(kernel);
  return entry->second = timeByRates(cluster, "", work.wide, work.bf16, countMovedBytes(kernel));
}

const fsdpcommon::KernelTime &CostModel::getKernelTime(LaunchOp launch) {
  return getKernelTime(
      tables.lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr()));
}

RankSpan CostModel::getGroup(CollectiveOp collective) {
  auto program = collective->getParentOfType<ProgramOp>();
  auto mesh = program.getMeshAttr()
                  ? tables.lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr())
                  : MeshOp();
  if (!mesh)
    return {};
  // The number of a rank is its row-major index in the mesh, so the stride of an axis is the
  // product of the sizes of all later axes.
  RankSpan group{1, std::numeric_limits<int64_t>::max(), 0};
  for (StringRef name : collective.getAxes().getAsValueRange<StringAttr>()) {
    auto ranks = static_cast<uint64_t>(mesh.getAxisSize(name));
    uint64_t behind = 1;
    StringRef base = name == contextAxis ? "shard" : name.split(':').first;
    for (auto axis : llvm::reverse(mesh.getAxes().getAsRange<AxisAttr>())) {
      if (axis.getName() == base)
        break;
      behind *= axis.getSize();
    }
    group.ranks *= ranks;
    group.stride = std::min(group.stride, behind);
    group.span += (ranks - 1) * behind;
  }
  group.span += group.stride;
  return group;
}

std::string fsdp::formatMesh(ArrayRef<std::pair<StringRef, int64_t>> axes) {
  std::string text;
  for (auto [name, ranks] : axes)
    if (ranks > 1)
      text += (text.empty() ? "" : ",") + name.str() + "=" + std::to_string(ranks);
  return text.empty() ? "shard=1" : text;
}

/// Returns the value of --mesh for `mesh`.
static std::string getText(MeshOp mesh) {
  SmallVector<std::pair<StringRef, int64_t>> axes;
  std::optional<int64_t> context = mesh.getContextSize();
  for (auto axis : mesh.getAxes().getAsRange<AxisAttr>()) {
    bool isSplit = context && axis.getName() == "shard";
    axes.push_back({axis.getName(), isSplit ? axis.getSize() / *context : axis.getSize()});
    if (isSplit)
      axes.push_back({contextAxis, *context});
  }
  return formatMesh(axes);
}

std::optional<std::string> fsdp::whyUnfit(ModuleOp module, MeshOp mesh, const Cluster &cluster) {
  std::string text = getText(mesh);
  auto ranks = static_cast<uint64_t>(mesh.getNumRanks());
  std::optional<std::string> reason = fsdpcommon::whyTooFewRanks(cluster, text, ranks);
  CostModel costs(cluster);
  module.walk([&](CollectiveOp op) {
    if (!reason)
      reason = fsdpcommon::whyNotAlike(cluster, text, ranks, costs.getGroup(op));
  });
  return reason;
}

bool CostModel::isCopied(CollectiveOp collective, const RankSpan &group) const {
  return copies && collective.getKind() == CollectiveKind::all_gather &&
         cluster.canCopy(group.ranks, group.stride);
}

uint64_t CostModel::getMultiprocessors(CollectiveOp collective) {
  RankSpan group = getGroup(collective);
  return isCopied(collective, group) ? 0
                                     : getRingMultiprocessors(cluster, group.ranks, group.stride);
}

double CostModel::getCollectiveSeconds(CollectiveOp collective, double bytes) {
  RankSpan group = getGroup(collective);
  if (isCopied(collective, group))
    return getCopySeconds(cluster, bytes, group.ranks);
  if (collective.getKind() == CollectiveKind::shift)
    return getShiftSeconds(cluster, bytes, group.ranks, group.stride);
  unsigned rounds = collective.getKind() == CollectiveKind::all_reduce ? 2 : 1;
  return getRingSeconds(cluster, bytes, group.ranks, group.stride, rounds);
}

double CostModel::getLatency(CollectiveOp collective) {
  return getCollectiveSeconds(collective, 0);
}

/// Returns the bandwidth between the memories of a copy, or 0 for a copy within one memory.
double CostModel::getCopyBandwidth(CopyOp copy) {
  auto program = copy->getParentOfType<ProgramOp>();
  auto layout = tables.lookupNearestSymbolFrom<LayoutOp>(program, program.getLayoutAttr());
  Memory from = getMemory(tables.lookupSymbolIn<BufferOp>(layout, copy.getSource().getBuffer()));
  Memory to = getMemory(tables.lookupSymbolIn<BufferOp>(layout, copy.getTarget().getBuffer()));
  if (from == Memory::file || to == Memory::file)
    return cluster.fileBytesPerSecond;
  return from == to ? 0 : cluster.hostBytesPerSecond;
}

double CostModel::getSeconds(Operation *command) {
  if (auto loop = dyn_cast<LoopOp>(command)) {
    double once = 0;
    for (Operation &inner : loop.getBody().front())
      once += getSeconds(&inner);
    return once * static_cast<double>(loop.getCount());
  }
  if (auto launch = dyn_cast<LaunchOp>(command))
    return getKernelSeconds(
        tables.lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr()));
  if (auto collective = dyn_cast<CollectiveOp>(command))
    return getCollectiveSeconds(
        collective, std::max(collective.getSource().getBytes(), collective.getTarget().getBytes()));
  if (auto copy = dyn_cast<CopyOp>(command))
    if (double bandwidth = getCopyBandwidth(copy); bandwidth > 0)
      return static_cast<double>(copy.getSource().getBytes()) / bandwidth;
  double bytes = 0;
  // The time of any other command, such as a fill or a copy within one memory, is the time of its
  // memory traffic.
  for (const Access &access : getAccesses(command, tables))
    bytes += static_cast<double>(access.slice.getBytes());
  return bytes / cluster.memoryBytesPerSecond;
}
