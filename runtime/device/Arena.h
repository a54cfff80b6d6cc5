//===- Arena.h - One rank's memory ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An arena in host memory is a single anonymous mapping that is aligned to 2 MiB. The mapping uses
// huge pages if the system supports huge pages. Before the first program runs, the rank that owns
// the arena touches all of its pages. Later accesses therefore cause no page faults. If other
// processes also map the arena, the arena is a memfd. The memory of a memfd is freed when the last
// of these processes ends.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_ARENA_H
#define FSDPRT_DEVICE_ARENA_H

#include <cstddef>
#include <cstdint>

namespace fsdprt {

/// Allocates the memory of arenas that are not created by mmap().
class ArenaSource {
public:
  enum class Place { device, host };
  virtual ~ArenaSource() = default;
  /// Returns memory with zeros, aligned to 256 bytes. Throws Error if memory is missing.
  virtual std::byte *allocate(uint64_t bytes, Place place) = 0;
  virtual void release(std::byte *memory, Place place) = 0;
};

/// Sizes of the two parts of an arena. The first part is in device memory, and the second part is
/// in host memory. An offset of at least `hostBegin` refers to host memory.
struct ArenaParts {
  uint64_t deviceBytes = 0, hostBegin = 0, hostBytes = 0;
};

class Arena {
public:
  enum class Kind { own, shared };

  /// Maps `bytes` bytes. Throws Error if the memory cannot be mapped.
  explicit Arena(uint64_t bytes, Kind kind = Kind::own);
  /// Allocates device and host memory from `memory`, which must outlive the arena.
  Arena(const ArenaParts &parts, ArenaSource &memory);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// Makes the system allocate all pages of the arena, and fill them with zeros. Throws Error if
  /// there is not enough memory.
  void prefault();
  std::byte *at(uint64_t offset) const {
    return offset < hostBegin ? base + offset : hostBase + (offset - hostBegin);
  }
  uint64_t mappedBytes() const { return bytes; }
  /// Returns the size in bytes of the allocation that begins at at(0). A part of the arena in host
  /// memory is another allocation, and does not count.
  uint64_t firstPartBytes() const { return hostBase ? firstBytes : bytes; }
  /// Returns the descriptor with which other processes map the memory. Returns -1 for Kind::own.
  int descriptor() const { return file; }

private:
  void *mapping;
  uint64_t mapped;
  std::byte *base;
  uint64_t bytes; ///< size in bytes, which is a multiple of the page size
  int file = -1;
  /// offset at which host memory begins; UINT64_MAX if there is none
  uint64_t hostBegin = UINT64_MAX;
  uint64_t firstBytes = 0; ///< size of the part in device memory, if there is a host part
  std::byte *hostBase = nullptr;
  /// object that has allocated the memory; null if this class has mapped the memory itself
  ArenaSource *lent = nullptr;
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
