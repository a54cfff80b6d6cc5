//===- Footprints.h - Who touched which bytes on a device -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Work on different streams that touches the same bytes, of which some of it writes, has to be
// ordered: by an event, by a stream, or by the host, which has waited. Each operation knows by a
// vector of times what is before it; each byte who wrote it last, and who has read it since.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_CUDA_FOOTPRINTS_H
#define FSDPRT_TESTING_CUDA_FOOTPRINTS_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fsdprt::emulated {

/// By the number of a stream: how many of its operations are before something, or it itself.
class Clock {
public:
  uint32_t at(uint32_t stream) const { return stream < times.size() ? times[stream] : 0; }
  void set(uint32_t stream, uint32_t time);
  void learn(const Clock &other);

private:
  std::vector<uint32_t> times;
};

struct Touched {
  uint64_t begin, end; ///< addresses
  bool isWrite;
};

/// An operation, as far as its order goes.
struct Stamp {
  uint32_t stream = 0, time = 0; ///< time 0: none
  std::shared_ptr<const std::string> name;
};

class Footprints {
public:
  /// Throws Error where something before it is not ordered before it.
  void add(const Stamp &stamp, const Clock &clock, const std::vector<Touched> &touched);
  /// Of memory that is free again.
  void forget(uint64_t begin, uint64_t end);

private:
  struct Span {
    uint64_t end;
    Stamp write;
    std::vector<Stamp> reads;
  };
  void split(uint64_t at);
  void add(const Stamp &stamp, const Clock &clock, const Touched &touched);

  std::map<uint64_t, Span> spans; // by their begin
};

} // namespace fsdprt::emulated

#endif // FSDPRT_TESTING_CUDA_FOOTPRINTS_H
