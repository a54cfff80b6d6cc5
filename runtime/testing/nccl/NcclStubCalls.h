//===- NcclStubCalls.h - Checks of calls of the NCCL stub -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks that hold for every call on a communicator, and the groups of calls of a thread.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_NCCL_NCCLSTUBCALLS_H
#define FSDPRT_TESTING_NCCL_NCCLSTUBCALLS_H

#include "testing/nccl/NcclStubState.h"

namespace fsdprt::stub {

inline NcclComm handleOf(Comm *comm) { return reinterpret_cast<NcclComm>(comm); }

inline thread_local int groupDepth = 0;
inline thread_local bool groupHasUnderWay = false;
// Number of the current group. Within a group, several calls may use the same communicator.
inline thread_local uint64_t groupNumber = 0;

/// Checks a call on a communicator. It must exist, and no other thread may be using it. Unless
/// `anyTime` is true, no earlier call on the communicator may be in progress.
class CommCall {
public:
  CommCall(const char *function, NcclComm handle, bool anyTime)
      : comm(reinterpret_cast<Comm *>(handle)), isAlone(!comm || !comm->inside.exchange(true)),
        guard(function) {
    State &all = state();
    if (!comm)
      result = all.wrong(format("%s: the communicator is null", function));
    else if (!isAlone)
      result = all.wrong(format("%s: another thread is in a call on this communicator", function));
    else if (comm->isGone)
      result = all.wrong(format("%s: this communicator has been destroyed or aborted", function));
    else if (!anyTime && isUnderWay())
      result = all.wrong(format("%s: this communicator has a call under way", function));
  }
  ~CommCall() {
    if (comm && isAlone)
      comm->inside = false;
  }
  Comm *comm;
  NcclResult result = ncclOk;

private:
  bool isUnderWay() const {
    WorldLock lock(*comm->world);
    return !lock || (comm->self().underWay && (groupDepth == 0 || comm->group != groupNumber));
  }
  bool isAlone;
  Guard guard;
};

/// Marks a call as in progress. The caller holds the lock of the world.
inline NcclResult began(Comm *comm) {
  comm->self().underWay = true;
  comm->group = groupDepth > 0 ? groupNumber : 0;
  groupHasUnderWay |= groupDepth > 0;
  return ncclInProgress;
}

/// Marks the calls of all members that are in progress as ended.
inline void complete(CommunicatorGroup &clique) {
  for (Member &member : clique.members)
    member.underWay = false;
}

inline NcclResult standsStill() {
  state().lastError = "a stopped process holds the lock of the communicators";
  return ncclSystemError;
}

} // namespace fsdprt::stub

#endif // FSDPRT_TESTING_NCCL_NCCLSTUBCALLS_H
