//===- Trace.cpp - Times of commands in the last runs -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. The constructor counts the commands that one run executes. A command in a loop counts once
//     per iteration. For each run, the ring buffer of a rank has one record per executed command.
//  2. For each record of a launch, copy, fill or wait, visit() creates an event of lane `compute`.
//  3. For a collective, visit() also creates an event of the lane `gather` or `reduce`. For a copy
//     on a channel, it also creates an event of the lane `copy`. If the beginning and the end of
//     the transfer were recorded, this additional event has the same beginning and end. Otherwise
//     it lasts from the start of the transfer to the end of the wait. During the whole event of a
//     blocking collective, the rank counts as waiting.
//  4. In the additional event of a transfer, the member `ahead` is the number of launches between
//     the start of the transfer and its wait.
//
// If the ranks are threads of one process, they copy the data of a collective only during its wait.
// An earlier start of the collective then makes its event longer, but not its wait shorter.
//
//===----------------------------------------------------------------------===//

#include "execute/Trace.h"
#include <algorithm>
#include <unordered_map>

using namespace fsdprt;

static bool isRun(const Instruction &instruction) {
  return instruction.kind != fb::Body::Loop && instruction.kind != fb::Body::Initialise;
}

static bool isTransfer(const Instruction &instruction) {
  return instruction.kind == fb::Body::Collective || instruction.kind == fb::Body::Copy;
}

/// Returns how many commands a run of the program executes. Counts a command only if `counts`
/// returns true for it. A command in a loop is counted once per iteration.
static uint64_t countEvents(const Instruction *at, const Instruction *end,
                            bool (*counts)(const Instruction &) = isRun) {
  uint64_t count = 0;
  for (; at != end; ++at) {
    count += counts(*at);
    if (at->kind != fb::Body::Loop)
      continue;
    count += static_cast<const fb::Loop *>(at->body)->count() *
             countEvents(at + 1, at + 1 + at->length, counts);
    at += at->length;
  }
  return count;
}

Trace::Trace(const fb::Manifest &manifest, const std::vector<Instruction> &instructions,
             uint32_t firstRank, uint32_t ranks, uint32_t runs)
    : manifest(manifest), instructions(instructions), firstRank(firstRank), keptRuns(runs),
      eventsPerRun(countEvents(instructions.data(), instructions.data() + instructions.size())),
      rings(ranks) {
  for (Ring &ring : rings)
    ring.records.resize(keptRuns * eventsPerRun);
}

uint64_t Trace::stampsOf(const std::vector<Instruction> &instructions) {
  const Instruction *begin = instructions.data(), *end = begin + instructions.size();
  return 2 * (countEvents(begin, end) + countEvents(begin, end, isTransfer));
}

void Trace::resolve(uint32_t rank, const std::function<uint64_t(uint64_t)> &timeOf) {
  Ring &ring = rings[rank - firstRank];
  for (uint64_t i = (ring.began - 1) % keptRuns * eventsPerRun; i < ring.next; ++i)
    for (uint64_t *time : {&ring.records[i].begin, &ring.records[i].end, &ring.records[i].movedFrom,
                           &ring.records[i].movedTo})
      *time = *time ? timeOf(*time) : 0;
}

static const char *orEmpty(const flatbuffers::String *text) { return text ? text->c_str() : ""; }

static fsdprt_trace_event describe(const fb::Manifest &manifest, const Instruction &instruction) {
  fsdprt_trace_event event = {};
  event.struct_size = sizeof event;
  event.lane = FSDPRT_LANE_COMPUTE;
  event.label = instruction.label;
  event.unit = "";
  if (instruction.kind == fb::Body::Launch) {
    const fb::Kernel &kernel =
        *manifest.kernels()->Get(static_cast<const fb::Launch *>(instruction.body)->kernel());
    event.name = orEmpty(kernel.name());
    event.kind = orEmpty(kernel.kind());
  } else {
    event.name = instruction.kind == fb::Body::Copy ? "copy" : "fill";
    event.kind = "memory";
  }
  event.bytes = bytesOf(manifest, instruction);
  return event;
}

static fsdprt_trace_event describe(const fb::Manifest &manifest, const fb::Collective &collective,
                                   const char *label) {
  fsdprt_trace_event event = {};
  event.struct_size = sizeof event;
  bool reduces = collective.kind() == fb::CollectiveKind::reduce_scatter ||
                 collective.kind() == fb::CollectiveKind::all_reduce;
  event.lane = reduces ? FSDPRT_LANE_REDUCE : FSDPRT_LANE_GATHER;
  event.name = fb::EnumNameCollectiveKind(collective.kind());
  event.kind = "collective";
  event.label = label;
  int32_t unit = collective.unit();
  bool known =
      unit >= 0 && manifest.units() && static_cast<uint32_t>(unit) < manifest.units()->size();
  event.unit = known ? orEmpty(manifest.units()->Get(static_cast<uint32_t>(unit))->name()) : "";
  event.bytes = collective.source()->bytes() + collective.target()->bytes();
  return event;
}

