//===- Nccl.cpp - Collectives over NCCL -------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// No thread blocks inside NCCL. A wait repeatedly checks the event that follows the collective, the
// asynchronous errors of the NCCL communicators, the watchdog, and the clock. If the wait finds an
// error, or if its time limit passes without progress, the rank aborts its own communicators and
// sets the failure flag of the watchdog. The other ranks notice the flag and then abort their own
// communicators.
//
//===----------------------------------------------------------------------===//

#include "collectives/nccl/Nccl.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace fsdprt;

namespace {
/// Lets a thread pause between two polls. The first `spins` pauses are short and keep the processor
/// busy. Later pauses are sleeps of at most 2 ms.
class Naps {
public:
  explicit Naps(uint32_t spins) : spins(spins) {}
  void take() {
    if (taken++ < spins)
      return pauseBriefly();
    timespec time = {0, nanoseconds};
    nanosleep(&time, nullptr);
    nanoseconds = std::min(nanoseconds * 3 / 2, 2000000l);
  }

private:
  uint32_t spins, taken = 0;
  long nanoseconds = 20000;
};

bool isReduction(const CollectiveKey &key) {
  return key.kind == fb::CollectiveKind::reduce_scatter ||
         key.kind == fb::CollectiveKind::all_reduce;
}
} // namespace

NcclCommunicator::NcclCommunicator(std::unique_ptr<Communicator> newControl, uint32_t spins,
                                   std::optional<uint32_t> localRank, bool isOnDevice,
                                   const NcclSettings &settings)
    : Communicator(newControl->getMesh(),
                   LocalRanks{newControl->firstRank(), newControl->localRanks()},
                   newControl->shareWatchdog()),
      control(std::move(newControl)), spins(spins), localRank(localRank), onDevice(isOnDevice),
      config(settings.configFor(nccl)), windows(nccl, settings, isOnDevice),
      library(nccl.text() + ", CUDA " + cuda.versionText()), arenas(localRanks()) {
  checkDevices();
  // Make NCCL launch the collectives of a rank in the order in which the host starts them.
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/0);
}

NcclCommunicator::~NcclCommunicator() { releaseArenas(); }

bool NcclCommunicator::mayShareDevices() const {
  const char *shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return nccl.version() >= 23000 && shared && std::strcmp(shared, "1") == 0;
}

void NcclCommunicator::checkDevices() const {
  if (localRanks() <= static_cast<uint32_t>(cuda.devices()) || mayShareDevices())
    return;
  if (nccl.version() < 23000)
    badInput("expected a CUDA device for each of %u ranks, found %d; %s does not support several "
             "ranks on one device, NCCL 2.30 does",
             localRanks(), cuda.devices(), nccl.text().c_str());
  badInput(
      "expected a CUDA device for each of %u ranks, found %d; set NCCL_MULTI_RANK_GPU_ENABLE=1 "
      "to allow several ranks on one device",
      localRanks(), cuda.devices());
}

int NcclCommunicator::deviceOf(uint32_t rank) const {
  uint32_t index = rank - firstRank();
  if (processes() > 1)
    index += localRank.value_or(firstRank());
  return static_cast<int>(index % static_cast<uint32_t>(cuda.devices()));
}

void NcclCommunicator::registerArena(uint32_t rank, const ArenaMemory &memory) {
  arenas[rank - firstRank()] = memory;
  if (!onDevice)
    return control->registerArena(rank, memory);
  unused.push_back(std::make_unique<Arena>(1, control->needsSharedArenas() ? Arena::Kind::shared
                                                                           : Arena::Kind::own));
  control->registerArena(
      rank, {unused.back()->at(0), unused.back()->mappedBytes(), unused.back()->descriptor()});
}

void NcclCommunicator::findLanes() {
  for (const Collective &each : collectives) {
    Lane lane = {each.groups, isReduction(each.key), each.key.isPiece};
    auto known = std::find_if(lanes.begin(), lanes.end(), [&](const Lane &other) {
      return other.groups == lane.groups && other.reduces == lane.reduces;
    });
    laneOf.push_back(static_cast<uint32_t>(known - lanes.begin()));
    if (known == lanes.end())
      lanes.push_back(lane);
    else
      known->hasPieces |= lane.hasPieces;
  }
}

