//===- Arena.h - One rank's memory ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An arena in host memory is one anonymous mapping, aligned to 2 MiB, in huge pages if the system
// supports them. The rank that owns the arena touches all pages before the first program, so that
// no page fault occurs later. An arena that other processes also map is a memfd, whose memory is
// freed when the last of these processes ends.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_ARENA_H
#define FSDPRT_DEVICE_ARENA_H

#include <cstddef>
#include <cstdint>

namespace fsdprt {

/// Allocates the memory of arenas that do not call mmap().
class ArenaSource {
public:
  enum class Place { device, host };
  virtual ~ArenaSource() = default;
  /// Returns memory with zeros, aligned to 256 bytes. Throws Error if memory is missing.
  virtual std::byte *allocate(uint64_t bytes, Place place) = 0;
  virtual void release(std::byte *memory, Place place) = 0;
};

/// Sizes of an arena whose first part is in device memory and whose second part is in host memory.
/// Offsets from `hostBegin` on refer to host memory.
struct ArenaParts {
  uint64_t deviceBytes = 0, hostBegin = 0, hostBytes = 0;
};

class Arena {
public:
  enum class Kind { own, shared };

  /// Maps `bytes` bytes. Throws Error on failure.
  explicit Arena(uint64_t bytes, Kind kind = Kind::own);
  /// Allocates device and host memory from `memory`, which must outlive the arena.
  Arena(const ArenaParts &parts, ArenaSource &memory);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// Makes the system allocate all pages, filled with zeros. Throws Error if memory is missing.
  void prefault();
  std::byte *at(uint64_t offset) const {
    return offset < hostBegin ? base + offset : hostBase + (offset - hostBegin);
  }
  uint64_t mappedBytes() const { return bytes; }
  /// Returns the descriptor with which other processes map the memory, or -1 for Kind::own.
  int descriptor() const { return file; }

private:
  void *mapping;
  uint64_t mapped;
  std::byte *base;
  uint64_t bytes; ///< size, which is a multiple of the page size
  int file = -1;
  uint64_t hostBegin = UINT64_MAX; ///< first offset that refers to host memory
  std::byte *hostBase = nullptr;
  ArenaSource *lent = nullptr; ///< allocator of the memory, or null if this class has mapped it
};

/// Read-only mapping of the first `bytes` bytes of an arena of another process.
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
