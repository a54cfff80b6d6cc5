//===- Links.cpp - Moves collectives over links by chunks -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Collectives of one channel run in the order of the channel's queue. When the first collective
//     of the queue has begun and its latency has passed, it is ready to move its first chunk.
//  2. The collective that has been ready for the longest time moves one chunk. On each level, the
//     chunk occupies the links as soon as these links are free.
//  3. When the chunk has passed all levels and the gap after the chunk is over, the collective is
//     ready to move its next chunk.
//
// Chunks of different collectives alternate, so that collectives that run at the same time get
// equal shares of the links. The simulation takes time O(chunks * (levels + log channels)).
//
//===----------------------------------------------------------------------===//

#include "simulate/Links.h"
#include <algorithm>
#include <limits>

using namespace fsdprt;

size_t Links::start(const Transfer &transfer, uint32_t channel, double time, double delay) {
  while (!ready.empty() && ready.top().time <= time)
    moveChunk(ready.top());
  size_t number = flights.size();
  flights.push_back({{}, transfer, channel, transfer.chunks, time + delay});
  std::deque<size_t> &queue = queues[channel];
  queue.push_back(number);
  if (queue.size() == 1)
    begin(number, std::max(flights[number].earliest, freeFrom[channel]));
  return number;
}

void Links::begin(size_t number, double time) {
  State &state = flights[number];
  state.flight.begin = time;
  open.push_back(number);
  ready.push({time + state.transfer.headSeconds, number});
}

void Links::moveChunk(Ready next) {
  ready.pop();
  State &state = flights[next.flight];
  double done = next.time;
  if (state.left > 0) {
    for (size_t level = 0; level < freeAt.size(); ++level) {
      double seconds = state.transfer.chunkSeconds[level];
      if (seconds <= 0)
        continue;
      freeAt[level] = std::max(freeAt[level], next.time) + seconds;
      busy[level] += seconds;
      done = std::max(done, freeAt[level]);
    }
    ++chunks;
    --state.left;
    done += state.transfer.gapSeconds;
  }
  if (state.left > 0)
    ready.push({done, next.flight});
  else
    end(next.flight, done);
}

void Links::end(size_t number, double time) {
  State &state = flights[number];
  state.flight.end = time;
  state.flight.done = true;
  std::deque<size_t> &queue = queues[state.channel];
  queue.pop_front();
  freeFrom[state.channel] = time;
  if (!queue.empty())
    begin(queue.front(), std::max(time, flights[queue.front()].earliest));
}

uint64_t Links::occupied(double time, double limit, double &until) {
  uint64_t count = 0;
  while (true) {
    open.erase(std::remove_if(open.begin(), open.end(),
                              [&](size_t number) {
                                const Flight &flight = flights[number].flight;
                                return flight.done && flight.end <= time;
                              }),
               open.end());
    count = 0;
    until = std::numeric_limits<double>::infinity();
    for (size_t number : open) {
      const Flight &flight = flights[number].flight;
      if (flight.begin > time)
        until = std::min(until, flight.begin);
      else
        count += flights[number].transfer.multiprocessors;
      if (flight.done && flight.end > time)
        until = std::min(until, flight.end);
    }
    if (ready.empty() || ready.top().time >= std::min(until, limit))
      return count;
    moveChunk(ready.top());
  }
}

double Links::finish(size_t flight) {
  while (!flights[flight].flight.done)
    moveChunk(ready.top());
  return flights[flight].flight.end;
}
