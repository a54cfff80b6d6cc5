//===- Simulation.cpp - Simulates a step on a cluster -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Check that the links join all ranks, and that all groups of a collective use them alike
//     (ClusterFit.h).
//  2. Advance the time of the rank by the duration of each launch, of each fill, and of each copy
//     on channel 0. If the cluster has the artifact's chip, the duration of a launch follows from
//     the clocks of its cost, else from rates (KernelTime.h). Collectives that run at the same time
//     occupy multiprocessors.
//  3. Start each collective on its channel. The command that waits for a collective advances the
//     time of the rank to the end of the collective. A collective on channel 0 needs no wait: the
//     command that starts the collective advances the time to its end.
//  4. Run copies on channels other than 0 at the same time as launches. Such a copy waits in one of
//     two queues: one for copies between device memory and host memory, and one for copies from and
//     to the file.
//  5. Add the duration of each wait to the exposed time of the awaited collective. Collectives with
//     equal kind and unit share one sum, and so do those of activations over one axis.
//
// The simulation takes O(commands + chunks) time for any number of ranks.
//
//===----------------------------------------------------------------------===//

#include "simulate/Simulation.h"
#include "artifact/Arenas.h"
#include "artifact/Launches.h"
#include "core/Error.h"
#include "execute/Instruction.h"
#include "fsdpcommon/ClusterFit.h"
#include "simulate/Links.h"
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

using namespace fsdprt;
using fsdpcommon::KernelTime;
using ull = unsigned long long;

static const char *orEmpty(const flatbuffers::String *text) { return text ? text->c_str() : ""; }
/// Converts seconds to nanoseconds. The result is at most 9e18 (285 years).
static uint64_t nanoseconds(double seconds) {
  return static_cast<uint64_t>(std::llround(std::min(seconds * 1e9, 9e18)));
}

namespace {

class Simulator {
public:
  Simulator(const Artifact &artifact, const Cluster &cluster, bool copies)
      : artifact(artifact), manifest(artifact.manifest()), cluster(cluster),
        links(cluster.links.size()) {
    result.copies = copies;
  }

  Simulation run();

private:
  bool hasClocks() const;
  /// A collective between its start and its wait.
  struct Started {
    const fb::Collective *collective;
    const char *label;
    size_t flight;
    uint64_t launches;
  };
  /// A copy on a channel between its start and its wait.
  struct Copied {
    const char *label;
    double begin, end;
    uint64_t bytes, launches;
  };
  using Commands = flatbuffers::Vector<flatbuffers::Offset<fb::Command>>;

  void refuse(const std::optional<std::string> &reason) const;
  CollectiveGroup groupOf(const fb::Collective &collective);
  void walk(const Commands &commands);
  void runLaunch(const fb::Launch &launch, const char *label);
  void runMemory(const char *name, uint64_t bytes, const char *label);
  void launch(const KernelTime &time);
  void compute(const std::vector<KernelTime> &times, const char *name, const char *kind,
               const char *label, uint64_t bytes);
  void start(const fb::Collective &collective, const char *label, bool joins);
  void finish(const Started &started);
  void runCopy(const fb::Copy &copy, const char *label);
  void finish(const Copied &copied);
  void addWait(fsdprt_trace_event event, double before, uint64_t launchesBefore);
  std::string nameOf(const fb::Collective &collective) const;
  SimulatedCollective &rowOf(const fb::Collective &collective);

  const Artifact &artifact;
  const fb::Manifest &manifest;
  const Cluster &cluster;
  Links links;
  Simulation result;
  double now = 0;
  uint64_t launches = 0;
  std::map<uint32_t, Started> started; // collectives by id
  std::map<uint32_t, Copied> copied;   // copies by id

  // The time in seconds at which the last copy between the arenas ends, and the time at which the
  // last copy from or to the file ends.
  double copierFree[2] = {0, 0};
  std::optional<size_t> copyRow;
  std::map<std::vector<uint32_t>, CollectiveGroup> groups;
  std::map<std::pair<fb::CollectiveKind, std::string>, size_t> rows;
  std::map<uint32_t, size_t> kernelRows; // rows of kernels by their index
};

} // namespace

/// Throws Error with `reason`, if there is one.
void Simulator::refuse(const std::optional<std::string> &reason) const {
  if (reason)
    badInput("%s: %s", cluster.file.c_str(), reason->c_str());
}

