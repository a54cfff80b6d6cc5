//===- Footprints.h - Order of accesses to device memory --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two operations on different streams that access the same bytes must be ordered if one of the two
// operations writes these bytes. Streams, events and waits of the host determine the order of
// operations. Each operation has a vector clock, which tells which other operations precede this
// operation. For each range of bytes, the last write and the reads since this write are recorded.
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

/// The vector clock of an operation. It contains, for each stream, the number of those operations
/// of the stream that precede this operation. The operation itself is counted, too.
class Clock {
public:
  uint32_t at(uint32_t stream) const { return stream < times.size() ? times[stream] : 0; }
  void set(uint32_t stream, uint32_t time);
  void learn(const Clock &other);

private:
  std::vector<uint32_t> times;
};

struct Touched {
  uint64_t begin, end; ///< range of addresses
  bool isWrite;
};

/// An operation, identified by its stream and its position in the stream.
struct Stamp {
  uint32_t stream = 0, time = 0; ///< position in the stream from 1; 0 if there is no operation
  std::shared_ptr<const std::string> name;
};

class Footprints {
public:
  /// Adds the accesses of an operation. Throws an Error if one of these accesses conflicts with an
  /// earlier access, and the earlier access is not ordered before the operation.
  void add(const Stamp &stamp, const Clock &clock, const std::vector<Touched> &touched);
  /// Removes the recorded accesses to memory that is being freed.
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
