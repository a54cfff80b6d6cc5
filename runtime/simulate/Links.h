//===- Links.h - Moves collectives over links by chunks ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   channel 1   | head |A|   |A|   |A|          Collectives of one channel run one after another.
//   channel 2        | head|B|   |B|            Collectives of several channels share the links.
//   level 0            |A |B |A |B |A|          A link carries chunks in order of arrival.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_SIMULATE_LINKS_H
#define FSDPRT_SIMULATE_LINKS_H

#include "simulate/Transfer.h"
#include <deque>
#include <functional>
#include <queue>

namespace fsdprt {

/// The links of one rank. They represent the links of every rank, because all ranks behave alike.
class Links {
public:
  /// The times in seconds at which a collective begins and ends. The interval between these times
  /// begins with the latency of the collective, Transfer::headSeconds.
  struct Flight {
    double begin = 0, end = 0;
    bool done = false;
  };

  explicit Links(size_t levels) : freeAt(levels, 0), busy(levels, 0) {}

  /// Queues a transfer on a channel. The transfer begins `delay` seconds after `time` at the
  /// earliest. `time` must not decrease from one call to the next. Returns the index of the
  /// transfer for finish().
  size_t start(const Transfer &transfer, uint32_t channel, double time, double delay);
  /// Moves chunks until transfer `flight` is done, and returns the end of the transfer in seconds.
  double finish(size_t flight);
  /// Returns the number of multiprocessors that transfers occupy at `time`. `time` must not
  /// decrease from one call to the next. Sets `until` to a time before which this number does not
  /// change. Moves chunks up to the earlier one of `until` and the time `limit`.
  uint64_t occupied(double time, double limit, double &until);
  const Flight &flight(size_t number) const { return flights[number].flight; }

  double busySeconds(size_t level) const { return busy[level]; }
  uint64_t chunksMoved() const { return chunks; }

private:
  struct State {
    Flight flight;
    Transfer transfer;
    uint32_t channel;
    uint64_t left;   // number of chunks that have not been moved
    double earliest; // earliest time at which the transfer may begin, in seconds
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

  // For each level of links, in seconds: `freeAt` is the time from which the links are free, and
  // `busy` is the time for which they were busy.
  std::vector<double> freeAt, busy;
  std::vector<State> flights;
  std::vector<size_t> open; // transfers that have begun and that occupied() has not seen end
  std::map<uint32_t, std::deque<size_t>> queues; // for each channel: indices in `flights`
  std::map<uint32_t, double> freeFrom;           // for each channel: time at which its last
                                                 // transfer ends
  std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  uint64_t chunks = 0;
};

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_LINKS_H
