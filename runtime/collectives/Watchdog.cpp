//===- Watchdog.cpp - Progress of ranks -------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds texts for messages, and builds the flight record, which is a JSON text of this form:
//
//     {"reason": ..., "ranks": [{"rank": 0, "at": ...,
//         "collectives": [{"what", "run", "began_ms_ago", "took_ms"}, ...]}, ...]}
//
// The collectives of a rank are listed in the order in which the rank has started them. A
// collective that has not ended has no member "took_ms".
//
//===----------------------------------------------------------------------===//

#include "collectives/Watchdog.h"
#include <algorithm>
#include <cstring>
#include <ctime>

using namespace fsdprt;

std::string fsdprt::runText(const char *program, uint64_t number) {
  if (std::strcmp(program, "step") == 0)
    return format("step %llu", (unsigned long long)number);
  return format("program '%s', run %llu", printable(program).c_str(), (unsigned long long)number);
}

std::string Watchdog::describeProgress(uint32_t rank) const {
  const RankProgress &progress = this->progressAt(rank);
  const char *label = stringAt(progress.label.load(std::memory_order_relaxed));
  const char *program = stringAt(progress.program.load(std::memory_order_relaxed));
  std::string text = format("rank %u (last seen", rank);
  if (*program)
    text += " in " + runText(program, progress.number.load(std::memory_order_relaxed));
  text += format(" at command %u", progress.command.load(std::memory_order_relaxed));
  if (*label)
    text += ", '" + printable(label) + "'";
  return text + ")";
}

static uint64_t nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

void Watchdog::beginCollective(uint32_t rank, uint32_t collective) {
  if (!meets)
    return;
  RankProgress &progress = this->progressAt(rank);
  progress.collective.store(collective + 1, std::memory_order_relaxed);
  uint64_t number = progress.numRecords.load(std::memory_order_relaxed);
  CollectiveRecord &entry = progress.recorder[number % RankProgress::recorded];
  entry.collective.store(collective + 1, std::memory_order_relaxed);
  entry.begin.store(nanoseconds(), std::memory_order_relaxed);
  entry.end.store(0, std::memory_order_relaxed);
  entry.number.store(progress.number.load(std::memory_order_relaxed), std::memory_order_relaxed);
  entry.program.store(progress.program.load(std::memory_order_relaxed), std::memory_order_relaxed);
  progress.numRecords.store(number + 1, std::memory_order_release);
}

/// Sets the end time of the last record of `collective`. Searches from the newest record to older
/// records. The search is short, because only a few collectives are in flight at the same time.
void Watchdog::endCollective(uint32_t rank, uint32_t collective) {
  if (!meets)
    return;
  RankProgress &progress = this->progressAt(rank);
  uint64_t last = progress.numRecords.load(std::memory_order_acquire);
  for (uint64_t i = last; i > 0 && i + RankProgress::recorded > last; --i) {
    CollectiveRecord &entry = progress.recorder[(i - 1) % RankProgress::recorded];
    if (entry.collective.load(std::memory_order_relaxed) != collective + 1)
      continue;
    entry.end.store(nanoseconds(), std::memory_order_relaxed);
    return;
  }
}

static std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return result + '"';
}

std::string Watchdog::record(const std::string &reason,
                             const std::function<std::string(uint32_t)> &describe) const {
  std::string text = "{\"reason\": " + quoted(reason) + ", \"ranks\": [";
  uint64_t now = nanoseconds();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const RankProgress &progress = this->progressAt(rank);
    uint64_t last = progress.numRecords.load(std::memory_order_acquire);
    text += format("%s\n {\"rank\": %u, \"at\": %s, \"collectives\": [", rank ? "," : "", rank,
                   quoted(describeProgress(rank)).c_str());
    uint64_t first = last > RankProgress::recorded ? last - RankProgress::recorded : 0;
    for (uint64_t i = first; i < last; ++i) {
      const CollectiveRecord &entry = progress.recorder[i % RankProgress::recorded];
      uint64_t begin = entry.begin.load(std::memory_order_relaxed),
               end = entry.end.load(std::memory_order_relaxed);
      std::string run = runText(stringAt(entry.program.load(std::memory_order_relaxed)),
                                entry.number.load(std::memory_order_relaxed));
      text +=
          format("%s\n  {\"what\": %s, \"run\": %s, \"began_ms_ago\": %.3f", i > first ? "," : "",
                 quoted(describe(entry.collective.load(std::memory_order_relaxed) - 1)).c_str(),
                 quoted(run).c_str(), static_cast<double>(now - std::min(now, begin)) / 1e6);
      text += end ? format(", \"took_ms\": %.3f}", static_cast<double>(end - begin) / 1e6) : "}";
    }
    text += "]}";
  }
  return text + "\n]}\n";
}
