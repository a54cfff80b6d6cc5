//===- TraceFile.cpp - Timeline of a run ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     rank 0   compute    [ step 12                                                  ]
//                         [contract h.0.mlp][wait gather h.1][contract h.1.mlp]
//              gather        [all_gather h.1               ]
//              reduce                                 [reduce_scatter h.1 ]
//
// In the trace file, a process represents a rank, and a thread represents a lane of a rank. In the
// file format, slices of the same thread must not overlap unless one slice contains the other. If
// events of a lane overlap, the writer therefore distributes them over several threads that have
// the same name, apart from a number.
//
// The report states two percentages. The first percentage is the part of the time of collectives in
// which the rank does not wait for them. The second percentage is the part of the bytes
// that belongs to collectives with at least one launch between their start and their wait.
//
//===----------------------------------------------------------------------===//

#include "TraceFile.h"
#include "io/OutputFile.h"
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

using namespace fsdprt;
using Event = fsdprt_trace_event;
using json = nlohmann::ordered_json;
using ull = unsigned long long;

static constexpr const char *laneNames[] = {"compute", "gather", "reduce", "host copy"};

namespace {
/// Sums over the collectives or over the host copies of one lane. Times are in nanoseconds.
struct Overlap {
  double inFlight = 0, waited = 0, bytes = 0, bytesAhead = 0;
  void add(const Event &event) {
    inFlight += static_cast<double>(event.end - event.begin);
    waited += static_cast<double>(event.waited);
    bytes += static_cast<double>(event.bytes);
    bytesAhead += event.ahead ? static_cast<double>(event.bytes) : 0;
  }
  double measured() const { return inFlight > 0 ? 1 - waited / inFlight : 0; }
  double planned() const { return bytes > 0 ? bytesAhead / bytes : 0; }
};

class TraceWriter {
public:
  TraceWriter(const std::string &path, std::vector<Event> events, uint64_t stepsBefore)
      : file(path, true), events(std::move(events)), stepsBefore(stepsBefore) {}
  void write();
  const Overlap &overlap(fsdprt_lane lane) const { return overlaps[lane]; }
  uint64_t ranks() const { return names.size(); }
  uint64_t steps() const { return stepCount; }

private:
  void put(const json &object);
  void putSlice(uint32_t rank, uint64_t lane, uint64_t begin, uint64_t end, const std::string &name,
                json arguments);
  void putEvent(const Event &event);
  void putSteps();
  void putNames();
  uint64_t laneOf(const Event &event);

  OutputFile file;
  std::vector<Event> events;
  uint64_t stepsBefore, start = UINT64_MAX, stepCount = 0;
  bool first = true;
  Overlap overlaps[4];
  std::map<uint32_t, std::map<uint64_t, std::string>> names;
  /// The events of each lane are distributed over sub-lanes, each of which is a thread of the file.
  /// For each lane of a rank, this map contains the end of the last event on each sub-lane.
  std::map<std::pair<uint32_t, fsdprt_lane>, std::vector<uint64_t>> busy;
};
} // namespace

void TraceWriter::put(const json &object) {
  std::string text =
      (first ? "" : ",\n") + object.dump(-1, ' ', false, json::error_handler_t::replace);
  file.write(text.data(), text.size());
  first = false;
}

/// Returns the number of the thread of an event. The thread belongs to the first sub-lane of the
/// event's lane that is free when the event begins. The compute lane has only one sub-lane, because
/// events on this lane do not overlap.
uint64_t TraceWriter::laneOf(const Event &event) {
  std::vector<uint64_t> &until = busy[{event.rank, event.lane}];
  size_t sub = 0;
  while (sub < until.size() && until[sub] > event.begin)
    ++sub;
  if (sub == until.size())
    until.push_back(0);
  until[sub] = event.end;
  uint64_t lane = uint64_t(event.lane) * 1000 + sub;
  std::string &name = names[event.rank][lane];
  name = laneNames[event.lane] + (sub ? " " + std::to_string(sub + 1) : "");
  return lane;
}

void TraceWriter::putSlice(uint32_t rank, uint64_t lane, uint64_t begin, uint64_t end,
                           const std::string &name, json arguments) {
  put({{"name", name},
       {"ph", "X"},
       {"pid", rank},
       {"tid", lane},
       {"ts", static_cast<double>(begin - start) / 1e3},
       {"dur", static_cast<double>(end - begin) / 1e3},
       {"args", std::move(arguments)}});
}

void TraceWriter::putEvent(const Event &event) {
  std::string name = *event.label ? event.label : event.name;
  json arguments = {{"step", stepsBefore + event.run}, {"bytes", event.bytes}};
  bool collective = std::string(event.kind) == "collective",
       transfer = collective || std::string(event.kind) == "host copy";
  if (collective && *event.unit)
    name = std::string(event.name) + " " + event.unit;
  if (event.lane == FSDPRT_LANE_COMPUTE && transfer) {
    name = "wait " + name;
    arguments.erase("bytes");
  } else if (transfer) {
    double inFlight = static_cast<double>(event.end - event.begin);
    arguments["waited_us"] = static_cast<double>(event.waited) / 1e3;
    arguments["overlap"] = inFlight > 0 ? 1 - static_cast<double>(event.waited) / inFlight : 0;
    arguments["launches_ahead"] = event.ahead;
    overlaps[event.lane].add(event);
  } else {
    arguments["kernel"] = event.name;
    arguments["kind"] = event.kind;
  }
  putSlice(event.rank, laneOf(event), event.begin, event.end, name, std::move(arguments));
}

