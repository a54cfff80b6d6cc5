//===- Session.cpp - Implementation of the C interface ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Before the constructor allocates memory, it checks that the mesh has the requested number of
// ranks, that layouts have scratch memory for all threads, and that the arenas fit in memory.
//
//===----------------------------------------------------------------------===//

#include "execute/Session.h"
#include "artifact/Arenas.h"
#include "core/Error.h"
#include "execute/MemoryFit.h"
#include "execute/NonFiniteSearch.h"
#include "execute/Placement.h"
#include "execute/SessionHooks.h"
#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <thread>

using namespace fsdprt;
using ull = unsigned long long;

/// Returns the layout of the reference programs if `reference` is true, and otherwise the layout of
/// the sharded programs. Returns null if no such program exists.
static const fb::Layout *layoutOf(const Artifact &artifact, bool reference) {
  for (const fb::Program *program : *artifact.manifest().programs())
    if (isReferenceProgram(program->name()->str()) == reference)
      return artifact.manifest().layouts()->Get(program->layout());
  return nullptr;
}

/// Splits a text such as "map,row" into kinds of kernels. Throws Error if the artifact has no
/// kernel of a kind in the text.
static std::vector<std::string> checkKinds(const Artifact &artifact, const char *text) {
  std::set<std::string> known;
  const auto *kernels = artifact.manifest().kernels();
  for (uint32_t i = 0; kernels && i < kernels->size(); ++i)
    if (kernels->Get(i)->kind())
      known.insert(kernels->Get(i)->kind()->str());
  std::string list;
  for (const std::string &kind : known)
    list += (list.empty() ? "" : ", ") + printable(kind);
  std::vector<std::string> kinds;
  std::istringstream stream(text);
  for (std::string kind; std::getline(stream, kind, ',');) {
    if (!known.count(kind))
      badInput("%s: has no kernel of kind '%s'; its kinds: %s", artifact.getFile().c_str(),
               printable(kind).c_str(), list.empty() ? "none" : list.c_str());
    kinds.push_back(kind);
  }
  if (kinds.empty())
    badInput("expected kinds of kernels separated by commas, found '%s'", printable(text).c_str());
  return kinds;
}

/// Returns the memory that this session needs on this machine. With MPI, options.ranks_on_machine
/// is the number of ranks on this machine.
static MemoryDemand demandOf(const Artifact &artifact, const fb::Layout &layout,
                             const fb::Layout *reference, const fsdprt_session_options &options,
                             uint32_t threadsPerRank) {
  uint64_t ranks = artifact.getMesh().ranks();
  bool threads = isControl(options, "local"), mapsPeers = !isControl(options, "mpi"),
       isOnGpu = isDevice(options, "cuda");
  MemoryDemand demand;
  demand.arena = isOnGpu ? layout.host_bytes() : mappedBytes(layout);
  demand.reference = !reference ? 0 : isOnGpu ? reference->host_bytes() : mappedBytes(*reference);
  demand.ranksOnMachine =
      mapsPeers ? ranks : std::clamp<uint64_t>(options.ranks_on_machine, 1, ranks);
  demand.ranksMapped = mapsPeers ? ranks : 1;
  demand.processes = threads ? 1 : demand.ranksOnMachine;
  // Each rank has one worker thread for collectives, one for copies between its arenas if it has a
  // host arena, and one for its file if it has a file.
  uint64_t transferWorkers = 1 + (layout.host_bytes() != 0) + (layout.file_bytes() != 0);
  demand.threads = (threads ? ranks : 1) * (threadsPerRank + transferWorkers);
  return demand;
}

/// Returns the CPUs of the threads of the ranks. With MPI, options.local_rank - 1 is the number of
/// this rank on this machine.
static CpuBinding bindingOf(const Artifact &artifact, const fsdprt_session_options &options,
                            uint32_t threadsPerRank) {
  if (artifact.gpu())
    return {};
  uint64_t ranks = artifact.getMesh().ranks(), first = options.rank;
  if (isControl(options, "local"))
    first = 0;
  if (isControl(options, "mpi")) {
    if (!options.local_rank || !options.ranks_on_machine)
      return {};
    ranks = options.ranks_on_machine;
    first = options.local_rank - 1;
  }
  return CpuBinding(ranks * threadsPerRank, first * threadsPerRank);
}

