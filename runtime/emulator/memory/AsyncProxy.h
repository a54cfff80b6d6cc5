//===- AsyncProxy.h - What copies of the async proxy share ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A copy acts at once, by an agent of its own, whose work those know who see the end of its
// mbarrier's phase, or wait for its group. It is in the async proxy: what ordinary stores wrote, it
// sees after fence.proxy.async.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MEMORY_ASYNCPROXY_H
#define FSDPRT_EMULATOR_MEMORY_ASYNCPROXY_H

#include "emulator/memory/Combine.h"
#include "emulator/memory/Mbarriers.h"

namespace fsdprt::emulate {

/// What copies do to numbers that are there.
struct Reduction {
  Combination op;
  Type type;
};

/// One copy that a lane starts. Those of st.async and red.async are in the generic proxy.
class AsyncCopy {
public:
  AsyncCopy(Warp &warp, unsigned lane, bool isAsyncProxy = true);
  /// What the copy reads; its parts are checked by checkRead().
  Place place(Space space, uint64_t address, unsigned bytes, unsigned alignment) const {
    return reads.resolve(space, address, bytes, lane, alignment);
  }
  /// Bytes that the copy reads, checked.
  Place read(Space space, uint64_t address, unsigned bytes, unsigned alignment);
  void checkRead(const Place &place, unsigned bytes);
  /// Where it writes: all of its reads come before.
  Place writeTo(Space space, uint64_t address, unsigned bytes, unsigned alignment);
  void write(const Place &place, const uint8_t *data, unsigned bytes);
  /// The same, or combined with what is there, each element by a strong operation.
  void write(const Place &place, const uint8_t *data, unsigned bytes,
             const std::optional<Reduction> &reduction);
  /// All is written: an mbarrier in shared memory gets `bytes`, ...
  void complete(uint64_t mbarrier, unsigned bytes, const Storage &destination);
  /// ... or the lane's open group has one more.
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

/// Of .multicast::cluster: the blocks whose bits are set in a lane's mask.
std::vector<uint32_t> multicastRanks(Warp &warp, unsigned lane, Slot mask);
/// The same place of another block of the cluster.
constexpr uint64_t inBlock(uint64_t sharedAddress, uint32_t rank) {
  return (sharedAddress & ((uint64_t(1) << rankShift) - 1)) | uint64_t(rank + 1) << rankShift;
}

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MEMORY_ASYNCPROXY_H