/// Returns the NCCL call by which `rank` executes a collective. Integers are passed to NCCL as
/// bytes, because they are never summed.
NcclCall NcclCommunicator::callOf(uint32_t collective, uint32_t rank) const {
  const CollectiveKey &key = getKey(collective);
  NcclCall call = {key.kind,
                   ncclU8,
                   key.reduction == fb::Reduction::avg ? ncclAvg : ncclSum,
                   key.count,
                   static_cast<int>(key.root),
                   laneOf[collective]};
  if (key.kind == fb::CollectiveKind::shift) {
    uint32_t own = collectives[collective].groups->index[rank];
    size_t members = membersOf(collective, rank).size();
    call.root = static_cast<int>(key.senderFor(own, members));
    call.next = static_cast<int>((own + 1) % members);
  }
  switch (key.dtype) {
  case DType::f64:
    call.type = ncclF64;
    break;
  case DType::f32:
    call.type = ncclF32;
    break;
  case DType::f16:
    call.type = ncclF16;
    break;
  case DType::bf16:
    call.type = ncclBF16;
    break;
  default:
    call.count *= sizeOf(key.dtype);
  }
  return call;
}

/// The data that each process sends to the other processes before they create NCCL communicators.
struct NcclCommunicator::Word {
  NcclId id;
  int version;
  NcclResult result;
  bool wantsWindows;
  uint64_t arenaBytes;      ///< size of the first rank's arena
  unsigned char device[16]; ///< UUID of the GPU that the first rank of the process uses
};

