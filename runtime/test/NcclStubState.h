//===- NcclStubState.h - What the stand-in for NCCL keeps -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A clique is what the communicators of its members have in common: their n-th collectives are one. A collective is at
// the front of a member's stream or is not; when it is for all members it is done, for all at once.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_NCCLSTUBSTATE_H
#define FSDPRT_TEST_NCCLSTUBSTATE_H

#include "collectives/NcclLibrary.h"
#include "core/Error.h"
#include "fsdprt/artifact_generated.h"
#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace fsdprt::stub {

struct Clique;

struct Comm {
  Clique *clique = nullptr;
  uint32_t place = 0, worldRank = 0; // in the clique; in the first communicator
  CudaContext context = nullptr;
  std::atomic<bool> inside{false};
  bool isGone = false, underWay = false;
  int looks = 0; // until what is under way has ended
  NcclResult error = ncclOk;
  uint64_t submitted = 0, registrations = 0;
};

/// What one member gives to a collective.
struct Work {
  fb::CollectiveKind kind;
  NcclType type;
  NcclOperation operation;
  size_t count;
  int root;
  const void *source;
  void *target;
  const char *function = "";
};

struct Part {
  bool isThere = false, hasArrived = false;
  Work work;
  double notBefore = 0;
};

struct Meeting {
  std::vector<Part> parts;
  size_t arrived = 0;
  bool isDone = false, hangs = false;
};

struct Split {
  Comm *parent;
  int color, key;
  NcclComm *to;
};

struct Clique {
  explicit Clique(uint32_t size) : members(size) {}
  std::vector<Comm *> members;
  size_t joined = 0, finalized = 0;
  bool isBroken = false; // a member has aborted
  std::vector<Split> splits;
  std::map<uint64_t, Meeting> meetings; // by number
};

struct Event {
  uint64_t recorded = 0, reached = 0;
};

/// One of a stream's commands: a collective, an event or a fill.
struct Command {
  Comm *comm = nullptr;
  uint64_t number = 0; // of the collective, or of the event's record
  Event *event = nullptr;
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
  uint64_t violations = 0, made = 0, living = 0, registered = 0, executed = 0;
  std::string firstViolation, lastError;
  std::map<std::string, Clique *> cliques; // by id
  std::map<uint32_t, uint64_t> begunBy;    // collectives, by rank
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
  return type == ncclU8 ? 1 : type == ncclF16 || type == ncclBF16 ? 2 : type == ncclI64 || type == ncclF64 ? 8 : 4;
}

bool canReach(const void *base, size_t bytes);
bool isOnDevice(const void *base, size_t bytes);
/// Puts a member's part of its next collective on a stream.
void submit(Comm *comm, Stream &stream, const Work &work);
/// Everything that can go on does.
void advance();
bool hasWork(const Comm *comm);
/// What a communicator has on streams goes away.
void forget(const Comm *comm);

} // namespace fsdprt::stub

#endif // FSDPRT_TEST_NCCLSTUBSTATE_H
