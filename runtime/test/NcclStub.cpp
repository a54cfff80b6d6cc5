//===- NcclStub.cpp - A library that stands in for NCCL ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Communicators: how they come to be and end, and what is checked of calls on them. Streams, memory and the moving of
// data are in NcclStubDevice.cpp. One lock is around everything; no call waits for anything else, and nothing happens but
// in calls.
//
//===----------------------------------------------------------------------===//

#include "NcclStub.h"
#include "NcclStubState.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::stub;

//===- Switches, counts, violations -----------------------------------------===//

State &stub::state() {
  static State *it = [] {
    auto *made = new State; // for ever: ranks may look at it until the process ends
    if (const char *given = std::getenv("FSDPRT_NCCL_STUB"))
      made->setFromText(given);
    return made;
  }();
  return *it;
}

void State::setFromText(const char *text) {
  char name[64];
  long value;
  for (int length = 0; std::sscanf(text, "%63[^=]=%ld%n", name, &value, &length) == 2; text += *text == ',') {
    switches[name] = value;
    text += length;
  }
}

int64_t State::value(const char *name, int64_t usual) const {
  auto found = switches.find(name);
  return found == switches.end() ? usual : found->second;
}

NcclResult State::wrong(const std::string &what) {
  if (violations++ == 0)
    firstViolation = what;
  lastError = what;
  return ncclInvalidUsage;
}

void fsdprt_nccl_stub_set(const char *name, int64_t value) {
  Guard guard("");
  state().switches[name] = value;
}

void fsdprt_nccl_stub_reset() {
  Guard guard("");
  State &all = state();
  all.switches.clear();
  all.calls.clear();
  all.violations = all.made = all.executed = 0;
  all.begunBy.clear();
  all.firstViolation = all.lastError = "";
}

uint64_t fsdprt_nccl_stub_calls(const char *function) {
  Guard guard("");
  return state().calls[function];
}

static uint64_t read(uint64_t State::*count) {
  Guard guard("");
  return state().*count;
}
uint64_t fsdprt_nccl_stub_made() { return read(&State::made); }
uint64_t fsdprt_nccl_stub_living() { return read(&State::living); }
uint64_t fsdprt_nccl_stub_registered() { return read(&State::registered); }

uint64_t fsdprt_nccl_stub_pinned() {
  Guard guard("");
  return state().pinned.size();
}

uint64_t fsdprt_nccl_stub_violations(const char **first) {
  Guard guard("");
  if (first)
    *first = state().firstViolation.c_str();
  return state().violations;
}

//===- Communicators --------------------------------------------------------===//

namespace {
NcclComm handleOf(Comm *comm) { return reinterpret_cast<NcclComm>(comm); }

/// A call on a communicator: that nobody else is inside of, that lives, and that has no call under way unless `anyTime`.
class CommCall {
public:
  CommCall(const char *function, NcclComm handle, bool anyTime)
      : comm(reinterpret_cast<Comm *>(handle)), isAlone(!comm || !comm->inside.exchange(true)), guard(function) {
    State &all = state();
    if (!comm)
      result = all.wrong(format("%s: there is no communicator", function));
    else if (!isAlone)
      result = all.wrong(format("%s: another thread is inside of this communicator", function));
    else if (comm->isGone)
      result = all.wrong(format("%s: this communicator has been destroyed or aborted", function));
    else if (!anyTime && comm->underWay)
      result = all.wrong(format("%s: this communicator has a call under way", function));
  }
  ~CommCall() {
    if (comm && isAlone)
      comm->inside = false;
  }
  Comm *comm;
  NcclResult result = ncclOk;

private:
  bool isAlone;
  Guard guard;
};

thread_local int groupDepth = 0;
thread_local bool groupHasUnderWay = false;

NcclResult began(Comm *comm) {
  comm->underWay = true;
  groupHasUnderWay |= groupDepth > 0;
  return ncclInProgress;
}

/// All members have come.
void complete(const Clique &clique) {
  for (Comm *member : clique.members)
    member->underWay = false;
}

Comm *makeComm(Clique *clique, uint32_t place, uint32_t worldRank, CudaContext context) {
  Comm *comm = new Comm; // never freed, so that a late call on it is seen
  comm->place = place;
  comm->worldRank = worldRank;
  comm->context = context;
  comm->clique = clique;
  clique->members[place] = comm;
  ++state().made;
  ++state().living;
  return comm;
}

bool isGood(const NcclConfig *config) {
  const int unset = NcclConfig::unset;
  return config && config->size >= 24 && config->magic == 0xcafebeef && config->version >= 21400 &&
         config->blocking == 0 &&
         (config->size < sizeof(NcclConfig) ||
          (config->cgaClusterSize == unset && config->minCTAs == unset && config->maxCTAs == unset &&
           !config->netName && config->splitShare == unset && config->padding == unset));
}
} // namespace

