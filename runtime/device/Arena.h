//===- Arena.h - One rank's memory ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An arena is one anonymous mapping, 2 MiB aligned, in huge pages if the system supports them. The
// arena's rank touches all pages before the first program, so that no page fault occurs later. An
// arena that other processes also map has a descriptor (memfd) without a name, so that its memory
// is freed when the last of these processes ends.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_ARENA_H
#define FSDPRT_DEVICE_ARENA_H

#include <cstddef>
#include <cstdint>

namespace fsdprt {

/// Allocator of memory that an arena does not map itself.
class ArenaSource {
public:
  enum class Place { device, host };
  virtual ~ArenaSource() = default;
  /// Returns zeroed memory, aligned to 256 bytes. Throws Error if there is not enough.
  virtual std::byte *allocate(uint64_t bytes, Place place) = 0;
  virtual void release(std::byte *memory, Place place) = 0;
};

/// Sizes of an arena whose end is in host memory: offsets from `hostBegin` on refer to host memory.
struct ArenaParts {
  uint64_t deviceBytes = 0, hostBegin = 0, hostBytes = 0;
};

class Arena {
public:
  enum class Kind { own, shared };

  /// Reserves the range. Throws Error on failure.
  explicit Arena(uint64_t bytes, Kind kind = Kind::own);
  /// Allocates the device and host memory from `memory`, which must outlive the arena.
  Arena(const ArenaParts &parts, ArenaSource &memory);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// Allocates zeroed memory for every page. Throws Error if there is not enough memory.
  void prefault();
  std::byte *at(uint64_t offset) const {
    return offset < hostBegin ? base + offset : hostBase + (offset - hostBegin);
  }
  uint64_t mappedBytes() const { return bytes; }
  /// Returns the memory's descriptor for other processes, or -1 for Kind::own.
  int descriptor() const { return file; }

private:
  void *mapping;
  uint64_t mapped;
  std::byte *base;
  uint64_t bytes; // a multiple of the page size
  int file = -1;
  uint64_t hostBegin = UINT64_MAX; // first offset that is in host memory
  std::byte *hostBase = nullptr;
  ArenaSource *lent = nullptr; // allocator of the memory; null if mapped by this class
};

/// Read-only mapping of the first `bytes` of another process's arena.
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
