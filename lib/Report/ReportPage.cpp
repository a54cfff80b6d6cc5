//===- ReportPage.cpp - Report a plan as an HTML page -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The page (ReportPage.html) has one placeholder, which a JSON object with these members replaces:
//
//   title, mesh, cluster
//   memory, unsharded, moment_of_peak, units, communication, schedule, dtypes, kernels: like
//                --explain=json
//   commands     [number, lane, name, begin, end, iterations]   seconds; lane 0: compute,
//                lane 1: gathers, lane 2: reductions, lane 3: copies to the device, lane 4: copies
//                to the host, lane 5: copies from the rank's file, lane 6: copies to the file
//   buffers      [name, category, bytes, offset, first, last]   commands, both included; -1: always
//   host_buffers like `buffers`, for the host's arena
//   moments      start of each command, and end of the last command
//
// The page shows a loop once, with its number of iterations. The time is O(commands + buffers).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Report/ReportPage.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/Analysis/Schedule.h"
#include "fsdp/Analysis/Timeline.h"
#include "fsdp/IR/InFlight.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/Report/Explain.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fsdp;

static const char page[] =
#include "fsdp/Report/ReportPage.inc"
    ;
/// The placeholder in the text of the page.
static constexpr StringLiteral mark = "\"@data@\"";

namespace {

/// Simulates the step with one iteration of each loop. The timeline has one lane for each channel.
class Lanes {
public:
  Lanes(ProgramOp step, CostModel &costs) : commands(numberCommands(step)) {
    SmallVector<unsigned> eventOf;
    for (const NumberedCommand &command : commands) {
      eventOf.push_back(events.size());
      add(command.op, isa<LoopOp>(command.op) ? 0 : costs.getSeconds(command.op), costs);
    }
    line = simulate(events, transferOf.size(), costs.getMultiprocessors());
    for (unsigned event : eventOf)
      moments.push_back(event < line.moments.size() ? line.moments[event] : line.seconds);
    moments.push_back(line.seconds);
  }

  void write(llvm::json::OStream &json) const {
    json.attributeArray("commands", [&] {
      for (size_t index = 0; index < commands.size(); ++index) {
        const NumberedCommand &command = commands[index];
        if (isa<LoopOp, WaitOp>(command.op))
          continue;
        auto transfer = transferOf.find(command.op);
        bool isTransfer = transfer != transferOf.end();
        json.array([&] {
          json.value(command.number);
          json.value(isTransfer ? getLane(command.op) : 0);
          json.value(describeCommand(command.op));
          json.value(isTransfer ? line.begin[transfer->second] : moments[index]);
          json.value(isTransfer ? line.end[transfer->second] : moments[index + 1]);
          json.value(command.turns);
        });
      }
    });
    // One element for each stall: the number of the wait, and the seconds at which the stall begins
    // and ends.
    json.attributeArray("stalls", [&] {
      for (size_t index = 0; index < commands.size(); ++index)
        if (moments[index + 1] - moments[index] > 1e-9 && isa<WaitOp>(commands[index].op))
          json.array([&] {
            json.value(commands[index].number);
            json.value(moments[index]);
            json.value(moments[index + 1]);
          });
    });
    json.attributeArray("moments", [&] {
      for (double moment : moments)
        json.value(moment);
    });
  }

private:
  /// Returns the lane of a transfer, which is the number of the transfer's channel.
  static int64_t getLane(Operation *op) {
    if (isa<CopyOp>(op))
      return getChannel(op);
    CollectiveKind kind = cast<CollectiveOp>(op).getKind();
    bool isReduction = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce;
    return isReduction ? reduceChannel : gatherChannel;
  }

