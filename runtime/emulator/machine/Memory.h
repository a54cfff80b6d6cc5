//===- Memory.h - Memory with a shadow --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For the checks, every byte records whether it was written, and every word its last accesses.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_MEMORY_H
#define FSDPRT_EMULATOR_MACHINE_MEMORY_H

#include "emulator/machine/VectorClocks.h"
#include <algorithm>
#include <array>
#include <deque>

namespace fsdprt::emulate {

/// Accesses to 16 bytes, or to 4 bytes or one byte if some access covered only a part: the last
/// write and the reads since. PTX ISA, "Memory Consistency Model": two accesses of which one writes
/// must be ordered, unless both are strong (atomic, volatile, relaxed, ...).
struct Cell {
  struct Access {
    uint32_t group = 0; ///< number of the cluster over all launches; 0: none
    Time time = 0;
    uint32_t serial = 0; ///< number of the instruction in its warp
    uint32_t instruction = 0;
    LaneMask lanes = 0;
    uint16_t warp = 0; ///< in the cluster
    bool isStrong = false;
    bool isAsync = false; ///< through the async proxy
  };
  Access write, read;
  Access foreignRead;     ///< last read by another cluster
  uint32_t moreReads = 0; ///< index into Shadow::chains, or 0
  uint32_t weakWrite = 0; ///< index of the last weak write, if `write` is a later strong one; or 0
  Cell *parts = nullptr;  ///< four cells, one per quarter, that replace this one
};

class Shadow {
public:
  static constexpr unsigned cellBytes = 16, pageCells = 256;
  Cell &cell(uint64_t index);
  /// Gives each quarter of the cell a cell of its own, ...
  void split(Cell &cell);
  /// ... and drops these after a write of the whole cell.
  void join(Cell &cell);
  void clear();

  struct Chained {
    Cell::Access access;
    uint32_t next;
  };
  std::vector<Chained> chains{1};
  uint32_t chain(const Cell::Access &access, uint32_t next);
  void dropReads(Cell &cell);
  /// Makes the cell's write, if it is weak, its weak write; later strong writes follow it.
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
  std::vector<uint8_t> own; ///< owns `bytes`, unless the caller does
  std::vector<uint8_t> written;
  bool isReadOnly = false;
  /// Accesses of launches to each byte, if it has been given a size; those are within
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
  /// Last access by threads of other blocks to the shared memory of a block: time and instruction.
  struct Visit {
    Time time = 0;
    uint32_t instruction = 0;
  };
  std::vector<Visit> visits; ///< by thread of the cluster; empty: none

  void resize(uint64_t count);
};

/// Releases at an address.
struct Published {
  uint32_t launch = 0, group = 0; ///< launch and group of the last release; 0: none
  Released released;
  std::map<uint32_t, RowRef> foreign; ///< of clusters before that one
};

/// Global and constant memory. Addresses between allocations belong to none.
class Memory {
public:
  /// Allocates bytes that count as not written.
  Storage &allocate(std::string name, uint64_t size, uint64_t alignment = 256);
  /// Maps bytes of the caller. They count as written and must outlive the memory.
  Storage &attach(std::string name, void *bytes, uint64_t size);
  /// Maps bytes of the caller at their own address, where no other allocation may lie.
  Storage &attachInPlace(std::string name, void *bytes, uint64_t size);
  void release(Storage &storage);
  Storage *find(uint64_t address);
  /// Returns the allocation nearest to an address, for messages.
  const Storage *nearest(uint64_t address) const;
  /// Number of the next cluster. Launches are ordered one after another.
  uint32_t nextGroup = 1;
  /// Clusters with lower numbers belong to earlier launches.
  uint32_t firstGroup = 1;
  std::map<const uint8_t *, Published> published;

private:
  std::map<uint64_t, std::unique_ptr<Storage>> storages;
  uint64_t nextBase = uint64_t(0x7f) << 40;
  Storage *last = nullptr;
};

/// Windows of the other spaces among generic addresses. Global and constant memory have no window
/// (PTX ISA, "Generic Addressing").
constexpr uint64_t windowShift = 40;
constexpr uint64_t sharedWindow = uint64_t(1) << windowShift,
                   localWindow = uint64_t(2) << windowShift,
                   parameterWindow = uint64_t(3) << windowShift;
/// Bits of shared::cluster addresses from this one up hold the rank of the block plus one; 0 is the
/// own block.
constexpr unsigned rankShift = 24;

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_MEMORY_H