SessionHooks &fsdprt::nextSessionHooks() {
  thread_local SessionHooks hooks;
  return hooks;
}

Session::Session(std::shared_ptr<const Artifact> shared, const fsdprt_session_options &options)
    : artifact(*shared) {
  SessionHooks hooks = std::exchange(nextSessionHooks(), {});
  checkPlace(artifact, options);
  if (options.cuda_graph && hooks.seesCommands)
    badInput("a CUDA graph cannot be combined with planted faults, because its commands cannot be "
             "observed one by one");
  const fb::Layout *layout = layoutOf(artifact, false);
  const fb::Layout *whole = options.with_reference ? layoutOf(artifact, true) : nullptr;
  if (!layout)
    badInput("%s: has no program to run on ranks", artifact.getFile().c_str());
  if (options.with_reference && !whole)
    badInput("%s: has no program 'reference'", artifact.getFile().c_str());
  RankGroupOptions group;
  group.threadsPerRank =
      options.threads_per_rank ? options.threads_per_rank : artifact.manifest().threads_per_rank();
  group.cpus = bindingOf(artifact, options, group.threadsPerRank);
  group.timeoutSeconds = options.timeout_seconds > 0 ? options.timeout_seconds : 60;
  group.seed = options.seed;
  group.device = !artifact.gpu()             ? DeviceKind::cpu
                 : isDevice(options, "cuda") ? DeviceKind::cuda
                                             : DeviceKind::emulated;
  group.cudaGraph = options.cuda_graph != 0;
  group.restrictCalls = options.restrict_calls != 0;
  if (group.restrictCalls && (artifact.gpu() || isControl(options, "mpi")))
    badInput("%s: system calls can be restricted on a CPU with the backend local or shm, not with "
             "GPUs or MPI, whose libraries make others",
             artifact.getFile().c_str());
  if (group.threadsPerRank > layout->workers())
    badInput("%s: has scratch memory for %u threads per rank, asked to run with %u; compile with "
             "more --threads-per-rank",
             artifact.getFile().c_str(), layout->workers(), group.threadsPerRank);
  if (!hooks.onlyKinds.empty()) {
    if (whole)
      badInput("expected all kernels for a comparison with the reference, found a restriction to "
               "some kinds");
    group.onlyKinds = checkKinds(artifact, hooks.onlyKinds.c_str());
  }
  group.offloadDirectory =
      options.offload_directory ? options.offload_directory : temporaryDirectory();
  group.linkBytesPerSecond = options.link_bytes_per_second;
  checkFits(artifact, demandOf(artifact, *layout, whole, options, group.threadsPerRank));
  const fb::Program *step = artifact.program("step");
  group.stepsBefore = options.steps_before;
  ranks = std::make_unique<RankGroup>(
      shared, makeCommunicator(artifact, options, group.timeoutSeconds, group.threadsPerRank),
      *layout, false, group);
  if (step && (options.profile || options.trace_runs)) {
    timer = std::make_shared<CommandTimer>(*ranks, ranks->instructionsOf(*step),
                                           options.profile != 0, options.trace_runs);
    ranks->attach(timer);
  }
  if (hooks.prepare)
    hooks.prepare(*ranks);
  if (!whole)
    return;
  // The reference may use as many threads as all ranks together, because no rank runs while the
  // reference runs. Results do not depend on the number of threads.
  uint64_t threads = std::min<uint64_t>(std::thread::hardware_concurrency(),
                                        uint64_t(group.threadsPerRank) * ranks->ranks());
  group.threadsPerRank = static_cast<uint32_t>(std::clamp<uint64_t>(threads, 1, whole->workers()));
  group.cpus = isControl(options, "local") ? CpuBinding(group.threadsPerRank, 0) : CpuBinding();
  // While the reference runs, ranks of other processes may wait for the rank of this process.
  // Progress of the reference therefore counts as progress of the rank of this process.
  auto watchdog = ranks->getCommunicator().getWatchdog().alone(ranks->firstRank());
  reference = std::make_unique<RankGroup>(
      shared, makeSoloCommunicator(artifact, options, std::move(watchdog), group.threadsPerRank),
      *whole, true, group);
}

