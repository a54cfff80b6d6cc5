//===- NcclStubState.h - Process state of the NCCL stub ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the state of one process: communicators, streams and counts. NcclStubShared.h declares
// the state shared by communicators. A collective runs when it is the next command of the streams
// of all members.
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

/// Registered memory of a member.
struct Window {
  const char *base = nullptr;
  size_t bytes = 0;
  NcclWindow handle = nullptr;
};

struct Comm {
  std::shared_ptr<World> world;
  // `place` is the rank in the clique. `worldRank` is the rank in the communicator of all ranks.
  uint32_t clique = 0, place = 0, worldRank = 0;
  CudaContext context = nullptr;
  std::atomic<bool> inside{false};
  bool isGone = false;
  uint64_t group = 0;          // group that contains the call in progress; 0 for none
  int looks = 0;               // number of polls until the call in progress ends
  NcclComm *splitTo = nullptr; // where split `splitRound` stores its communicator
  uint64_t splitRound = 0;
  uint64_t submitted = 0, registrations = 0;
  NcclWindow *windowTo = nullptr; // where registration `windowRound` stores its window
  uint64_t windowRound = 0;
  Window pending; // of this registration; without bytes if there will be no window
  std::vector<Window> windows;

  CommunicatorGroup &shared() const { return (*world)->clique[clique]; }
  Member &self() const { return shared().members[place]; }
};

struct Event {
  uint64_t recorded = 0, reached = 0;
};

/// The execution of a collective by one member.
struct Move {
  Comm *comm = nullptr;
  uint64_t number = 0;
  Call call;
  const void *source = nullptr;
  void *target = nullptr;
  bool hasArrived = false;
  double notBefore = 0;
};
/// Advances the execution of a collective by one member. Returns true when the collective has ended
/// for this member.
bool arrive(Move &move);
/// Returns the delay, in seconds, after which collectives of the member reach the stream.
double delayOf(const Comm &comm);

/// A command of a stream: a collective, an event, a wait for an event, or a fill. If the command
/// uses an event, `number` is the number of a record of this event: the record that the command
/// makes or waits for.
struct Command : Move {
  Event *event = nullptr;
  bool waits = false; // true if the command waits for `event`, and false if it records `event`
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
  uint64_t violations = 0, made = 0, living = 0, registered = 0, windows = 0;
  int64_t maxCTAs = 0, ctaPolicy = 0; // of the last ncclCommInitRankConfig
  std::string firstViolation, lastError;
  std::shared_ptr<World> promised; // world of the last created id, until a rank uses it
  std::set<Stream *> streams;
  std::map<const char *, size_t> pinned, onDevice;
  std::map<const char *, size_t> allocated; // by ncclMemAlloc
  static thread_local CudaContext current;

  void setFromText(const char *text);
  int64_t value(const char *name, int64_t usual) const;
  NcclResult wrong(const std::string &what);
  Stream *stream(CudaStream handle) const {
    auto *stream = reinterpret_cast<Stream *>(handle);
    return streams.count(stream) ? stream : nullptr;
  }
};

State &state();

/// Holds the lock of the process's state, and counts a call of `function`.
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

/// If the registration of a window has ended, stores the window.
void takeWindow(Comm *comm);
void dropWindows(Comm *comm);
/// Stores in `call` the offsets of the source and the target of a collective in the windows of
/// `comm`. Returns false if there are windows, and none contains the source or the target.
bool findOffsets(const Comm &comm, Call &call, const void *source, const void *target);

/// NcclStubDevice.cpp and NcclStubEmulated.cpp both implement the functions that follow.
CudaContext currentContext();
/// Returns the context of a stream, or null if the stream is unknown.
CudaContext contextOf(CudaStream stream);
bool canReach(const void *base, size_t bytes);
bool isOnDevice(const void *base, size_t bytes);
CudaResult allocate(CudaPointer *memory, size_t bytes);
CudaResult release(CudaPointer memory);
bool submit(Comm *comm, CudaStream stream, const Call &call, const void *source, void *target);
void advance();
bool hasWork(const Comm *comm);
void forget(const Comm *comm);

} // namespace fsdprt::stub

#endif // FSDPRT_TESTING_NCCL_NCCLSTUBSTATE_H
