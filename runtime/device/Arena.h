//===- Arena.h - One rank's memory ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One anonymous mapping, 2 MiB aligned, in huge pages where the system has them, and touched by its
// own rank before the first program, so that no page is missing later. Nothing else holds a rank's
// data. One that other processes map, too, has a descriptor (memfd), and no name: it goes away with
// the last process that has it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_ARENA_H
#define FSDPRT_DEVICE_ARENA_H

#include <cstddef>
#include <cstdint>

namespace fsdprt {

/// Memory that an arena does not map itself.
class ArenaSource {
public:
  enum class Place { device, host };
  virtual ~ArenaSource() = default;
  /// Zeros, at a multiple of 256; throws Error when there are not so many.
  virtual std::byte *allocate(uint64_t bytes, Place place) = 0;
  virtual void release(std::byte *memory, Place place) = 0;
};

/// An arena of which a part is in the host's memory, from an offset on.
struct ArenaParts {
  uint64_t deviceBytes = 0, hostBegin = 0, hostBytes = 0;
};

class Arena {
public:
  enum class Kind { own, shared };

  /// Reserves the range; throws Error when there is none.
  explicit Arena(uint64_t bytes, Kind kind = Kind::own);
  /// In `memory`, which outlives it: one allocation for each part.
  Arena(const ArenaParts &parts, ArenaSource &memory);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// Gives every page memory, filled with zeros; throws Error when there is not enough.
  void prefault();
  std::byte *at(uint64_t offset) const {
    return offset < hostBegin ? base + offset : hostBase + (offset - hostBegin);
  }
  uint64_t mappedBytes() const { return bytes; }
  /// Of the memory, for other processes; -1 of an arena of its own.
  int descriptor() const { return file; }

private:
  void *mapping;
  uint64_t mapped;
  std::byte *base;
  uint64_t bytes; // a multiple of the page
  int file = -1;
  uint64_t hostBegin = UINT64_MAX; // of a part that is elsewhere
  std::byte *hostBase = nullptr;
  ArenaSource *lent = nullptr;
};

/// The first `bytes` of another process's arena, to be read only.
class PeerArena {
public:
  PeerArena(int descriptor, uint64_t bytes);
  ~PeerArena();
  PeerArena(const PeerArena &) = delete;
  PeerArena &operator=(const PeerArena &) = delete;
  std::byte *data() const { return base; }

private:
  std::byte *base;
  uint64_t bytes;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_ARENA_H