/// Throws Error if the processes have different versions of NCCL. Also throws Error if two
/// processes use the same GPU, unless NCCL permits this.
void NcclCommunicator::checkOthers(const std::vector<Word> &words) const {
  for (size_t i = 1; i < words.size(); ++i)
    if (words[i].version != words[0].version)
      badInput("expected one version of NCCL for all ranks, found %s in process 0 and %s in "
               "process %zu",
               NcclLibrary::versionText(words[0].version).c_str(),
               NcclLibrary::versionText(words[i].version).c_str(), i);
  for (size_t i = 1; i < words.size() && !mayShareDevices(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (std::memcmp(words[i].device, words[j].device, sizeof words[i].device) == 0)
        badInput(
            "expected a CUDA device for each rank, found one shared by ranks %zu and %zu; NCCL "
            "2.30 with NCCL_MULTI_RANK_GPU_ENABLE=1 allows several ranks on one device",
            j, i);
}

/// Creates a unique id in the process of rank 0, and returns this id in all processes.
NcclId NcclCommunicator::agreeOnId() {
  for (const ArenaMemory &arena : arenas)
    if (windows.areWanted() && !windows.hasAllocated(arena.base))
      windows.refuse("an arena is not memory of ncclMemAlloc");
  Word mine = {{}, nccl.version(), ncclOk, windows.areWanted(), arenas[0].bytes, {}};
  int device = 0;
  cuda.check(cuda.deviceGet(&device, deviceOf(firstRank())), "find a device");
  cuda.check(cuda.deviceGetUuid(mine.device, device), "query a device's UUID");
  if (isRoot())
    mine.result = nccl.getUniqueId(&mine.id);
  std::vector<Word> words(processes());
  control->exchange(&mine, sizeof mine, words.data());
  if (words[0].result != ncclOk)
    failed("rank 0 cannot create a unique id: %s", nccl.reason(words[0].result, nullptr).c_str());
  checkOthers(words);
  compareArenas(words);
  return words[0].id;
}

/// Refuses windows unless all processes want them and all arenas have one size.
void NcclCommunicator::compareArenas(const std::vector<Word> &words) {
  auto compare = [&](uint64_t bytes, const std::string &where) {
    if (windows.areWanted() && bytes != words[0].arenaBytes)
      windows.refuse(format("expected arenas of one size, found %s on rank 0 and %s %s",
                            bytesText(words[0].arenaBytes).c_str(), bytesText(bytes).c_str(),
                            where.c_str()));
  };
  for (size_t i = 0; i < words.size(); ++i) {
    if (windows.areWanted() && !words[i].wantsWindows)
      windows.refuse(format("process %zu has none", i));
    compare(words[i].arenaBytes, format("in process %zu", i));
  }
  for (size_t i = 0; i < arenas.size(); ++i)
    compare(arenas[i].bytes, format("on rank %zu", firstRank() + i));
}

/// Waits until no NCCL call of a rank of this process is in progress, and then returns true.
/// Returns false if such a call is still in progress after `seconds`.
bool NcclCommunicator::awaitRanks(double seconds) {
  double limit = monotonicSeconds() + seconds;
  for (Naps naps(0);; naps.take()) {
    bool all = true;
    for (auto &each : ncclRanks)
      all = each->isSettled() && all;
    if (all)
      return true;
    control->poll();
    if (monotonicSeconds() > limit)
      return false;
  }
}

/// Calls start(rank) for all ranks of this process in one NCCL group. Waits until the NCCL calls of
/// these ranks have ended. The group may end with the error `tolerated`, which start() may set.
template <typename Start>
void NcclCommunicator::onEveryRank(const char *what, Start start, const NcclResult &tolerated) {
  try {
    NcclGroup group(nccl);
    for (uint32_t rank = firstRank(); rank < firstRank() + localRanks(); ++rank)
      start(rank);
    NcclResult result = group.end();
    if (result != ncclOk && result != ncclInProgress && result != tolerated)
      throw NcclFailure(FSDPRT_FAILED, nccl.reason(result, nullptr));
    if (awaitRanks(watchdog->timeoutSeconds()))
      return;
  } catch (const NcclFailure &reason) {
    throw Error(reason.status,
                format("cannot %s over %s: %s", what, nccl.text().c_str(), reason.what()));
  }
  throw Error(
      FSDPRT_HUNG,
      format(
          "cannot %s over %s: not all of %u ranks did within %g s; set NCCL_DEBUG=INFO for details",
          what, nccl.text().c_str(), ranks(), watchdog->timeoutSeconds()));
}

void NcclCommunicator::join() {
  NcclId id = agreeOnId();
  for (uint32_t rank = firstRank(); rank < firstRank() + localRanks(); ++rank)
    ncclRanks.push_back(std::make_unique<NcclRank>(nccl, cuda, deviceOf(rank), lanes.size()));
  onEveryRank("connect ranks",
              [&](uint32_t rank) { ncclRank(rank).joinAll(id, ranks(), rank, config); });
  for (size_t lane = 0; lane < lanes.size(); ++lane)
    onEveryRank("form groups", [&](uint32_t rank) {
      const Groups &groups = *lanes[lane].groups;
      ncclRank(rank).joinLane(lane, groups.members[rank][0], groups.index[rank]);
    });
}

/// Registers the arenas of all ranks as a window of a lane. Sets `refused` if NCCL refuses them.
void NcclCommunicator::registerWindow(size_t lane, NcclResult &refused) {
  try {
    onEveryRank(
        "register arenas as windows",
        [&](uint32_t rank) {
          if (NcclResult result = ncclRank(rank).registerWindow(lane, arenas[rank - firstRank()]);
              result != ncclOk)
            refused = result;
        },
        refused);
  } catch (const Error &error) {
    throw Error(error.status, error.message + "; --nccl-windows=off does without them");
  }
}

/// Registers the arenas as windows of all lanes whose operands have the same offsets on all ranks.
/// Either all ranks of all processes then have these windows, or none has one.
void NcclCommunicator::registerWindows() {
  NcclResult refused = ncclOk;
  char mine = 1;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].hasPieces)
      continue;
    registerWindow(lane, refused);
    for (auto &each : ncclRanks)
      mine &= each->hasWindow(lane);
  }
  std::vector<char> all(processes());
  control->exchange(&mine, sizeof mine, all.data());
  if (std::count(all.begin(), all.end(), 1) == static_cast<ptrdiff_t>(all.size()))
    return;
  for (auto &each : ncclRanks)
    each->dropWindows();
  windows.refuse(refused != ncclOk ? nccl.reason(refused, nullptr)
                                   : "NCCL made none, for a reason that NCCL_DEBUG=INFO shows");
}