  void add(Operation *op, double seconds, CostModel &costs) {
    std::optional<int64_t> id = getInFlightId(op);
    if (id || isa<CollectiveOp>(op)) {
      unsigned number = transferOf.size(), lane = getLane(op);
      transferOf[op] = number;
      events.push_back(
          {TimelineEvent::Kind::start, seconds, number, id ? lane : 0, getLinks(lane)});
      if (auto collective = dyn_cast<CollectiveOp>(op))
        events.back().multiprocessors = costs.getMultiprocessors(collective);
      if (id)
        byId[*id] = number;
      else
        events.push_back({TimelineEvent::Kind::wait, 0, number});
    } else if (auto wait = dyn_cast<WaitOp>(op)) {
      events.push_back({TimelineEvent::Kind::wait, 0, byId.lookup(wait.getId())});
    } else {
      events.push_back({TimelineEvent::Kind::compute, seconds});
      if (auto launch = dyn_cast<LaunchOp>(op)) {
        events.back().busySeconds = costs.getKernelTime(launch).busySeconds;
        events.back().memorySeconds = costs.getKernelTime(launch).memorySeconds;
      }
    }
  }

  SmallVector<NumberedCommand> commands;
  SmallVector<TimelineEvent> events;
  DenseMap<Operation *, unsigned> transferOf;
  DenseMap<int64_t, unsigned> byId;
  SmallVector<double> moments;
  Timeline line;
};

} // namespace

/// Writes the buffers of the device's arena or, if `host`, of the host's arena.
static void writeBuffers(LayoutOp layout, ProgramOp step, bool host, llvm::json::OStream &json) {
  json.attributeArray(host ? "host_buffers" : "buffers", [&] {
    for (auto buffer : layout.getOps<BufferOp>()) {
      if (getMemory(buffer) != (host ? Memory::host : Memory::device) ||
          (!buffer.isPersistent() && buffer.getProgramAttr().getAttr() != step.getSymNameAttr()))
        continue;
      json.array([&] {
        json.value(buffer.getLabel());
        json.value(stringifyCategory(buffer.getCategory()));
        json.value(static_cast<int64_t>(buffer.getBytes()));
        json.value(static_cast<int64_t>(buffer.getOffset().value_or(0)));
        json.value(buffer.isPersistent() ? -1 : static_cast<int64_t>(*buffer.getFirst()));
        json.value(buffer.isPersistent() ? -1 : static_cast<int64_t>(*buffer.getLast()));
      });
    }
    if (int64_t bytes = host ? 0 : layout.getWorkspaceBytes())
      json.array([&] {
        json.value("workspace of kernels");
        json.value(stringifyCategory(Category::workspace));
        json.value(bytes);
        json.value(static_cast<int64_t>(layout.getWorkspaceOffset()));
        json.value(-1);
        json.value(-1);
      });
  });
}

static std::string makeData(ModuleOp planned, ProgramOp step, const Cluster &cluster,
                            ArrayRef<DtypeRow> dtypes, const KernelReport &kernels,
                            StringRef title) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  auto layout = SymbolTable::lookupNearestSymbolFrom<LayoutOp>(step, step.getLayoutAttr());
  CostModel costs(cluster, usesCopyEngines(step));
  json.object([&] {
    json.attribute("title", title);
    json.attribute("cluster", cluster.name);
    writeExplanation(planned, json, {}, dtypes, kernels);
    Lanes(step, costs).write(json);
    for (bool host : {false, true})
      writeBuffers(layout, step, host, json);
  });
  os.flush();
  // Escape '<', so that the data cannot end the script of the page.
  std::string safe;
  for (char c : text)
    safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return safe;
}

void fsdp::writeReport(ModuleOp planned, const Cluster &cluster, ArrayRef<DtypeRow> dtypes,
                       const KernelReport &kernels, StringRef title, raw_ostream &os) {
  ProgramOp step;
  for (auto program : planned.getOps<ProgramOp>())
    if (!step || program.getSymName() == "step")
      step = program;
  auto [before, after] = StringRef(page).split(mark);
  os << before << (step ? makeData(planned, step, cluster, dtypes, kernels, title) : "null")
     << after;
}
