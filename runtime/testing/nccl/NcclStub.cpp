//===- NcclStub.cpp - A stub of NCCL ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Creates and destroys communicators, and checks calls on communicators. NcclStubDevice.cpp
// implements streams, memory and transfers. One lock protects the state of the process, and a
// second lock protects the state that all processes share. A thread that holds the first lock may
// take the second lock for a short time. Calls wait for nothing but these two locks. Collectives
// make progress only during calls.
//
//===----------------------------------------------------------------------===//

#include "testing/nccl/NcclStub.h"
#include "testing/nccl/NcclStubCalls.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

using namespace fsdprt;
using namespace fsdprt::stub;

State &stub::state() {
  static State *it = [] {
    // The state is never freed, because ranks may use it until the process ends.
    auto *made = new State;
    if (const char *given = std::getenv("FSDPRT_NCCL_STUB"))
      made->setFromText(given);
    return made;
  }();
  return *it;
}

void State::setFromText(const char *text) {
  char name[64];
  long value;
  for (int length = 0; std::sscanf(text, "%63[^=]=%ld%n", name, &value, &length) == 2;
       text += *text == ',') {
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
  all.violations = all.made = 0;
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
uint64_t fsdprt_nccl_stub_windows() { return read(&State::windows); }
uint64_t fsdprt_nccl_stub_allocated() {
  Guard guard("");
  return state().allocated.size();
}

int64_t fsdprt_nccl_stub_config(const char *member) {
  Guard guard("");
  return std::strcmp(member, "maxCTAs") == 0 ? state().maxCTAs : state().ctaPolicy;
}

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

namespace {
constexpr int64_t newestVersion = 23007;
/// The arguments of an ncclSend, which an ncclRecv of a shift must follow. The first is the peer.
using Send = std::tuple<int, const void *, size_t, NcclType, NcclComm, CudaStream>;
thread_local Send openSend{-1, {}, {}, {}, {}, {}};

Comm *makeComm(std::shared_ptr<World> world, uint32_t clique, uint32_t place, uint32_t worldRank,
               CudaContext context) {
  // Communicators are never freed, so that a late call on a destroyed communicator is detected.
  static auto &every = *new std::vector<Comm *>;
  Comm *comm = every.emplace_back(new Comm);
  comm->world = std::move(world);
  comm->clique = clique;
  comm->place = place;
  comm->worldRank = worldRank;
  comm->context = context;
  comm->self().worldRank = worldRank;
  comm->self().isThere = true;
  ++state().made;
  ++state().living;
  return comm;
}

/// Creates the communicators of a split after all members have called ncclCommSplit.
bool split(World &world, CommunicatorGroup &parent) {
  std::vector<Member *> members;
  for (uint32_t i = 0; i < parent.size; ++i)
    members.push_back(&parent.members[i]);
  std::sort(members.begin(), members.end(), [](const Member *a, const Member *b) {
    return std::pair(a->color, a->key) < std::pair(b->color, b->key);
  });
  for (size_t begin = 0, end; begin < members.size(); begin = end) {
    for (end = begin; end < members.size() && members[end]->color == members[begin]->color;)
      ++end;
    uint32_t child = world.addClique(static_cast<uint32_t>(end - begin));
    if (child == mostCliques)
      return false;
    for (size_t i = begin; i < end; ++i) {
      members[i]->child = child;
      members[i]->childPlace = static_cast<uint32_t>(i - begin);
    }
  }
  parent.splits = 0;
  ++parent.splitRounds;
  return true;
}

/// Returns true if the library's version has the config, and if only known members are set.
bool isGood(const NcclConfig *config) {
  const int unset = NcclConfig::unset;
  if (!config || config->magic != 0xcafebeef || config->blocking != 0 ||
      config->cgaClusterSize != unset || config->minCTAs != unset || config->netName ||
      config->splitShare != unset || config->trafficClass != unset ||
      (config->maxCTAs != unset && (config->maxCTAs < 1 || config->maxCTAs > 32)))
    return false;
  int64_t version = state().value("version", newestVersion);
  if (config->size == NcclConfig::bytesOf218)
    return config->version == 21800;
  bool isPolicy = config->ctaPolicy == ncclPolicyEfficiency ||
                  (config->ctaPolicy == ncclPolicyZero && version >= 22800);
  return config->size == sizeof(NcclConfig) && config->version == 22700 && version >= 22700 &&
         isPolicy && !config->commName && config->collnetEnable == unset &&
         config->shrinkShare == unset && config->nvlsCTAs == unset;
}
} // namespace

extern "C" {

NcclResult ncclGetVersion(int *version) {
  Guard guard("ncclGetVersion");
  *version = static_cast<int>(state().value("version", newestVersion));
  return ncclOk;
}

const char *ncclGetErrorString(NcclResult result) {
  static const char *const words[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "in progress"};
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
  std::shared_ptr<World> world = World::make();
  if (!world)
    return ncclSystemError;
  *id = world->getId();
  state().promised = world;
  return ncclOk;
}

NcclResult ncclCommInitRankConfig(NcclComm *comm, int ranks, NcclId id, int rank,
                                  NcclConfig *config) {
  Guard guard("ncclCommInitRankConfig");
  State &all = state();
  if (!isGood(config))
    return all.wrong("ncclCommInitRankConfig: expected a config with size, magic and version set, "
                     "and blocking = 0");
  if (!currentContext())
    return all.wrong("ncclCommInitRankConfig: no device is current");
  if (all.value("init_error", 0) && all.value("init_error_rank", 0) == rank) {
    all.lastError = "bootstrap: no socket interface found";
    return static_cast<NcclResult>(all.value("init_error", 0));
  }
  all.maxCTAs = config->maxCTAs;
  all.ctaPolicy = config->size > NcclConfig::bytesOf218 ? config->ctaPolicy : NcclConfig::unset;
  std::shared_ptr<World> world = World::find(id);
  if (world == all.promised)
    all.promised = nullptr;
  if (!world) {
    all.lastError = "bootstrap: the process that created the id has ended";
    return ncclSystemError;
  }
  WorldLock lock(*world);
  if (!lock)
    return standsStill();
  uint32_t size = static_cast<uint32_t>(ranks), place = static_cast<uint32_t>(rank);
  if ((*world)->cliques == 0 && world->addClique(size) == mostCliques)
    return all.wrong("ncclCommInitRankConfig: too many ranks");
  CommunicatorGroup &clique = (*world)->clique[0];
  if (rank < 0 || rank >= ranks || clique.size != size || clique.members[place].isThere)
    return all.wrong(
        "ncclCommInitRankConfig: the rank is outside the communicator, or already part of it");
  Comm *made = makeComm(world, 0, place, place, currentContext());
  *comm = handleOf(made);
  NcclResult result = began(made);
  if (++clique.joined == clique.size && !all.value("init_hang", 0))
    complete(clique);
  return result;
}

NcclResult ncclCommSplit(NcclComm handle, int color, int key, NcclComm *newComm,
                         NcclConfig *config) {
  CommCall call("ncclCommSplit", handle, false);
  if (call.result != ncclOk)
    return call.result;
  if (config && !isGood(config))
    return state().wrong(
        "ncclCommSplit: expected a config with size, magic and version set, and blocking = 0");
  WorldLock lock(*call.comm->world);
  if (!lock)
    return standsStill();
  CommunicatorGroup &parent = call.comm->shared();
  call.comm->self().color = color;
  call.comm->self().key = key;
  call.comm->splitTo = newComm;
  call.comm->splitRound = parent.splitRounds;
  NcclResult result = began(call.comm);
  if (++parent.splits == parent.size && !split(*call.comm->world, parent))
    return state().wrong("ncclCommSplit: too many communicators");
  return result;
}

/// If the split of a communicator has ended, stores the new communicator in `*splitTo`.
static void takeChild(Comm *comm) {
  if (!comm->splitTo || comm->shared().splitRounds == comm->splitRound)
    return;
  const Member &self = comm->self();
  *comm->splitTo =
      handleOf(makeComm(comm->world, self.child, self.childPlace, comm->worldRank, comm->context));
  comm->splitTo = nullptr;
  comm->self().underWay = false;
}

NcclResult ncclCommGetAsyncError(NcclComm handle, NcclResult *error) {
  CommCall call("ncclCommGetAsyncError", handle, true);
  if (call.result != ncclOk)
    return call.result;
  advance();
  WorldLock lock(*call.comm->world);
  if (!lock)
    return standsStill();
  takeChild(call.comm);
  takeWindow(call.comm);
  Member &self = call.comm->self();
  *error = self.error != ncclOk ? self.error : self.underWay ? ncclInProgress : ncclOk;
  if (self.error != ncclOk && *call.comm->shared().problem)
    state().lastError = call.comm->shared().problem;
  if (call.comm->looks > 0 && --call.comm->looks == 0)
    self.underWay = false;
  return ncclOk;
}

NcclResult ncclCommFinalize(NcclComm handle) {
  CommCall call("ncclCommFinalize", handle, false);
  if (call.result != ncclOk)
    return call.result;
  if (!call.comm->windows.empty())
    return state().wrong("ncclCommFinalize: a window has not been deregistered");
  WorldLock lock(*call.comm->world);
  if (!lock)
    return standsStill();
  CommunicatorGroup &clique = call.comm->shared();
  NcclResult result = began(call.comm);
  if (++clique.finalized == clique.size)
    complete(clique);
  return result;
}

static void end(Comm *comm) {
  comm->isGone = true;
  --state().living;
  state().registered -= comm->registrations;
  dropWindows(comm);
  forget(comm);
  comm->world = nullptr;
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
  if (WorldLock lock(*call.comm->world); lock)
    // The other members can no longer complete collectives without this member.
    call.comm->shared().isBroken = true;
  end(call.comm);
  return ncclOk;
}

NcclResult ncclGroupStart() {
  Guard guard("ncclGroupStart");
  if (++groupDepth == 1)
    ++groupNumber;
  return ncclOk;
}

NcclResult ncclGroupEnd() {
  Guard guard("ncclGroupEnd");
  if (groupDepth == 0)
    return state().wrong("ncclGroupEnd: expected a call of ncclGroupStart before");
  if (--groupDepth > 0 || !groupHasUnderWay)
    return ncclOk;
  groupHasUnderWay = false;
  return ncclInProgress;
}

static NcclResult collective(Call what, const void *source, void *target, NcclComm handle,
                             CudaStream stream, int to = -1, int from = -1) {
  CommCall call(what.function, handle, false);
  if (call.result != ncclOk)
    return call.result;
  Comm *comm = call.comm;
  State &all = state();
  if (!comm->context || contextOf(stream) != comm->context)
    return all.wrong(format("%s: expected a stream of the communicator's device", what.function));
  size_t members = comm->shared().size, bytes = what.count * sizeOf(what.type);
  if (to >= 0 && (static_cast<size_t>(to) != (comm->place + 1) % members ||
                  static_cast<size_t>(from) != (comm->place + members - 1) % members))
    return all.wrong(format("shift: expected the members around, found %d and %d", to, from));
  if (!canReach(source, bytes * (what.kind == fb::CollectiveKind::reduce_scatter ? members : 1)) ||
      !canReach(target, bytes * (what.kind == fb::CollectiveKind::all_gather ? members : 1)))
    return all.wrong(format("%s: the device cannot reach the source or the target", what.function));
  if (!findOffsets(*comm, what, source, target))
    return all.wrong(format("%s: the source or the target is outside of the windows of the "
                            "communicator",
                            what.function));
  uint64_t number;
  {
    WorldLock lock(*comm->world);
    if (!lock)
      return standsStill();
    number = ++(*comm->world)->begunBy[comm->worldRank];
    if (all.value("error", 0) && all.value("error_rank", 0) == comm->worldRank &&
        all.value("error_at", 1) == static_cast<int64_t>(number)) {
      comm->self().error = static_cast<NcclResult>(all.value("error", 0));
      all.lastError = "net: connection closed by peer";
      return ncclInProgress; // The collective is never submitted.
    }
  }
  if (!submit(comm, stream, what, source, target))
    return all.wrong(format("%s: the device refuses the collective", what.function));
  // Some calls return success instead of ncclInProgress, so that both cases are tested.
  if (number % 3 == 0)
    return ncclOk;
  comm->looks = 2;
  WorldLock lock(*comm->world);
  return lock ? began(comm) : standsStill();
}

NcclResult ncclAllGather(const void *source, void *target, size_t count, NcclType type,
                         NcclComm comm, CudaStream stream) {
  return collective({fb::CollectiveKind::all_gather, type, ncclSum, count, 0, "ncclAllGather"},
                    source, target, comm, stream);
}

NcclResult ncclReduceScatter(const void *source, void *target, size_t count, NcclType type,
                             NcclOperation operation, NcclComm comm, CudaStream stream) {
  return collective(
      {fb::CollectiveKind::reduce_scatter, type, operation, count, 0, "ncclReduceScatter"}, source,
      target, comm, stream);
}

NcclResult ncclAllReduce(const void *source, void *target, size_t count, NcclType type,
                         NcclOperation operation, NcclComm comm, CudaStream stream) {
  return collective({fb::CollectiveKind::all_reduce, type, operation, count, 0, "ncclAllReduce"},
                    source, target, comm, stream);
}

NcclResult ncclBroadcast(const void *source, void *target, size_t count, NcclType type, int root,
                         NcclComm comm, CudaStream stream) {
  return collective({fb::CollectiveKind::broadcast, type, ncclSum, count, root, "ncclBroadcast"},
                    source, target, comm, stream);
}

NcclResult ncclSend(const void *source, size_t count, NcclType type, int peer, NcclComm comm,
                    CudaStream stream) {
  if (groupDepth == 0 || std::get<int>(openSend) >= 0)
    return state().wrong("ncclSend: expected a group, in which ncclRecv follows");
  openSend = {peer, source, count, type, comm, stream};
  return ncclOk;
}

NcclResult ncclRecv(void *target, size_t count, NcclType type, int peer, NcclComm comm,
                    CudaStream stream) {
  auto [to, source, n, kind, over, on] = std::exchange(openSend, Send{-1, {}, {}, {}, {}, {}});
  if (std::tuple(n, kind, over, on) != std::tuple(count, type, comm, stream))
    return state().wrong("ncclRecv: expected the arguments of the ncclSend before");
  return collective({fb::CollectiveKind::shift, type, ncclSum, count, 0, "ncclSend/ncclRecv"},
                    source, target, comm, stream, to, peer);
}

} // extern "C"
