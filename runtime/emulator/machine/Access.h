//===- Access.h - Checked accesses to memory --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Finds the allocation that contains an address, and checks the access. The access must be aligned
// and within the allocation. Bytes that it reads must be initialised. The access must not race with
// accesses of other threads. All accesses of emulated programs to memory use this class.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MACHINE_ACCESS_H
#define FSDPRT_EMULATOR_MACHINE_ACCESS_H

#include "emulator/machine/Machine.h"

namespace fsdprt::emulate {

struct Place {
  Storage *storage = nullptr;
  uint64_t offset = 0;
  bool isGlobal = false, isShared = false;
  uint8_t *bytes() const { return storage->bytes + offset; }
};

enum class Touch : uint8_t { Reads, Writes, Updates };

/// The memory accesses of one instruction of a warp. While an Access exists, no thread may acquire
/// releases of other threads, because the Access stores which earlier accesses precede it in order.
class Access {
public:
  Access(Warp &warp, Touch touch) : warp(warp), touch(touch) {}
  bool isStrong = false; ///< true for a strong access (PTX ISA, "Strong Operations")
  bool isAsync = false;  ///< true if the access goes through the async proxy

  /// Resolves an address. Fails if the address is out of bounds or misaligned.
  Place resolve(Space space, uint64_t address, unsigned bytes, unsigned lane,
                unsigned alignment = 0) const;
  /// Checks an access of a lane. `thread` is the lane's thread, or the agent of the lane's thread.
  /// A write must be checked before the bytes in memory change; `value` then points to the new
  /// bytes.
  void check(const Place &place, unsigned bytes, unsigned lane, uint32_t thread,
             const uint8_t *value = nullptr);
  void check(const Place &place, unsigned bytes, unsigned lane, const uint8_t *value = nullptr) {
    check(place, bytes, lane, warp.thread(lane), value);
  }

private:
  [[noreturn]] void outOfBounds(Space space, uint64_t address, unsigned bytes, unsigned lane,
                                const Storage *nearest) const;
  void checkWritten(const Place &place, unsigned bytes, unsigned lane) const;
  void noteVisit(const Place &place, uint32_t thread) const;
  void checkRaces(const Place &place, unsigned bytes, unsigned lane, uint32_t thread,
                  const uint8_t *value);
  void checkCell(Cell &cell, unsigned size, uint64_t begin, uint64_t end, const Place &place,
                 unsigned lane, uint32_t thread, bool isSameValue);
  void touchCell(Cell &cell, const Place &place, unsigned bytes, unsigned lane, uint32_t thread,
                 bool isSameValue);
  void noteRead(Cell &cell, const Place &place, const Cell::Access &now, uint32_t thread);
  void checkAgainst(const Cell::Access &before, bool wasWrite, const Place &place, unsigned bytes,
                    unsigned lane, uint32_t thread, bool isSameValue) const;
  bool isOrdered(const Cell::Access &before, uint32_t thread) const;
  bool isProxied(const Cell::Access &before, uint32_t thread) const;
  std::string nameOfThreads(const Cell::Access &access) const;
  [[noreturn]] void reportRace(const Cell::Access &before, bool wasWrite, const Place &place,
                               unsigned bytes, unsigned lane) const;

  /// The earlier access that the last check has found to be ordered before this access.
  /// Neighbouring cells mostly record the same earlier access. For such cells, the order is not
  /// checked again.
  struct Known {
    Cell::Access access;
    uint32_t thread = 0;
  };
  mutable Known known[2];

  Warp &warp;
  Touch touch;
};

/// Returns the name of a place for messages: "shared memory + 0x40", "'x' + 16".
std::string describe(const Place &place);

/// Counts the global and shared memory traffic of an instruction.
class Traffic {
public:
  void add(const Place &place, uint64_t address, unsigned bytes);
  void count(Counters &counters, bool isStore) const;

private:
  uint64_t global[warpSize], shared[warpSize];
  unsigned globalCount = 0, sharedCount = 0, size = 0;
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MACHINE_ACCESS_H