/// Returns the group of a collective. Throws Error unless all groups use the links alike.
CollectiveGroup Simulator::groupOf(const fb::Collective &collective) {
  std::vector<uint32_t> axes;
  if (collective.axes())
    axes.assign(collective.axes()->begin(), collective.axes()->end());
  auto [entry, isNew] = groups.emplace(axes, CollectiveGroup());
  if (!isNew)
    return entry->second;
  const Mesh &mesh = artifact.getMesh();
  std::vector<uint32_t> members = mesh.group(0, axes);
  CollectiveGroup group{members.size(), members.size() > 1 ? members[1] - members[0] : 1};
  uint64_t span = members.back() - members.front() + group.stride;
  refuse(fsdpcommon::whyNotAlike(cluster, mesh.text(), mesh.ranks(),
                                 {group.ranks, group.stride, span}));
  return entry->second = group;
}

/// Advances the time by a launch. While collectives occupy multiprocessors, the launch has fewer.
void Simulator::launch(const KernelTime &time) {
  double all = static_cast<double>(cluster.multiprocessors), left = 1;
  while (left > 0) {
    double until = 0, whole = time.seconds;
    if (cluster.multiprocessors) {
      auto taken = static_cast<double>(links.occupied(now, now, until));
      whole = time.secondsOn(std::max(1 - taken / all, 1 / all));
      links.occupied(now, now + left * whole, until);
    }
    double end = now + left * whole;
    if (cluster.multiprocessors && until < end) {
      left -= (until - now) / whole;
      now = until;
      continue;
    }
    now = end;
    left = 0;
  }
}

/// Runs launches one after another.
void Simulator::compute(const std::vector<KernelTime> &times, const char *name, const char *kind,
                        const char *label, uint64_t bytes) {
  fsdprt_trace_event event = {};
  event.struct_size = sizeof event;
  event.lane = FSDPRT_LANE_COMPUTE;
  event.run = 1;
  event.name = name;
  event.kind = kind;
  event.label = label;
  event.unit = "";
  event.bytes = bytes;
  event.begin = nanoseconds(now);
  double begin = now;
  for (const KernelTime &time : times) {
    double before = now;
    launch(time);
    result.slowed += now - before - time.seconds;
  }
  event.end = nanoseconds(now);
  result.compute += now - begin;
  result.events.push_back(event);
}

/// Returns true if the times of kernels follow from their clocks: the cluster has the chip that the
/// artifact was compiled for, and all launches have costs.
bool Simulator::hasClocks() const {
  const fb::Gpu *gpu = artifact.gpu();
  if (cluster.chip.empty() || !gpu || orEmpty(gpu->chip()) != cluster.chip || !manifest.kernels())
    return false;
  for (const fb::Kernel *kernel : *manifest.kernels())
    for (const fb::Phase *phase : *kernel->phases())
      if (!phase->cost())
        return false;
  return true;
}

static KernelTime timeOfPhase(const Cluster &cluster, const fb::Phase &phase) {
  const fb::Cost &cost = *phase.cost();
  return timeByClocks(cluster, {cost.clocks(), cost.tensor(), cost.issue(), cost.special(),
                                cost.shared(), cost.cache(), cost.bytes(), cost.balance()});
}

void Simulator::runLaunch(const fb::Launch &launch, const char *label) {
  const fb::Kernel &kernel = *manifest.kernels()->Get(launch.kernel());
  uint64_t bytes = bytesOf(manifest, launch);
  std::vector<KernelTime> times;
  if (result.model == KernelModel::clocks)
    for (const fb::Phase *phase : *kernel.phases())
      times.push_back(timeOfPhase(cluster, *phase));
  else
    times.push_back(timeByRates(cluster, orEmpty(kernel.kind()), kernel.multiply_adds(),
                                kernel.bf16_multiply_adds(), bytes));
  ++launches;
  auto [entry, isNew] = kernelRows.emplace(launch.kernel(), result.kernels.size());
  if (isNew)
    result.kernels.push_back({orEmpty(kernel.kind()), orEmpty(kernel.name()), label});
  SimulatedKernel &row = result.kernels[entry->second];
  ++row.runs;
  row.launches += times.size();
  double seconds = 0, longest = 0;
  for (const KernelTime &time : times) {
    seconds += time.seconds;
    row.tensor += time.tensorSeconds;
    row.memory += time.memorySeconds;
    result.bounds[static_cast<size_t>(time.bound)] += time.seconds;
    if (time.seconds > longest) {
      longest = time.seconds;
      row.bound = time.bound;
    }
  }
  row.seconds += seconds;
  compute(times, orEmpty(kernel.name()), orEmpty(kernel.kind()), label, bytes);
}

void Simulator::runMemory(const char *name, uint64_t bytes, const char *label) {
  compute({timeByRates(cluster, "memory", 0, 0, bytes)}, name, "memory", label, bytes);
}

