//===- Links.h - Collectives in flight, chunk by chunk ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   channel 1   | head |A|   |A|   |A|          collectives of a channel go one after another
//   channel 2        | head|B|   |B|            those of others take turns on the links
//   level 0            |A |B |A |B |A|          chunks, first come first served
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_SIMULATE_LINKS_H
#define FSDPRT_SIMULATE_LINKS_H

#include "simulate/Transfer.h"
#include <deque>
#include <functional>
#include <queue>

namespace fsdprt {

/// The links of one rank, which stand for those of all: ranks are alike, and so are their links.
class Links {
public:
  /// When a collective was on its way. Its begin is that of its head.
  struct Flight {
    double begin = 0, end = 0;
    bool done = false;
  };

  explicit Links(size_t levels) : freeAt(levels, 0), busy(levels, 0) {}

  /// At `time`, which never goes back; on its channel no sooner than `delay` later. The number of
  /// the flight.
  size_t start(const Transfer &transfer, uint32_t channel, double time, double delay);
  /// Until it is done; when that is.
  double finish(size_t flight);
  const Flight &flight(size_t number) const { return flights[number].flight; }

  /// Seconds that the links of a level were busy.
  double busySeconds(size_t level) const { return busy[level]; }
  uint64_t chunksMoved() const { return chunks; }

private:
  struct State {
    Flight flight;
    Transfer transfer;
    uint32_t channel;
    uint64_t left;   // chunks
    double earliest; // to begin
  };
  struct Ready {
    double time;
    size_t flight;
    bool operator>(const Ready &other) const {
      return time != other.time ? time > other.time : flight > other.flight;
    }
  };
  void begin(size_t number, double time);
  void moveChunk(Ready ready);
  void end(size_t number, double time);

  std::vector<double> freeAt, busy; // by level
  std::vector<State> flights;
  std::map<uint32_t, std::deque<size_t>> queues; // by channel, that in flight first
  std::map<uint32_t, double> freeFrom;           // a channel whose queue is empty
  std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  uint64_t chunks = 0;
};

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_LINKS_H