void NcclCommunicator::connect() {
  for (const Collective &each : collectives)
    control->add(each.key);
  control->connect();
  findLanes();
  std::vector<bool> reduces;
  for (const Lane &lane : lanes)
    reduces.push_back(lane.reduces);
  try {
    join();
    if (windows.areWanted())
      registerWindows();
    library += windows.describe();
    for (uint32_t rank = firstRank(); rank < firstRank() + localRanks(); ++rank) {
      ncclRank(rank).adopt(arenas[rank - firstRank()]);
      std::vector<NcclCall> calls;
      for (uint32_t i = 0; i < numCollectives(); ++i)
        calls.push_back(callOf(i, rank));
      ncclRank(rank).prepare(std::move(calls), reduces);
    }
  } catch (...) {
    // The destructor of NcclRank aborts the communicators of the rank.
    ncclRanks.clear();
    throw;
  }
}

void NcclCommunicator::releaseArenas() {
  try {
    if (!watchdog->hasFailed()) {
      for (auto &each : ncclRanks)
        each->finalize();
      if (awaitRanks(watchdog->timeoutSeconds()))
        for (auto &each : ncclRanks)
          each->destroy();
    }
  } catch (const Error &) {
    // An error has occurred, so clear() aborts the communicators.
  }
  ncclRanks.clear();
}

void NcclCommunicator::leave() {
  releaseArenas();
  control->leave();
}

void NcclCommunicator::begin(uint32_t collective, uint32_t rank, const std::byte *source,
                             std::byte *target) {
  const Collective &each = collectives[collective];
  if (each.dropped == rank && isReduction(each.key)) {
    if (ncclRank(rank).hasWindow(laneOf[collective]))
      failed("a planted fault replaces the source of %s by memory outside of the arena, which is a "
             "window; run with --nccl-windows=off",
             describe(collective).c_str());
    uint64_t pieces = each.key.kind == fb::CollectiveKind::reduce_scatter
                          ? membersOf(collective, rank).size()
                          : 1;
    source = ncclRank(rank).zeros(pieces * each.key.count * sizeOf(each.key.dtype));
  }
  ncclRank(rank).begin(collective, source, target);
}

void NcclCommunicator::joinNext(uint32_t rank) { ncclRank(rank).joinNext(); }

/// If `member` is in this process, returns true if `member` has started the collective at least as
/// often as `rank`. If `member` is in another process, returns true if the collective is the last
/// one that `member` has started.
bool NcclCommunicator::hasBegun(uint32_t collective, uint32_t rank, uint32_t member) const {
  if (isLocal(member))
    return ncclRank(member).begun(collective) >= ncclRank(rank).begun(collective);
  return watchdog->lastCollective(member) == collective;
}

void NcclCommunicator::reportStuck(uint32_t collective, uint32_t rank) const {
  std::vector<uint32_t> missing;
  std::string others;
  for (uint32_t member : membersOf(collective, rank)) {
    if (!hasBegun(collective, rank, member))
      missing.push_back(member);
    if (member != rank)
      others += (others.empty() ? ": " : ", ") + describeProgress(member);
  }
  if (!missing.empty())
    reportMissing(collective, rank, missing);
  throw Error(FSDPRT_HUNG,
              format("rank %u waited %g s at %s, which all its ranks have started and %s has not "
                     "completed%s; set NCCL_DEBUG=INFO for details",
                     rank, watchdog->timeoutSeconds(), describe(collective).c_str(),
                     nccl.text().c_str(), others.c_str()));
}

void NcclCommunicator::finish(uint32_t collective, uint32_t rank, WorkerPool &) {
  NcclRank &own = ncclRank(rank);
  ProgressTimeout progressTimeout(*watchdog);
  try {
    for (Naps naps(spins); !(onDevice ? own.isOrdered(collective) : own.isComplete(collective));
         naps.take()) {
      control->poll();
      uint64_t beats = 0;
      for (uint32_t member : membersOf(collective, rank))
        if (member != rank && (!isLocal(member) || !hasBegun(collective, rank, member)))
          beats += watchdog->beats(member);
      if (progressTimeout.hasExpired(beats))
        reportStuck(collective, rank);
    }
  } catch (const NcclFailure &reason) {
    own.abort();
    throw Error(reason.status,
                format("rank %u at %s: %s", rank, describe(collective).c_str(), reason.what()));
  } catch (const Error &) {
    own.abort();
    throw;
  }
}

void NcclCommunicator::poll() {
  control->poll();
  for (uint32_t rank = firstRank(); rank < firstRank() + localRanks(); ++rank)
    try {
      ncclRank(rank).check();
    } catch (const NcclFailure &reason) {
      throw Error(reason.status, describeProgress(rank) + ": " + reason.what());
    }
}