Session::~Session() {
  for (std::unique_ptr<RankGroup> *group : {&ranks, &reference})
    if (*group && (*group)->hasHung())
      // Do not free the group, because a thread that hangs still uses it.
      (void)group->release();
}

const RankGroup &Session::group(uint32_t rank) const {
  if (rank == FSDPRT_REFERENCE) {
    if (!reference)
      badInput("the session was created without the reference");
    return *reference;
  }
  if (rank >= ranks->ranks())
    badInput("expected a rank below %u, found %u", ranks->ranks(), rank);
  return *ranks;
}

Profile &Session::profile() const {
  if (!timer || !timer->getProfile())
    badInput("the session was created without a profile");
  return *timer->getProfile();
}

const Trace &Session::trace() const {
  if (!timer || !timer->getTrace())
    badInput("the session was created without a trace");
  if (ranks->getCommunicator().processes() > 1)
    timer->getTrace()->collect(ranks->getCommunicator());
  return *timer->getTrace();
}

uint32_t Session::checkRank(uint32_t rank) const {
  if (!group(rank).isLocal(rank) && rank != FSDPRT_REFERENCE)
    badInput("rank %u is in another process; this one has rank %u", rank, ranks->firstRank());
  return rank == FSDPRT_REFERENCE ? 0 : rank;
}

uint64_t Session::gpuBytesBeside() const {
  uint64_t bytes = ranks->deviceBytesBeside();
  return bytes - std::min(bytes, reference ? reference->arenaBytes() : 0);
}

void Session::exchange(const void *mine, size_t size, void *all) {
  if (size > Communicator::exchangeLimit)
    badInput("expected at most %zu bytes to exchange, found %zu", Communicator::exchangeLimit,
             size);
  ranks->getCommunicator().exchange(mine, size, all);
}

void Session::collect(uint32_t rank, const void *data, size_t size, void *into) {
  group(rank);
  ranks->getCommunicator().collect(rank, data, size, into);
}

void Session::run(const char *name) {
  const fb::Program *program = artifact.program(name);
  if (!program)
    badInput("%s: has no program '%s'", artifact.getFile().c_str(), printable(name).c_str());
  RankGroup *group = isReferenceProgram(name) ? reference.get() : ranks.get();
  if (!group)
    badInput("the session was created without the reference");
  group->run(*program);
  if (artifact.manifest().lookups() && group->checksLookups())
    checkLookups(*group, isReferenceProgram(name) ? FSDPRT_REFERENCE : ranks->firstRank());
}

std::string Session::findNonfinite(const char *name) {
  const fb::Program *program = artifact.program(name);
  if (!program || isReferenceProgram(name))
    badInput("%s: has no program '%s' to run on ranks", artifact.getFile().c_str(),
             printable(name).c_str());
  auto search = std::make_shared<NonFiniteSearch>(ranks->firstRank(), ranks->localRanks());
  ranks->runAgain(*program, search);
  NonFiniteSource mine = search->result(), earliest;
  Communicator &communicator = ranks->getCommunicator();
  std::vector<NonFiniteSource> all(communicator.processes());
  communicator.exchange(&mine, sizeof mine, all.data());
  for (const NonFiniteSource &source : all) {
    if (source.number < earliest.number)
      earliest = source;
    else if (source.number == earliest.number)
      earliest.ranks += source.ranks;
  }
  if (earliest.ranks == 0)
    return "";
  std::string who =
      earliest.ranks == 1 ? "rank " + std::to_string(earliest.first)
      : earliest.ranks == ranks->ranks()
          ? "all ranks"
          : format("%u ranks, rank %u the first of them,", earliest.ranks, earliest.first);
  return format("%s passed the first non-finite number to %s", who.c_str(),
                communicator.describe(earliest.collective).c_str());
}

void Session::readBlock(uint32_t rank, float *block) const {
  const RankGroup &on = group(rank);
  on.executor(checkRank(rank))
      .read(on.getLayout().block()->offset(), block, FSDPRT_BLOCK_SIZE * sizeof(float));
}

void Session::writeBlock(uint32_t rank, const float *block) {
  const RankGroup &on = group(rank);
  on.executor(checkRank(rank))
      .write(on.getLayout().block()->offset(), block, FSDPRT_BLOCK_SIZE * sizeof(float));
}