/// Returns the unit of a collective, "over context" or "over tensor" for activations, or an empty
/// text.
std::string Simulator::nameOf(const fb::Collective &collective) const {
  if (collective.unit() >= 0)
    return orEmpty(manifest.units()->Get(static_cast<uint32_t>(collective.unit()))->name());
  if (!collective.axes() || collective.axes()->size() != 1)
    return "";
  const Mesh &mesh = artifact.getMesh();
  size_t axis = collective.axes()->Get(0), axes = mesh.getAxes().size();
  if (axis < axes)
    return mesh.getAxes()[axis].name == "tensor" ? "over tensor" : "";
  return mesh.getNeighbours()[axis - axes].size == mesh.getContext() ? "over context" : "";
}

SimulatedCollective &Simulator::rowOf(const fb::Collective &collective) {
  std::string name = nameOf(collective);
  auto [entry, isNew] = rows.emplace(std::pair(collective.kind(), name), result.collectives.size());
  if (isNew) {
    SimulatedCollective row;
    row.kind = fb::EnumNameCollectiveKind(collective.kind());
    row.unit = name;
    result.collectives.push_back(row);
  }
  return result.collectives[entry->second];
}

/// Starts a collective. If `joins` is true, the launch of the preceding collective also starts this
/// collective, so no time is added for a launch.
void Simulator::start(const fb::Collective &collective, const char *label, bool joins) {
  uint64_t bytes = std::max(collective.source()->bytes(), collective.target()->bytes());
  Transfer transfer = planTransfer(cluster, collective.kind(), static_cast<double>(bytes),
                                   groupOf(collective), result.copies);
  if (joins)
    transfer.headSeconds = 0;
  SimulatedCollective &row = rowOf(collective);
  ++row.runs;
  row.bytes += bytes;
  row.alone += transfer.aloneSeconds();
  row.protocol = transfer.protocol;
  Started one{&collective, label, 0, launches};
  one.flight = links.start(transfer, collective.channel(), now,
                           transfer.chunks && !joins ? cluster.collectiveSeconds : 0);
  if (collective.channel() == 0)
    finish(one);
  else
    started[collective.id()] = one;
}

void Simulator::finish(const Started &one) {
  const fb::Collective &collective = *one.collective;
  double before = now;
  now = std::max(now, links.finish(one.flight));
  const Links::Flight &flight = links.flight(one.flight);
  SimulatedCollective &row = rowOf(collective);
  row.inFlight += flight.end - flight.begin;
  row.exposed += now - before;
  result.exposed += now - before;
  bool reduces = collective.kind() == fb::CollectiveKind::reduce_scatter ||
                 collective.kind() == fb::CollectiveKind::all_reduce;
  fsdprt_trace_event event = {};
  event.struct_size = sizeof event;
  event.lane = reduces ? FSDPRT_LANE_REDUCE : FSDPRT_LANE_GATHER;
  event.run = 1;
  event.name = fb::EnumNameCollectiveKind(collective.kind());
  event.kind = "collective";
  event.label = one.label;
  event.unit =
      collective.unit() >= 0
          ? orEmpty(manifest.units()->Get(static_cast<uint32_t>(collective.unit()))->name())
          : "";
  event.bytes = collective.source()->bytes() + collective.target()->bytes();
  event.begin = nanoseconds(flight.begin);
  event.end = nanoseconds(flight.end);
  addWait(event, before, one.launches);
}

/// Appends `event`, which describes a transfer, to the lane of the transfer. `launchesBefore` is
/// the number of launches before the transfer started. Then appends the event of the wait to the
/// compute lane. The wait lasts from `before` until the current time of the rank.
void Simulator::addWait(fsdprt_trace_event event, double before, uint64_t launchesBefore) {
  event.waited = std::min(nanoseconds(now) - nanoseconds(before), event.end - event.begin);
  event.ahead = static_cast<uint32_t>(launches - launchesBefore);
  result.events.push_back(event);
  event.lane = FSDPRT_LANE_COMPUTE;
  event.begin = nanoseconds(before);
  event.end = nanoseconds(now);
  event.bytes = 0;
  event.ahead = 0;
  result.events.push_back(event);
}

