//===- AsyncProxy.h - Copies through the async proxy ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An agent makes the accesses of a copy when the copy is issued. The copy is ordered before later
// accesses of threads that observe the end of the phase of its mbarrier or wait for its group.
// Copies use the async proxy, to which ordinary stores are visible only after fence.proxy.async.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MEMORY_ASYNCPROXY_H
#define FSDPRT_EMULATOR_MEMORY_ASYNCPROXY_H

#include "emulator/memory/Combine.h"
#include "emulator/memory/Mbarriers.h"

namespace fsdprt::emulate {

/// The operation of a copy that combines its data with the values in memory.
struct Reduction {
  Combination op;
  Type type;
};

/// An asynchronous copy that a lane starts. `isAsyncProxy` is false for st.async and red.async,
/// which use the generic proxy.
class AsyncCopy {
public:
  AsyncCopy(Warp &warp, unsigned lane, bool isAsyncProxy = true);
  /// Resolves bytes that the copy may read. checkRead() must check the bytes that the copy does
  /// read.
  Place place(Space space, uint64_t address, unsigned bytes, unsigned alignment) const {
    return reads.resolve(space, address, bytes, lane, alignment);
  }
  /// Resolves and checks bytes that the copy reads.
  Place read(Space space, uint64_t address, unsigned bytes, unsigned alignment);
  void checkRead(const Place &place, unsigned bytes);
  /// Resolves bytes that the copy writes. The copy may not read after this call.
  Place writeTo(Space space, uint64_t address, unsigned bytes, unsigned alignment);
  void write(const Place &place, const uint8_t *data, unsigned bytes);
  /// Writes data. With a reduction, combines each element with the value in memory by a strong
  /// operation.
  void write(const Place &place, const uint8_t *data, unsigned bytes,
             const std::optional<Reduction> &reduction);
  /// Completes the copy by adding `bytes` to an mbarrier in shared memory.
  void complete(uint64_t mbarrier, unsigned bytes, const Storage &destination);
  /// Completes the copy by adding the copy to the lane's open group.
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

/// Returns the ranks of the blocks in a lane's mask for .multicast::cluster.
std::vector<uint32_t> multicastRanks(Warp &warp, unsigned lane, Slot mask);
/// Returns the address in another block of the cluster that corresponds to `sharedAddress`.
constexpr uint64_t inBlock(uint64_t sharedAddress, uint32_t rank) {
  return (sharedAddress & ((uint64_t(1) << rankShift) - 1)) | uint64_t(rank + 1) << rankShift;
}

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MEMORY_ASYNCPROXY_H
