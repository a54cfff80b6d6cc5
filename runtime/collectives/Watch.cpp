//===- Watch.cpp - Who is alive, and where ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Words for messages, and the flight recorder:
//
//     {"reason": ..., "ranks": [{"rank": 0, "at": ...,
//         "collectives": [{"what", "run", "began_ms_ago", "took_ms"}, ...]}, ...]}
//
// the oldest first; one that is in flight has no "took_ms".
//
//===----------------------------------------------------------------------===//

#include "collectives/Watch.h"
#include <algorithm>
#include <cstring>
#include <ctime>

using namespace fsdprt;

std::string fsdprt::runText(const char *program, uint64_t number) {
  if (std::strcmp(program, "step") == 0)
    return format("step %llu", (unsigned long long)number);
  return format("program '%s', run %llu", printable(program).c_str(), (unsigned long long)number);
}

std::string Watch::whereabouts(uint32_t rank) const {
  const Life &life = this->life(rank);
  const char *label = wordAt(life.label.load(std::memory_order_relaxed));
  const char *program = wordAt(life.program.load(std::memory_order_relaxed));
  std::string text = format("rank %u (last seen", rank);
  if (*program)
    text += " in " + runText(program, life.number.load(std::memory_order_relaxed));
  text += format(" at command %u", life.command.load(std::memory_order_relaxed));
  if (*label)
    text += ", '" + printable(label) + "'";
  return text + ")";
}

//===- Flight recorder ----------------------------------------------------===//

static uint64_t nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

void Watch::beginCollective(uint32_t rank, uint32_t collective) {
  if (!meets)
    return;
  Life &life = this->life(rank);
  life.collective.store(collective + 1, std::memory_order_relaxed);
  uint64_t number = life.flights.load(std::memory_order_relaxed);
  Flight &flight = life.recorder[number % Life::recorded];
  flight.collective.store(collective + 1, std::memory_order_relaxed);
  flight.begin.store(nanoseconds(), std::memory_order_relaxed);
  flight.end.store(0, std::memory_order_relaxed);
  flight.number.store(life.number.load(std::memory_order_relaxed), std::memory_order_relaxed);
  flight.program.store(life.program.load(std::memory_order_relaxed), std::memory_order_relaxed);
  life.flights.store(number + 1, std::memory_order_release);
}

/// Few are in flight at once: it is among the last.
void Watch::endCollective(uint32_t rank, uint32_t collective) {
  if (!meets)
    return;
  Life &life = this->life(rank);
  uint64_t last = life.flights.load(std::memory_order_acquire);
  for (uint64_t i = last; i > 0 && i + Life::recorded > last; --i) {
    Flight &flight = life.recorder[(i - 1) % Life::recorded];
    if (flight.collective.load(std::memory_order_relaxed) != collective + 1)
      continue;
    flight.end.store(nanoseconds(), std::memory_order_relaxed);
    return;
  }
}

/// In quotes.
static std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return result + '"';
}

std::string Watch::record(const std::string &reason,
                          const std::function<std::string(uint32_t)> &describe) const {
  std::string text = "{\"reason\": " + quoted(reason) + ", \"ranks\": [";
  uint64_t now = nanoseconds();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const Life &life = this->life(rank);
    uint64_t last = life.flights.load(std::memory_order_acquire);
    text += format("%s\n {\"rank\": %u, \"at\": %s, \"collectives\": [", rank ? "," : "", rank,
                   quoted(whereabouts(rank)).c_str());
    uint64_t first = last > Life::recorded ? last - Life::recorded : 0;
    for (uint64_t i = first; i < last; ++i) {
      const Flight &flight = life.recorder[i % Life::recorded];
      uint64_t begin = flight.begin.load(std::memory_order_relaxed),
               end = flight.end.load(std::memory_order_relaxed);
      std::string run = runText(wordAt(flight.program.load(std::memory_order_relaxed)),
                                flight.number.load(std::memory_order_relaxed));
      text +=
          format("%s\n  {\"what\": %s, \"run\": %s, \"began_ms_ago\": %.3f", i > first ? "," : "",
                 quoted(describe(flight.collective.load(std::memory_order_relaxed) - 1)).c_str(),
                 quoted(run).c_str(), static_cast<double>(now - std::min(now, begin)) / 1e6);
      text += end ? format(", \"took_ms\": %.3f}", static_cast<double>(end - begin) / 1e6) : "}";
    }
    text += "]}";
  }
  return text + "\n]}\n";
}