void TraceWriter::putSteps() {
  std::map<std::pair<uint32_t, uint64_t>, std::pair<uint64_t, uint64_t>> steps;
  for (const Event &event : events) {
    auto &span = steps.emplace(std::pair(event.rank, event.run), std::pair(event.begin, event.end))
                     .first->second;
    span = {std::min(span.first, event.begin), std::max(span.second, event.end)};
    start = std::min(start, event.begin);
  }
  for (const auto &[key, span] : steps) {
    names[key.first][0] = laneNames[0];
    putSlice(key.first, 0, span.first, span.second,
             "step " + std::to_string(stepsBefore + key.second), json::object());
  }
  stepCount = names.empty() ? 0 : steps.size() / names.size();
}

void TraceWriter::putNames() {
  for (const auto &[rank, lanes] : names) {
    put({{"name", "process_name"},
         {"ph", "M"},
         {"pid", rank},
         {"args", {{"name", "rank " + std::to_string(rank)}}}});
    put({{"name", "process_sort_index"},
         {"ph", "M"},
         {"pid", rank},
         {"args", {{"sort_index", rank}}}});
    for (const auto &[lane, name] : lanes) {
      put({{"name", "thread_name"},
           {"ph", "M"},
           {"pid", rank},
           {"tid", lane},
           {"args", {{"name", name}}}});
      put({{"name", "thread_sort_index"},
           {"ph", "M"},
           {"pid", rank},
           {"tid", lane},
           {"args", {{"sort_index", lane}}}});
    }
  }
}

void TraceWriter::write() {
  std::string head = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  file.write(head.data(), head.size());
  std::sort(events.begin(), events.end(),
            [](const Event &a, const Event &b) { return a.begin < b.begin; });
  putSteps();
  for (const Event &event : events)
    putEvent(event);
  putNames();
  json other;
  for (fsdprt_lane lane : {FSDPRT_LANE_GATHER, FSDPRT_LANE_REDUCE, FSDPRT_LANE_COPY})
    if (lane != FSDPRT_LANE_COPY || overlaps[lane].inFlight > 0)
      other[laneNames[lane]] = {{"in_flight_ms", overlaps[lane].inFlight / 1e6},
                                {"waited_ms", overlaps[lane].waited / 1e6},
                                {"overlap", overlaps[lane].measured()},
                                {"planned_share_of_bytes_ahead", overlaps[lane].planned()}};
  std::string tail = "\n],\"otherData\":" + other.dump() + "}\n";
  file.write(tail.data(), tail.size());
  file.commit();
}

static void printOverlap(const TraceWriter &writer, RunReporter &printer) {
  double times = std::max<double>(1e6, 1e6 * static_cast<double>(writer.steps() * writer.ranks()));
  for (auto [lane, name] :
       {std::pair(FSDPRT_LANE_GATHER, "gathers"), std::pair(FSDPRT_LANE_REDUCE, "reductions"),
        std::pair(FSDPRT_LANE_COPY, "copies to the host and back")}) {
    const Overlap &overlap = writer.overlap(lane);
    if (overlap.inFlight > 0)
      printer.line(
          "overlap: %s are in flight for %.3f ms per step, of which ranks wait %.3f ms "
          "(%.0f %% overlapped); the program starts %.0f %% of their bytes ahead of a launch",
          name, overlap.inFlight / times, overlap.waited / times, 100 * overlap.measured(),
          100 * overlap.planned());
  }
}

void TraceReport::afterTraining(const TrainingRun &run) {
  if (run.stepsDone == run.stepsBefore)
    return;
  std::vector<Event> events;
  auto keep = [](void *to, const Event *event) -> int32_t {
    static_cast<std::vector<Event> *>(to)->push_back(*event);
    return 0;
  };
  call(fsdprt_session_visit_trace, static_cast<const fsdprt_session *>(run.session.get()),
       static_cast<int32_t (*)(void *, const Event *)>(keep), static_cast<void *>(&events));
  if (!run.isRoot)
    return;
  TraceWriter writer(run.options.trace, std::move(events), run.stepsBefore);
  writer.write();
  run.reporter.line("trace: the last %llu step%s of %llu rank%s in %s", (ull)writer.steps(),
                    writer.steps() == 1 ? "" : "s", (ull)writer.ranks(),
                    writer.ranks() == 1 ? "" : "s", run.options.trace.c_str());
  printOverlap(writer, run.reporter);
}

void fsdprt::writeTrace(const std::string &path, std::vector<Event> events, RunReporter &printer) {
  TraceWriter writer(path, std::move(events), /*stepsBefore=*/0);
  writer.write();
  printer.line("trace: one step of rank 0, equal on all ranks, in %s", path.c_str());
  printOverlap(writer, printer);
}
