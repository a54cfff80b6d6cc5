//===- Footprints.cpp - Order of accesses to device memory ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The recorded ranges of bytes are split where the range of an operation begins or ends. Recorded
// ranges are never merged.
//
//===----------------------------------------------------------------------===//

#include "testing/cuda/Footprints.h"
#include "core/Error.h"
#include <algorithm>

using namespace fsdprt;
using namespace fsdprt::emulated;

void Clock::set(uint32_t stream, uint32_t time) {
  if (times.size() <= stream)
    times.resize(stream + 1, 0);
  times[stream] = std::max(times[stream], time);
}

void Clock::learn(const Clock &other) {
  times.resize(std::max(times.size(), other.times.size()), 0);
  for (size_t i = 0; i < other.times.size(); ++i)
    times[i] = std::max(times[i], other.times[i]);
}

void Footprints::split(uint64_t at) {
  auto above = spans.lower_bound(at);
  if (above == spans.begin() || (above != spans.end() && above->first == at))
    return;
  auto below = std::prev(above);
  if (below->second.end <= at)
    return;
  Span upper = below->second;
  below->second.end = at;
  spans.emplace_hint(above, at, std::move(upper));
}

static void expectBefore(const Stamp &before, const Stamp &now, const Clock &clock, const char *did,
                         const Touched &touched, uint64_t at) {
  if (before.time != 0 && clock.at(before.stream) < before.time)
    failed("%s (stream %u) %s the bytes from 0x%llx on, which %s (stream %u) %s, and nothing "
           "orders the two",
           now.name->c_str(), now.stream, touched.isWrite ? "writes" : "reads",
           static_cast<unsigned long long>(at), before.name->c_str(), before.stream, did);
}

void Footprints::add(const Stamp &stamp, const Clock &clock, const Touched &touched) {
  split(touched.begin);
  split(touched.end);
  uint64_t at = touched.begin;
  for (auto span = spans.lower_bound(at); at < touched.end;) {
    if (span == spans.end() || span->first > at) {
      // No access to these bytes has been recorded yet.
      uint64_t end = span == spans.end() ? touched.end : std::min(span->first, touched.end);
      span = spans.emplace_hint(span, at, Span{end, {}, {}});
    }
    expectBefore(span->second.write, stamp, clock, "wrote", touched, at);
    if (touched.isWrite) {
      for (const Stamp &read : span->second.reads)
        expectBefore(read, stamp, clock, "read", touched, at);
      span->second.write = stamp;
      span->second.reads.clear();
    } else {
      auto &reads = span->second.reads;
      reads.erase(
          std::remove_if(reads.begin(), reads.end(),
                         [&](const Stamp &read) { return clock.at(read.stream) >= read.time; }),
          reads.end());
      reads.push_back(stamp);
    }
    at = span->second.end;
    ++span;
  }
}

void Footprints::add(const Stamp &stamp, const Clock &clock, const std::vector<Touched> &touched) {
  // Reads are added before writes, since an operation may write the range that it reads.
  for (const Touched &each : touched)
    if (!each.isWrite)
      add(stamp, clock, each);
  for (const Touched &each : touched)
    if (each.isWrite)
      add(stamp, clock, each);
}

void Footprints::forget(uint64_t begin, uint64_t end) {
  split(begin);
  split(end);
  spans.erase(spans.lower_bound(begin), spans.lower_bound(end));
}
