//===- Timeline.cpp - Simulated overlap of transfers ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. On each set of links, the first unfinished transfer of each channel runs. Transfers that run
//    at the same time on the same links share the bandwidth equally.
// 2. A compute event advances the time by its duration. While transfers occupy multiprocessors, its
//    time on multiprocessors grows, as in the simulator of the runtime. A wait advances the time
//    until the transfer of the wait is done.
//
// The time is O(events + collectives * channels).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Timeline.h"
#include "fsdpcommon/KernelTime.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <queue>

using namespace mlir::fsdp;

namespace {

class Links {
public:
  explicit Links(Timeline &line)
      : line(line), left(line.end.size(), 0), occupied(line.end.size(), 0),
        done(line.end.size(), false) {}

  void start(const TimelineEvent &event) {
    left[event.collective] = event.seconds;
    occupied[event.collective] = event.multiprocessors;
    auto &queue = channels[{event.links, event.channel}];
    if (queue.empty())
      line.begin[event.collective] = now;
    queue.push_back(event.collective);
  }

  void runUntil(double time) {
    while (step(time))
      ;
    now = time;
  }

  /// Runs a compute event while transfers occupy some of the `all` multiprocessors.
  void compute(const TimelineEvent &event, uint64_t all) {
    fsdpcommon::KernelTime time;
    time.seconds = event.seconds;
    time.busySeconds = event.busySeconds;
    time.memorySeconds = event.memorySeconds;
    for (double rest = 1; rest > 0;) {
      uint64_t taken = 0;
      for (auto &[channel, queue] : channels)
        taken += queue.empty() ? 0 : occupied[queue.front()];
      double part = static_cast<double>(taken) / static_cast<double>(all),
             whole = time.secondsOn(std::max(1 - part, 1 / static_cast<double>(all))), begin = now,
             end = now + rest * whole;
      // Another transfer may occupy other multiprocessors after the end of this one.
      if (!step(end)) {
        now = end;
        return;
      }
      rest -= whole > 0 ? (now - begin) / whole : rest;
    }
  }

  /// Advances the time until the transfer is done. Returns this time.
  double runThrough(unsigned collective) {
    while (!done[collective] && step(std::numeric_limits<double>::infinity()))
      ;
    return now;
  }

  double now = 0;

private:
  /// Advances the time to the next end of a transfer, but not further than to `time`. Returns false
  /// if no transfer ends before or at `time`.
  bool step(double time) {
    llvm::SmallDenseMap<unsigned, unsigned, 4> active; // number of active channels per set of links
    for (auto &[channel, queue] : channels)
      active[channel.first] += !queue.empty();
    double soonest = std::numeric_limits<double>::infinity();
    for (auto &[channel, queue] : channels)
      if (!queue.empty())
        soonest = std::min(soonest, left[queue.front()] * active[channel.first]);
    if (soonest == std::numeric_limits<double>::infinity())
      return false;
    double end = now + soonest, until = std::min(end, time);
    for (auto &[channel, queue] : channels) {
      if (queue.empty())
        continue;
      unsigned head = queue.front(), share = active[channel.first];
      bool isSoonest = left[head] * share == soonest;
      left[head] -= end <= time ? soonest / share : (until - now) / share;
      if (end > time || (left[head] > 0 && !isSoonest))
        continue;
      queue.pop_front();
      done[head] = true;
      line.end[head] = end;
      if (!queue.empty())
        line.begin[queue.front()] = end;
    }
    now = until;
    return end <= time;
  }

  Timeline &line;
  llvm::SmallVector<double> left;
  llvm::SmallVector<uint64_t> occupied; ///< multiprocessors of each transfer
  llvm::SmallVector<bool> done;
  std::map<std::pair<unsigned, unsigned>, std::deque<unsigned>>
      channels; // queues of transfers, by links and channel
};

} // namespace

Timeline mlir::fsdp::simulate(llvm::ArrayRef<TimelineEvent> events, unsigned collectives,
                              uint64_t multiprocessors) {
  Timeline line;
  line.exposed.assign(collectives, 0);
  line.begin.assign(collectives, 0);
  line.end.assign(collectives, 0);
  Links links(line);
  for (const TimelineEvent &event : events) {
    line.moments.push_back(links.now);
    switch (event.kind) {
    case TimelineEvent::Kind::compute: {
      double before = links.now;
      if (multiprocessors && event.busySeconds > 0)
        links.compute(event, multiprocessors);
      else
        links.runUntil(links.now + event.seconds);
      line.computeSeconds += event.seconds;
      double slowed = links.now - before - event.seconds;
      line.slowedSeconds += slowed > 1e-9 * event.seconds ? slowed : 0; // without rounding
      break;
    }
    case TimelineEvent::Kind::start:
      links.start(event);
      break;
    case TimelineEvent::Kind::wait: {
      double before = links.now;
      line.exposed[event.collective] += links.runThrough(event.collective) - before;
      break;
    }
    }
  }
  line.seconds = links.now;
  return line;
}

double mlir::fsdp::getLowerBound(double computeSeconds, llvm::ArrayRef<LinkJob> jobs) {
  llvm::SmallVector<LinkJob> sorted(jobs);
  llvm::sort(sorted, [](const LinkJob &a, const LinkJob &b) { return a.head < b.head; });
  auto less = [&](unsigned a, unsigned b) { return sorted[a].tail < sorted[b].tail; };
  std::priority_queue<unsigned, std::vector<unsigned>, decltype(less)> ready(less);
  double now = 0, bound = computeSeconds;
  for (unsigned next = 0; next < sorted.size() || !ready.empty();) {
    if (ready.empty())
      now = std::max(now, sorted[next].head);
    while (next < sorted.size() && sorted[next].head <= now)
      ready.push(next++);
    unsigned job = ready.top();
    double until =
        next < sorted.size() ? sorted[next].head : std::numeric_limits<double>::infinity();
    double run = std::min(sorted[job].seconds, until - now);
    now += run;
    sorted[job].seconds -= run;
    if (sorted[job].seconds > 0)
      continue;
    bound = std::max(bound, now + sorted[job].tail);
    ready.pop();
  }
  return bound;
}