extern "C" {

NcclResult ncclGetVersion(int *version) {
  Guard guard("ncclGetVersion");
  *version = static_cast<int>(state().value("version", 23007));
  return ncclOk;
}

const char *ncclGetErrorString(NcclResult result) {
  static const char *const words[] = {"no error",         "unhandled cuda error", "unhandled system error",
                                      "internal error",   "invalid argument",     "invalid usage",
                                      "remote process exited or there was a network error", "in progress"};
  return result >= ncclOk && result <= ncclInProgress ? words[result] : "unknown result";
}

const char *ncclGetLastError(NcclComm) {
  Guard guard("ncclGetLastError");
  thread_local std::string copy;
  copy = state().lastError;
  return copy.c_str();
}

NcclResult ncclGetUniqueId(NcclId *id) {
  Guard guard("ncclGetUniqueId");
  static uint64_t number = 0;
  std::memset(id->bytes, 0, sizeof id->bytes);
  std::snprintf(id->bytes, sizeof id->bytes, "fsdprt stub %llu", static_cast<unsigned long long>(++number));
  return ncclOk;
}

NcclResult ncclCommInitRankConfig(NcclComm *comm, int ranks, NcclId id, int rank, NcclConfig *config) {
  Guard guard("ncclCommInitRankConfig");
  State &all = state();
  if (!isGood(config))
    return all.wrong("ncclCommInitRankConfig: expected a config that says what it is, and does not block");
  if (!all.current)
    return all.wrong("ncclCommInitRankConfig: no device is current");
  if (all.value("init_error", 0) && all.value("init_error_rank", 0) == rank) {
    all.lastError = "bootstrap: no socket interface found";
    return static_cast<NcclResult>(all.value("init_error", 0));
  }
  Clique *&clique = all.cliques[id.bytes];
  if (!clique)
    clique = new Clique(static_cast<uint32_t>(ranks));
  if (rank < 0 || rank >= ranks || clique->members.size() != static_cast<size_t>(ranks) || clique->members[rank])
    return all.wrong("ncclCommInitRankConfig: this rank is not one of the communicator, or is there already");
  Comm *made = makeComm(clique, static_cast<uint32_t>(rank), static_cast<uint32_t>(rank), all.current);
  *comm = handleOf(made);
  NcclResult result = began(made);
  if (++clique->joined == clique->members.size() && !all.value("init_hang", 0))
    complete(*clique);
  return result;
}

NcclResult ncclCommSplit(NcclComm handle, int color, int key, NcclComm *newComm, NcclConfig *config) {
  CommCall call("ncclCommSplit", handle, false);
  if (call.result != ncclOk)
    return call.result;
  if (config && !isGood(config))
    return state().wrong("ncclCommSplit: expected a config that says what it is, and does not block");
  Clique &parent = *call.comm->clique;
  parent.splits.push_back({call.comm, color, key, newComm});
  NcclResult result = began(call.comm);
  if (parent.splits.size() < parent.members.size())
    return result;
  std::sort(parent.splits.begin(), parent.splits.end(), [](const Split &a, const Split &b) {
    return std::pair(a.color, a.key) < std::pair(b.color, b.key);
  });
  for (size_t begin = 0, end; begin < parent.splits.size(); begin = end) {
    for (end = begin; end < parent.splits.size() && parent.splits[end].color == parent.splits[begin].color;)
      ++end;
    auto *child = new Clique(static_cast<uint32_t>(end - begin));
    for (size_t i = begin; i < end; ++i) {
      const Split &split = parent.splits[i];
      Comm *from = split.parent;
      Comm *made = makeComm(child, static_cast<uint32_t>(i - begin), from->worldRank, from->context);
      *split.to = handleOf(made); // only now: while the parent's call is under way there is none
      from->underWay = false;
    }
  }
  parent.splits.clear();
  return result;
}

NcclResult ncclCommGetAsyncError(NcclComm handle, NcclResult *error) {
  CommCall call("ncclCommGetAsyncError", handle, true);
  if (call.result != ncclOk)
    return call.result;
  advance();
  *error = call.comm->error != ncclOk ? call.comm->error : call.comm->underWay ? ncclInProgress : ncclOk;
  if (call.comm->looks > 0 && --call.comm->looks == 0)
    call.comm->underWay = false;
  return ncclOk;
}

NcclResult ncclCommFinalize(NcclComm handle) {
  CommCall call("ncclCommFinalize", handle, false);
  if (call.result != ncclOk)
    return call.result;
  Clique &clique = *call.comm->clique;
  NcclResult result = began(call.comm);
  if (++clique.finalized == clique.members.size())
    complete(clique);
  return result;
}

static void end(Comm *comm) {
  comm->isGone = true;
  --state().living;
  state().registered -= comm->registrations;
  forget(comm);
}

NcclResult ncclCommDestroy(NcclComm handle) {
  CommCall call("ncclCommDestroy", handle, false);
  if (call.result != ncclOk)
    return call.result;
  if (hasWork(call.comm))
    return state().wrong("ncclCommDestroy: a collective has not ended");
  end(call.comm);
  return ncclOk;
}

NcclResult ncclCommAbort(NcclComm handle) {
  CommCall call("ncclCommAbort", handle, true);
  if (call.result != ncclOk)
    return call.result;
  call.comm->clique->isBroken = true; // the others' collectives do not end any more
  end(call.comm);
  return ncclOk;
}

NcclResult ncclCommRegister(NcclComm handle, void *base, size_t bytes, void **registration) {
  CommCall call("ncclCommRegister", handle, false);
  if (call.result != ncclOk)
    return call.result;
  if (!isOnDevice(base, bytes))
    return state().wrong("ncclCommRegister: expected memory of the device");
  ++call.comm->registrations;
  ++state().registered;
  *registration = base;
  return ncclOk;
}

NcclResult ncclCommDeregister(NcclComm handle, void *) {
  CommCall call("ncclCommDeregister", handle, false);
  if (call.result != ncclOk)
    return call.result;
  --call.comm->registrations;
  --state().registered;
  return ncclOk;
}

NcclResult ncclGroupStart() {
  Guard guard("ncclGroupStart");
  ++groupDepth;
  return ncclOk;
}

NcclResult ncclGroupEnd() {
  Guard guard("ncclGroupEnd");
  if (groupDepth == 0)
    return state().wrong("ncclGroupEnd: no group has been started");
  if (--groupDepth > 0 || !groupHasUnderWay)
    return ncclOk;
  groupHasUnderWay = false;
  return ncclInProgress;
}

//===- Collectives ----------------------------------------------------------===//

static NcclResult collective(const char *function, Work work, NcclComm handle, CudaStream stream) {
  CommCall call(function, handle, false);
  if (call.result != ncclOk)
    return call.result;
  Comm *comm = call.comm;
  State &all = state();
  Stream *on = all.stream(stream);
  if (!on || on->context != comm->context)
    return all.wrong(format("%s: expected a stream of the communicator's device", function));
  size_t members = comm->clique->members.size(), bytes = work.count * sizeOf(work.type);
  if (!canReach(work.source, bytes * (work.kind == fb::CollectiveKind::reduce_scatter ? members : 1)) ||
      !canReach(work.target, bytes * (work.kind == fb::CollectiveKind::all_gather ? members : 1)))
    return all.wrong(format("%s: the device cannot reach the source or the target", function));
  work.function = function;
  uint64_t number = ++all.begunBy[comm->worldRank];
  if (all.value("error", 0) && all.value("error_rank", 0) == comm->worldRank &&
      all.value("error_at", 1) == static_cast<int64_t>(number)) {
    comm->error = static_cast<NcclResult>(all.value("error", 0));
    all.lastError = "net: connection closed by peer";
    return ncclInProgress; // and never comes
  }
  submit(comm, *on, work);
  if (number % 3 == 0) // some calls return at once
    return ncclOk;
  comm->looks = 2;
  return began(comm);
}

NcclResult ncclAllGather(const void *source, void *target, size_t count, NcclType type, NcclComm comm,
                         CudaStream stream) {
  return collective("ncclAllGather", {fb::CollectiveKind::all_gather, type, ncclSum, count, 0, source, target}, comm,
                    stream);
}

NcclResult ncclReduceScatter(const void *source, void *target, size_t count, NcclType type, NcclOperation operation,
                             NcclComm comm, CudaStream stream) {
  return collective("ncclReduceScatter",
                    {fb::CollectiveKind::reduce_scatter, type, operation, count, 0, source, target}, comm, stream);
}

NcclResult ncclAllReduce(const void *source, void *target, size_t count, NcclType type, NcclOperation operation,
                         NcclComm comm, CudaStream stream) {
  return collective("ncclAllReduce", {fb::CollectiveKind::all_reduce, type, operation, count, 0, source, target}, comm,
                    stream);
}

NcclResult ncclBroadcast(const void *source, void *target, size_t count, NcclType type, int root, NcclComm comm,
                         CudaStream stream) {
  return collective("ncclBroadcast", {fb::CollectiveKind::broadcast, type, ncclSum, count, root, source, target}, comm,
                    stream);
}

} // extern "C"
