//===- Mbarriers.h - Barriers in shared memory ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the operations of PTX ISA, "Parallel Synchronization and Communication Instructions:
// mbarrier". A phase ends after all expected arrivals have occurred and all announced bytes have
// been received. PTX ISA does not define the contents of the 8 bytes of an mbarrier. The emulator
// stores a copy of the state of the mbarrier in these bytes. With this copy, the emulator detects
// that a program has overwritten the bytes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MEMORY_MBARRIERS_H
#define FSDPRT_EMULATOR_MEMORY_MBARRIERS_H

#include "emulator/machine/Access.h"

namespace fsdprt::emulate {

/// A reference to an mbarrier of the lane's block, or of another block of the cluster.
class MbarrierRef {
public:
  MbarrierRef(Warp &warp, unsigned lane, Space space, uint64_t address)
      : MbarrierRef(warp, lane, warp.thread(lane), space, address) {}
  /// Finds the mbarrier at an address. Fails if there is no mbarrier at this address. `thread` is
  /// the lane's thread, or this thread's agent in the async proxy.
  MbarrierRef(Warp &warp, unsigned lane, uint32_t thread, Space space, uint64_t address);
  void arrive(uint32_t count, bool drops);
  void expect(int64_t bytes);
  void complete(int64_t bytes) { expect(-bytes); }
  /// Adds a release of `thread` to the current phase. Threads that observe the end of the phase
  /// acquire this release.
  void release(uint32_t thread);
  /// Fails unless a fence has made mbarrier.init visible to `agent` in the async proxy.
  void checkVisible(uint32_t agent) const;
  /// Ends the phase if no arrivals and no bytes are missing.
  void finish();
  void remove();
  bool hasEnded(uint32_t parity) const { return barrier->phase != parity; }
  /// Lets lanes of the warp acquire the memory accesses that threads have released by arriving in
  /// the last phase that has ended.
  void acquire(LaneMask lanes);
  uint64_t state() const { return barrier->bits(); }
  /// Returns the address of the mbarrier in shared::cluster.
  uint64_t address() const { return uint64_t(owner->rank + 1) << rankShift | offset; }
  const Block &block() const { return *owner; }

private:
  void store();

  Warp *warp;
  unsigned lane;
  Block *owner;
  uint64_t offset;
  Mbarrier *barrier;
  uint8_t *bytes;
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MEMORY_MBARRIERS_H
