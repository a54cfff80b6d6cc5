//===- NcclStubShared.h - What members of the stand-in share ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A world is what comes of one id: the communicator of all ranks, and all that are split from it.
// It is a file in memory without a name (memfd), which its ranks map, be they threads of a process
// or processes: the id says which process has it open, and as what. So nothing is left behind,
// however ranks end.
//
//     [ lock, counts, cliques with their collectives under way
//     | room for what members give, a hole where there is nothing ]
//
// A clique is what the communicators of its members have in common: their n-th collectives are one.
// A member that arrives at one leaves what it gives in the file; when all have arrived each takes
// what it gets. The lock is one that a process which dies lets go of; the world is broken then.
// Nobody waits for it for ever.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_NCCL_NCCLSTUBSHARED_H
#define FSDPRT_TESTING_NCCL_NCCLSTUBSHARED_H

#include "collectives/nccl/NcclLibrary.h"
#include "fsdprt/artifact_generated.h"
#include <memory>
#include <pthread.h>
#include <vector>

namespace fsdprt::stub {

constexpr uint32_t mostMembers = 8, mostCliques = 64, mostUnderWay = 64;

/// What one member says of a collective: it has to be the same of all.
struct Call {
  fb::CollectiveKind kind = fb::CollectiveKind::all_gather;
  NcclType type = ncclU8;
  NcclOperation operation = ncclSum;
  uint64_t count = 0;
  int root = 0;
  char function[24] = "";
};

/// A collective under way: number n of its clique is in slot n % mostUnderWay, once those before it
/// there are over.
struct Slot {
  enum Verdict : uint32_t { open, agreed, hangs };
  uint64_t uses; // so far
  uint32_t arrived, passed;
  Verdict verdict;
  Call calls[mostMembers];
};

struct Member {
  uint32_t worldRank; // in the communicator of all
  bool isThere, underWay;
  NcclResult error;
  int color, key;             // of the split under way
  uint32_t child, childPlace; // of the last split
};

struct CommunicatorGroup {
  uint32_t size, joined, finalized, splits; // members that have come for each
  uint64_t splitRounds;
  bool isBroken;     // a member has aborted
  char problem[256]; // that calls differ in
  Member members[mostMembers];
  Slot slots[mostUnderWay];
};

struct SharedNcclState {
  pthread_mutex_t lock;
  bool isBroken; // a process died in the middle of a call
  uint32_t cliques;
  uint64_t executed, begunBy[mostMembers]; // collectives: by all together, by rank
  CommunicatorGroup clique[mostCliques];
};

class World {
public:
  /// A new one; null when there is no memory.
  static std::shared_ptr<World> make();
  /// The one that an id stands for, mapped once per process; null when it is gone.
  static std::shared_ptr<World> find(const NcclId &id);
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  const NcclId &getId() const { return id; }
  SharedNcclState *operator->() const { return shared; }
  /// Its number; mostCliques when there is no room.
  uint32_t addClique(uint32_t size);

  /// What a member gives to a collective, and how another one takes part of it. False: it cannot be
  /// moved.
  bool leave(uint32_t clique, uint32_t slot, uint32_t member, const void *data, size_t bytes) const;
  bool take(uint32_t clique, uint32_t slot, uint32_t member, size_t from, void *data,
            size_t bytes) const;
  void forget(uint32_t clique, uint32_t slot, uint32_t member) const;

private:
  World() = default;
  bool open(int descriptor);

  NcclId id = {};
  int file = -1;
  SharedNcclState *shared = nullptr;
};

/// False when a process that stands still has it.
class WorldLock {
public:
  explicit WorldLock(const World &world);
  ~WorldLock();
  explicit operator bool() const { return isLocked; }

private:
  const World &world;
  bool isLocked = false;
};

} // namespace fsdprt::stub

#endif // FSDPRT_TESTING_NCCL_NCCLSTUBSHARED_H