void Simulator::runCopy(const fb::Copy &copy, const char *label) {
  const fb::Layout &layout = *manifest.layouts()->Get(artifact.program("step")->layout());
  uint64_t bytes = copy.source()->bytes();
  uint64_t from = copy.source()->offset(), to = copy.target()->offset();
  bool isFile = isInFile(layout, from) || isInFile(layout, to),
       crosses = isOnHost(layout, from) != isOnHost(layout, to);
  double bandwidth = isFile ? cluster.fileBytesPerSecond : crosses ? cluster.hostBytesPerSecond : 0;
  double seconds = bandwidth > 0 ? cluster.launchSeconds + static_cast<double>(bytes) / bandwidth
                                 : timeByRates(cluster, "memory", 0, 0, 2 * bytes).seconds;
  if (copy.channel() == 0)
    return compute({{seconds, 0, seconds}}, "copy", "memory", label, 2 * bytes);
  double &free = copierFree[isFile], begin = std::max(now, free);
  free = begin + seconds;
  copied[copy.id()] = {label, begin, free, bytes, launches};
}

void Simulator::finish(const Copied &one) {
  double before = now;
  now = std::max(now, one.end);
  if (!copyRow) {
    copyRow = result.collectives.size();
    result.collectives.emplace_back();
    result.collectives.back().kind = "host copy";
  }
  SimulatedCollective &row = result.collectives[*copyRow];
  ++row.runs;
  row.bytes += one.bytes;
  row.alone += one.end - one.begin;
  row.inFlight += one.end - one.begin;
  row.exposed += now - before;
  result.exposed += now - before;
  fsdprt_trace_event event = {};
  event.struct_size = sizeof event;
  event.lane = FSDPRT_LANE_COPY;
  event.run = 1;
  event.name = "copy";
  event.kind = "host copy";
  event.label = one.label;
  event.unit = "";
  event.bytes = 2 * one.bytes;
  event.begin = nanoseconds(one.begin);
  event.end = nanoseconds(one.end);
  addWait(event, before, one.launches);
}

void Simulator::walk(const Commands &commands) {
  const fb::Command *before = nullptr;
  for (const fb::Command *command : commands) {
    const fb::Command *previous = std::exchange(before, command);
    const char *label = orEmpty(command->label());
    switch (command->body_type()) {
    case fb::Body::Launch:
      runLaunch(*command->body_as_Launch(), label);
      break;
    case fb::Body::Collective:
      start(*command->body_as_Collective(), label, previous && areOneLaunch(*previous, *command));
      break;
    case fb::Body::Wait: {
      if (auto copy = copied.find(command->body_as_Wait()->id()); copy != copied.end()) {
        finish(copy->second);
        copied.erase(copy);
        break;
      }
      auto one = started.find(command->body_as_Wait()->id());
      finish(one->second);
      started.erase(one);
      break;
    }
    case fb::Body::Copy:
      runCopy(*command->body_as_Copy(), label);
      break;
    case fb::Body::Fill:
      runMemory("fill", command->body_as_Fill()->target()->bytes(), label);
      break;
    case fb::Body::Loop:
      for (uint32_t i = 0; i < command->body_as_Loop()->count(); ++i)
        if (command->body_as_Loop()->body())
          walk(*command->body_as_Loop()->body());
      break;
    // The only other command is `initialise`, and a step contains no such command.
    default:
      break;
    }
  }
}

Simulation Simulator::run() {
  const fb::Program *program = artifact.program("step");
  if (!program)
    badInput("%s: expected a program 'step' to simulate, found none", artifact.getFile().c_str());
  const Mesh &mesh = artifact.getMesh();
  refuse(fsdpcommon::whyTooFewRanks(cluster, mesh.text(), mesh.ranks()));
  result.model = hasClocks() ? KernelModel::clocks : KernelModel::rates;
  if (program->commands())
    walk(*program->commands());
  result.seconds = now;
  result.ranks = mesh.ranks();
  result.tokens = manifest.tokens_per_rank() * mesh.dataRanks();
  result.arenaBytes = manifest.layouts()->Get(program->layout())->arena_bytes();
  result.chunks = links.chunksMoved();
  for (size_t level = 0; level < cluster.links.size(); ++level)
    result.busy.push_back(links.busySeconds(level));
  std::stable_sort(result.collectives.begin(), result.collectives.end(),
                   [](const auto &a, const auto &b) { return a.exposed > b.exposed; });
  std::stable_sort(result.kernels.begin(), result.kernels.end(),
                   [](const auto &a, const auto &b) { return a.seconds > b.seconds; });
  return std::move(result);
}

Simulation fsdprt::simulate(const Artifact &artifact, const Cluster &cluster) {
  Simulation best = Simulator(artifact, cluster, /*copies=*/false).run();
  if (!cluster.hasCopyEngines())
    return best;
  Simulation other = Simulator(artifact, cluster, /*copies=*/true).run();
  if (other.seconds < best.seconds)
    std::swap(best, other);
  best.otherSeconds = other.seconds;
  return best;
}
