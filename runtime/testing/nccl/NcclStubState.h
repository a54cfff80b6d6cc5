//===- NcclStubState.h - What the stand-in for NCCL keeps -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is of one process: its communicators, its streams, and what is counted. What communicators
// have in common is in NcclStubWorld.h. A collective is at the front of a member's stream or is
// not; when it is for all members it is done.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_NCCL_NCCLSTUBSTATE_H
#define FSDPRT_TESTING_NCCL_NCCLSTUBSTATE_H

#include "core/Error.h"
#include "testing/nccl/NcclStubShared.h"
#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace fsdprt::stub {

struct Comm {
  std::shared_ptr<World> world;
  uint32_t clique = 0, place = 0, worldRank = 0; // in the clique; in the first communicator
  CudaContext context = nullptr;
  std::atomic<bool> inside{false};
  bool isGone = false;
  uint64_t group = 0; // that its call under way is in; 0: in none
  int looks = 0;      // until what is under way has ended
  NcclComm *splitTo =
      nullptr; // written when the split that is under way is over: the one after so many
  uint64_t splitRound = 0;
  uint64_t submitted = 0, registrations = 0;

  CommunicatorGroup &shared() const { return (*world)->clique[clique]; }
  Member &self() const { return shared().members[place]; }
};

struct Event {
  uint64_t recorded = 0, reached = 0;
};

/// A member's part of a collective.
struct Move {
  Comm *comm = nullptr;
  uint64_t number = 0;
  Call call;
  const void *source = nullptr;
  void *target = nullptr;
  bool hasArrived = false;
  double notBefore = 0;
};
/// Goes on with it. True when it has ended.
bool arrive(Move &move);
/// How much later than it is begun it reaches its stream.
double delayOf(const Comm &comm);

/// One of a stream's commands: a collective, an event, a wait for one, or a fill.
struct Command : Move { // whose number may be that of the event's record
  Event *event = nullptr;
  bool waits = false; // for the event's record of this number, instead of recording it
  void *fill = nullptr;
  unsigned char value = 0;
  size_t bytes = 0;
};

struct Stream {
  CudaContext context;
  std::deque<Command> commands;
};

struct State {
  std::mutex lock;
  std::map<std::string, int64_t> switches;
  std::map<std::string, uint64_t> calls;
  uint64_t violations = 0, made = 0, living = 0, registered = 0;
  std::string firstViolation, lastError;
  std::shared_ptr<World> promised; // whose id was given out last, until a rank here has joined it
  std::set<Stream *> streams;
  std::map<const char *, size_t> pinned, onDevice;
  static thread_local CudaContext current;

  void setFromText(const char *text);
  int64_t value(const char *name, int64_t usual) const;
  /// Counts a call that is wrong.
  NcclResult wrong(const std::string &what);
  Stream *stream(CudaStream handle) const {
    auto *stream = reinterpret_cast<Stream *>(handle);
    return streams.count(stream) ? stream : nullptr;
  }
};

State &state();

/// The lock, and a count of a call.
class Guard {
public:
  explicit Guard(const char *function) : guard(state().lock) {
    if (*function)
      ++state().calls[function];
  }

private:
  std::lock_guard<std::mutex> guard;
};

inline uint64_t sizeOf(NcclType type) {
  return type == ncclU8                        ? 1
         : type == ncclF16 || type == ncclBF16 ? 2
         : type == ncclI64 || type == ncclF64  ? 8
                                               : 4;
}

/// What follows is of one device or another: NcclStubDevice.cpp, NcclStubEmulated.cpp.
CudaContext currentContext();
/// Null: there is no such stream.
CudaContext contextOf(CudaStream stream);
bool canReach(const void *base, size_t bytes);
bool isOnDevice(const void *base, size_t bytes);
/// Puts a member's part of its next collective on a stream.
bool submit(Comm *comm, CudaStream stream, const Call &call, const void *source, void *target);
/// Everything that can go on does.
void advance();
bool hasWork(const Comm *comm);
/// What a communicator has on streams goes away.
void forget(const Comm *comm);

} // namespace fsdprt::stub

#endif // FSDPRT_TESTING_NCCL_NCCLSTUBSTATE_H
