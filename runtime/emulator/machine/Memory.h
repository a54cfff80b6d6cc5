//===- Memory.h - Memory with a shadow --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every byte knows whether it was written, and every word who touched it last, for the checks.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_MEMORY_H
#define FSDPRT_EMULATOR_MACHINE_MEMORY_H

#include "emulator/machine/VectorClocks.h"
#include <algorithm>
#include <array>
#include <deque>

namespace fsdprt::emulate {

/// Of 16 bytes that were never touched but together, else of four bytes, or of one: who wrote them
/// last, and who has read them since. PTX ISA, "Memory Consistency Model": two accesses of which
/// one writes have to be ordered, unless both are strong (atomic, volatile, relaxed, ...).
struct Cell {
  struct Access {
    uint32_t group = 0; ///< the cluster, counted over all launches; 0: none
    Time time = 0;
    uint32_t serial = 0; ///< of the instruction in its warp
    uint32_t instruction = 0;
    LaneMask lanes = 0;
    uint16_t warp = 0; ///< in the cluster
    bool isStrong = false;
    bool isAsync = false; ///< by the async proxy
  };
  Access write, read;
  Access foreignRead;     ///< the last one of another cluster
  uint32_t moreReads = 0; ///< index into Shadow::chains, or 0
  uint32_t weakWrite = 0; ///< the same: of the last weak write, if `write` is a strong one after it
  Cell *parts = nullptr;  ///< four cells, each of a quarter, instead of this one
};

class Shadow {
public:
  static constexpr unsigned cellBytes = 16, pageCells = 256;
  Cell &cell(uint64_t index);
  /// From then on its quarters have cells of their own, ...
  void split(Cell &cell);
  /// ... and no more, all of them having been written at once.
  void join(Cell &cell);
  void clear();

  struct Chained {
    Cell::Access access;
    uint32_t next;
  };
  std::vector<Chained> chains{1};
  uint32_t chain(const Cell::Access &access, uint32_t next);
  void dropReads(Cell &cell);
  /// The write that is there becomes one that others are after it, or there is none.
  void keepWeakWrite(Cell &cell);
  void dropWeakWrite(Cell &cell) { drop(cell.weakWrite); }

private:
  void drop(uint32_t &first);

  uint32_t freeChain = 0;
  std::vector<std::unique_ptr<Cell[]>> pages;
  std::deque<std::array<Cell, 4>> parts;
  std::vector<Cell *> freeParts;
};

/// One allocation, or the shared memory of a block, or the local memory of a warp.
struct Storage {
  std::string name;
  uint64_t base = 0, size = 0;
  uint8_t *bytes = nullptr;
  std::vector<uint8_t> own; ///< where `bytes` are, unless they are somebody else's
  std::vector<uint8_t> written;
  bool isReadOnly = false;
  /// By bytes, where somebody has made room for it: what launches did to them, those in
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
  /// Of a block's shared memory: when threads of other blocks were here last, and by which
  /// instruction.
  struct Visit {
    Time time = 0;
    uint32_t instruction = 0;
  };
  std::vector<Visit> visits; ///< by threads of the cluster; empty: nobody was

  void resize(uint64_t count);
};

/// What was released at an address.
struct Published {
  uint32_t launch = 0, group = 0; ///< of whom; 0: nobody
  Released released;
  std::map<uint32_t, RowRef> foreign; ///< of clusters before it
};

/// Global and constant memory. Between allocations are addresses that belong to none.
class Memory {
public:
  /// Bytes that nobody has written yet.
  Storage &allocate(std::string name, uint64_t size, uint64_t alignment = 256);
  /// Bytes of the caller, which are taken as written and have to outlive the memory.
  Storage &attach(std::string name, void *bytes, uint64_t size);
  /// The same, with the caller's address as the emulated one. No allocation may lie there.
  Storage &attachInPlace(std::string name, void *bytes, uint64_t size);
  void release(Storage &storage);
  Storage *find(uint64_t address);
  /// The allocation that ends or begins nearest to an address, for messages.
  const Storage *nearest(uint64_t address) const;
  /// Between launches everything is ordered.
  uint32_t nextGroup = 1;
  /// Groups before this one are of earlier launches.
  uint32_t firstGroup = 1;
  std::map<const uint8_t *, Published> published;

private:
  std::map<uint64_t, std::unique_ptr<Storage>> storages;
  uint64_t nextBase = uint64_t(0x7f) << 40;
  Storage *last = nullptr;
};

/// Generic addresses of other spaces; those of global and constant memory are as they are (PTX ISA,
/// "Generic Addressing").
constexpr uint64_t windowShift = 40;
constexpr uint64_t sharedWindow = uint64_t(1) << windowShift,
                   localWindow = uint64_t(2) << windowShift,
                   parameterWindow = uint64_t(3) << windowShift;
/// In shared::cluster addresses, the rank of the block plus one is above these bits; 0 is the own
/// block.
constexpr unsigned rankShift = 24;

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_MEMORY_H