static fsdprt_trace_event describeCopy(const fb::Manifest &manifest,
                                       const Instruction &instruction) {
  fsdprt_trace_event event = describe(manifest, instruction);
  event.lane = FSDPRT_LANE_COPY;
  event.kind = "host copy";
  return event;
}

bool Trace::visitRun(uint32_t rank, uint64_t run, const Record *at, const Record *end,
                     const std::function<bool(const fsdprt_trace_event &)> &visit) const {
  struct Started {
    const Record *record;
    uint32_t launches;
  };
  std::unordered_map<uint32_t, Started> inFlight; // the record that started each transfer, by id
  uint32_t launches = 0;
  auto give = [&](fsdprt_trace_event event, uint64_t from, uint64_t to) {
    event.rank = rank;
    event.run = run;
    event.begin = from;
    event.end = to;
    return visit(event);
  };
  auto giveTransfer = [&](const Record &started, const Record &waited, uint32_t ahead) {
    const Instruction &start = instructions[started.instruction];
    fsdprt_trace_event event =
        start.kind == fb::Body::Copy
            ? describeCopy(manifest, start)
            : describe(manifest, *static_cast<const fb::Collective *>(start.body), start.label);
    fsdprt_trace_event wait = event;
    wait.lane = FSDPRT_LANE_COMPUTE;
    wait.bytes = 0;
    event.waited = waited.end - waited.begin;
    wait.waited = event.waited;
    event.ahead = ahead;
    // If a worker thread has executed the transfer, the event lasts only for the execution. The
    // wait may be longer, because the transfer may first have waited in the queue of the worker.
    uint64_t from = waited.movedTo ? waited.movedFrom : started.begin,
             to = waited.movedTo ? waited.movedTo : waited.end;
    event.waited = std::min(event.waited, to - from);
    return give(event, from, to) && give(wait, waited.begin, waited.end);
  };
  for (; at != end; ++at) {
    const Instruction &instruction = instructions[at->instruction];
    launches += instruction.kind == fb::Body::Launch;
    bool goOn = true;
    if (instruction.kind == fb::Body::Collective) {
      const auto &collective = *static_cast<const fb::Collective *>(instruction.body);
      if (collective.channel() == 0)
        goOn = giveTransfer(*at, *at, 0);
      else
        inFlight[collective.id()] = {at, launches};
    } else if (const auto *copy = instruction.kind == fb::Body::Copy
                                      ? static_cast<const fb::Copy *>(instruction.body)
                                      : nullptr;
               copy && copy->channel() != 0) {
      inFlight[copy->id()] = {at, launches};
    } else if (instruction.kind == fb::Body::Wait) {
      auto started = inFlight.find(static_cast<const fb::Wait *>(instruction.body)->id());
      if (started != inFlight.end())
        goOn = giveTransfer(*started->second.record, *at, launches - started->second.launches);
    } else {
      goOn = give(describe(manifest, instruction), at->begin, at->end);
    }
    if (!goOn)
      return false;
  }
  return true;
}

void Trace::collect(Communicator &communicator) {
  if (communicator.isRoot())
    rings.resize(communicator.ranks());
  for (uint32_t rank = 1; rank < communicator.ranks(); ++rank) {
    Ring &ring = rings[communicator.isRoot() ? rank : 0];
    ring.records.resize(rings[0].records.size());
    for (uint64_t *each : {&ring.began, &ring.next, &ring.end})
      communicator.collect(rank, each, sizeof *each, each);
    communicator.collect(rank, ring.records.data(), ring.records.size() * sizeof(Record),
                         ring.records.data());
  }
}

void Trace::visit(const std::function<bool(const fsdprt_trace_event &)> &visit) const {
  for (uint32_t i = 0; i < rings.size(); ++i) {
    const Ring &ring = rings[i];
    uint64_t first = ring.began > keptRuns ? ring.began - keptRuns : 0;
    for (uint64_t run = first; run < ring.began; ++run) {
      const Record *begin = ring.records.data() + run % keptRuns * eventsPerRun;
      bool isLast = run + 1 == ring.began; // The last run may have fewer records than other runs.
      const Record *end = isLast ? ring.records.data() + ring.next : begin + eventsPerRun;
      if (!visitRun(firstRank + i, run + 1, begin, end, visit))
        return;
    }
  }
}
