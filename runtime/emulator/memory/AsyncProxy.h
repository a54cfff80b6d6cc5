//===- AsyncProxy.h - Copies through the async proxy ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An agent (see VectorClocks.h) makes the accesses of a copy immediately when a lane issues the
// copy. The copy is ordered before an access of a thread if the thread has waited for the copy's
// group, or for the mbarrier that counts the copy's bytes. Copies use the async proxy, to which
// ordinary stores are visible only after fence.proxy.async.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MEMORY_ASYNCPROXY_H
#define FSDPRT_EMULATOR_MEMORY_ASYNCPROXY_H

#include "emulator/memory/Combine.h"
#include "emulator/memory/Mbarriers.h"

namespace fsdprt::emulate {

/// The operation with which a copy combines its data with the values in memory, and the type of the
/// operands.
struct Reduction {
  Combination op;
  Type type;
};

/// An asynchronous copy that a lane starts. `isAsyncProxy` is false for st.async and red.async,
/// which use the generic proxy.
class AsyncCopy {
public:
  AsyncCopy(Warp &warp, unsigned lane, bool isAsyncProxy = true);
  /// Finds the allocation of bytes that the copy may read. The caller must then call checkRead()
  /// for the bytes that the copy does read.
  Place place(Space space, uint64_t address, unsigned bytes, unsigned alignment) const {
    return reads.resolve(space, address, bytes, lane, alignment);
  }
  /// Finds the allocation of bytes that the copy reads, and checks the read.
  Place read(Space space, uint64_t address, unsigned bytes, unsigned alignment);
  void checkRead(const Place &place, unsigned bytes);
  /// Finds the allocation of bytes that the copy writes. After this call, the copy must not read.
  Place writeTo(Space space, uint64_t address, unsigned bytes, unsigned alignment);
  void write(const Place &place, const uint8_t *data, unsigned bytes);
  /// Writes data. If `reduction` is set, combines each element with the value in memory by a strong
  /// operation.
  void write(const Place &place, const uint8_t *data, unsigned bytes,
             const std::optional<Reduction> &reduction);
  /// Ends the copy: counts `bytes` as received by the mbarrier at the shared address `mbarrier`.
  void complete(uint64_t mbarrier, unsigned bytes, const Storage &destination);
  /// Ends the copy: adds the copy to the open group of the lane.
  void joinGroup();

private:
  void noteReadsAreDone();
  void reduce(const Place &place, const uint8_t *data, unsigned bytes, const Reduction &reduction);

  Warp &warp;
  unsigned lane;
  uint32_t agent;
  Access reads, writes, updates;
  Time readTime = 0;
};

/// Returns the ranks of the blocks that a lane's mask for .multicast::cluster contains.
std::vector<uint32_t> multicastRanks(Warp &warp, unsigned lane, Slot mask);
/// Returns the address in another block of the cluster that corresponds to `sharedAddress`.
constexpr uint64_t inBlock(uint64_t sharedAddress, uint32_t rank) {
  return (sharedAddress & ((uint64_t(1) << rankShift) - 1)) | uint64_t(rank + 1) << rankShift;
}

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MEMORY_ASYNCPROXY_H
