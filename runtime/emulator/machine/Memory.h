//===- Memory.h - Memory with a shadow --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the memory of emulated programs. To detect reads of uninitialised bytes, a flag for each
// byte records whether the byte was written. To detect races, a Cell records the last accesses to
// 16 bytes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_MEMORY_H
#define FSDPRT_EMULATOR_MACHINE_MEMORY_H

#include "emulator/machine/VectorClocks.h"
#include <algorithm>
#include <array>
#include <deque>

namespace fsdprt::emulate {

/// The last write to 16 bytes of memory and the reads since this write. If an access covers only a
/// part of a cell, the cell is split into four cells of 4 bytes. If an access covers only a part of
/// a cell of 4 bytes, this cell is split into four cells of 1 byte. If one of two accesses to the
/// same bytes is a write, the two accesses must be ordered, unless both accesses are strong, for
/// example atomic, volatile or relaxed (PTX ISA, "Memory Consistency Model").
struct Cell {
  struct Access {
    uint32_t group = 0; ///< number of the accessing cluster; 0 if there is no access
    Time time = 0;
    uint32_t serial = 0; ///< number of the instruction, counted in the warp
    uint32_t instruction = 0;
    LaneMask lanes = 0;
    uint16_t warp = 0; ///< index of the warp in the cluster
    bool isStrong = false;
    bool isAsync = false; ///< true if the access went through the async proxy
  };
  Access write, read;
  Access foreignRead;     ///< last read by another cluster
  uint32_t moreReads = 0; ///< index of the next read in Shadow::chains; 0 if there is none
  uint32_t weakWrite = 0; ///< if `write` is strong: index of the weak write before `write`, or 0
  Cell *parts = nullptr;  ///< four cells that replace this cell; each covers a quarter of the bytes
};

class Shadow {
public:
  static constexpr unsigned cellBytes = 16, pageCells = 256;
  Cell &cell(uint64_t index);
  /// Splits a cell into four cells, each of which covers a quarter of the bytes.
  void split(Cell &cell);
  /// Drops the four cells into which `cell` was split. Called after a write of the whole cell.
  void join(Cell &cell);
  void clear();

  struct Chained {
    Cell::Access access;
    uint32_t next;
  };
  std::vector<Chained> chains{1};
  uint32_t chain(const Cell::Access &access, uint32_t next);
  void dropReads(Cell &cell);
  /// If `cell.write` is a weak write, copies it to `chains`, and sets `cell.weakWrite` to the index
  /// of the copy. Called before a strong write replaces `cell.write`.
  void keepWeakWrite(Cell &cell);
  void dropWeakWrite(Cell &cell) { drop(cell.weakWrite); }

private:
  void drop(uint32_t &first);

  uint32_t freeChain = 0;
  std::vector<std::unique_ptr<Cell[]>> pages;
  std::deque<std::array<Cell, 4>> parts;
  std::vector<Cell *> freeParts;
};

/// An allocation, the shared memory of a block, or the local memory of a warp.
struct Storage {
  std::string name;
  uint64_t base = 0, size = 0;
  uint8_t *bytes = nullptr;
  std::vector<uint8_t> own; ///< memory of `bytes`; empty if the caller owns this memory
  std::vector<uint8_t> written;
  bool isReadOnly = false;
  /// For each byte, the flags wasRead and wasWritten record whether a launch has read or written
  /// the byte. If the vector is empty, accesses are not recorded. Recorded accesses are within
  /// [touchedBegin, touchedEnd).
  std::vector<uint8_t> touched;
  static constexpr uint8_t wasRead = 1, wasWritten = 2;
  uint64_t touchedBegin = UINT64_MAX, touchedEnd = 0;
  void noteTouched(uint64_t offset, unsigned count, uint8_t how) {
    for (unsigned i = 0; i < count; ++i)
      touched[offset + i] |= how;
    touchedBegin = std::min(touchedBegin, offset);
    touchedEnd = std::max(touchedEnd, offset + count);
  }
  Shadow shadow;
  /// The last access of one thread to the shared memory of another block.
  struct Visit {
    Time time = 0;
    uint32_t instruction = 0;
  };
  std::vector<Visit> visits; ///< index: thread of the cluster; empty before the first access

  void resize(uint64_t count);
};

/// The releases that clusters have made by writes to one address.
struct Published {
  uint32_t launch = 0, group = 0; ///< launch and cluster of the last release; 0 if there is none
  Released released;
  std::map<uint32_t, RowRef> foreign; ///< rows of other clusters, by their numbers
};

/// Global and constant memory.
class Memory {
public:
  /// Allocates memory. A program must write each byte of this memory before it reads the byte.
  Storage &allocate(std::string name, uint64_t size, uint64_t alignment = 256);
  /// Makes `size` bytes of the caller's memory accessible to programs. The bytes must live longer
  /// than this object, and count as initialised.
  Storage &attach(std::string name, void *bytes, uint64_t size);
  /// Does the same as attach(), except that the emulated address of the bytes is equal to their
  /// address in the host process. No other allocation may contain this address.
  Storage &attachInPlace(std::string name, void *bytes, uint64_t size);
  void release(Storage &storage);
  Storage *find(uint64_t address);
  /// Returns the allocation nearest to an address, for messages.
  const Storage *nearest(uint64_t address) const;
  /// Cluster::number of the next cluster.
  uint32_t nextGroup = 1;
  /// Cluster::number of the current launch's first cluster. All accesses of clusters with smaller
  /// numbers are ordered before the accesses of the current launch.
  uint32_t firstGroup = 1;
  std::map<const uint8_t *, Published> published;

private:
  std::map<uint64_t, std::unique_ptr<Storage>> storages;
  uint64_t nextBase = uint64_t(0x7f) << 40;
  Storage *last = nullptr;
};

/// Ranges of generic addresses (windows) for shared, local and parameter memory. Global and
/// constant memory have no window (PTX ISA, "Generic Addressing").
constexpr uint64_t windowShift = 40;
constexpr uint64_t sharedWindow = uint64_t(1) << windowShift,
                   localWindow = uint64_t(2) << windowShift,
                   parameterWindow = uint64_t(3) << windowShift;
/// Lowest bit of the rank in a shared::cluster address. The bits from this bit upwards contain one
/// plus the rank of the block in its cluster, or 0 for the executing block.
constexpr unsigned rankShift = 24;

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_MEMORY_H
