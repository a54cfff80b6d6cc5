//===- NcclStubShared.h - Shared state of the NCCL stub ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A world is the shared state of several communicators: the communicator of all ranks, and all
// communicators that are split off from this communicator. A world is an anonymous file in memory
// (memfd), which each process maps. The id of the world names the process and the descriptor that
// keep the file open. The system frees the file even if ranks are killed.
//
//     [ lock, counts, cliques with their collectives in progress
//     | contributions of members: a hole in the file where there are none ]
//
// A clique is the shared state of one communicator. The n-th calls of collectives on all members of
// a clique belong to the same collective. A member that arrives at a collective writes its
// contribution to the file; after all members have arrived, each member reads its result. The lock
// is robust: if the owner of the lock dies, the world is marked as broken, so that no member waits
// for ever.
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

/// The function and the arguments of a collective, which must be equal on all members.
struct Call {
  fb::CollectiveKind kind = fb::CollectiveKind::all_gather;
  NcclType type = ncclU8;
  NcclOperation operation = ncclSum;
  uint64_t count = 0;
  int root = 0;
  char function[24] = "";
  int64_t sourceOffset = -1, targetOffset = -1; // in windows, or -1
};

/// A collective in progress. Collective n of a clique uses the slot n % mostUnderWay, after the
/// earlier collectives of this slot have ended.
struct Slot {
  enum Verdict : uint32_t { open, agreed, hangs };
  uint64_t uses; // number of ended collectives that used this slot
  uint32_t arrived, passed;
  Verdict verdict;
  Call calls[mostMembers];
};

struct Member {
  uint32_t worldRank; // rank in the communicator of all ranks
  bool isThere, underWay;
  NcclResult error;
  int color, key;             // arguments of ncclCommSplit
  uint32_t child, childPlace; // clique, and rank in this clique, after the last split
  uint64_t windowBytes;       // size of the memory that the member registers as a window
};

struct CommunicatorGroup {
  // `size` is the number of members. `joined`, `finalized` and `splits` are the numbers of members
  // that have called the function for initialisation, finalisation or a split, and `windows` that
  // of members that have registered a window.
  uint32_t size, joined, finalized, splits, windows;
  uint64_t splitRounds, windowRounds;
  bool isBroken;     // true if a member has aborted
  char problem[256]; // text that says how the calls of members differ
  Member members[mostMembers];
  Slot slots[mostUnderWay];
};

struct SharedNcclState {
  pthread_mutex_t lock;
  bool isBroken; // true if a process died during a call
  uint32_t cliques;
  uint64_t executed,
      begunBy[mostMembers]; // numbers of completed collectives and, by rank, of begun collectives
  CommunicatorGroup clique[mostCliques];
};

class World {
public:
  /// Creates a world. Returns null if memory is missing.
  static std::shared_ptr<World> make();
  /// Returns the world of an id, or null if there is no such world. A process maps a world only
  /// once.
  static std::shared_ptr<World> find(const NcclId &id);
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  const NcclId &getId() const { return id; }
  SharedNcclState *operator->() const { return shared; }
  /// Adds a clique and returns its index. Returns mostCliques if there is no room for the clique.
  uint32_t addClique(uint32_t size);

  /// leave() writes the contribution of a member to a collective. take() reads a part of a
  /// contribution. Both functions return false on failure.
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

/// Holds the lock of a world during its lifetime. The object converts to false if it could not take
/// the lock because a stopped process holds the lock.
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
