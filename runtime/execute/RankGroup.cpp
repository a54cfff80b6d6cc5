//===- RankGroup.cpp - Ranks that run programs together ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The constructor decodes programs into flat lists of instructions, adds their collectives to the
// communicator, and lets each rank prepare its arena. run() then executes a list without allocating
// memory.
//
// A rank that fails sets the failure flag of the watchdog. The flag ends the waits of the other
// ranks. run() throws the first error. If no rank makes progress and none reports an error, for
// example in an endless kernel, the thread that called run() throws Error.
//
//===----------------------------------------------------------------------===//

#include "execute/RankGroup.h"
#include "artifact/Arenas.h"
#include "core/Stack.h"
#include "execute/NvtxRanges.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

using namespace fsdprt;

static constexpr uint32_t pollMilliseconds = 20;

RankGroup::RankGroup(std::shared_ptr<const Artifact> shared,
                     std::unique_ptr<Communicator> newCommunicator, const fb::Layout &layout,
                     bool reference, const RankGroupOptions &options)
    : owned(std::move(shared)), artifact(*owned), mesh(newCommunicator->getMesh()), layout(layout),
      options(options), communicator(std::move(newCommunicator)),
      watchdog(communicator->getWatchdog()),
      spins(spinsFor(communicator->localRanks() * options.threadsPerRank)),
      first(communicator->firstRank()),
      context{artifact, mesh, layout, this->options, *communicator, watchdog, observers} {
  watchdog.setStringBase(&artifact.manifest());
  ProgramDecoder decoder(artifact, layout, *communicator, options.onlyKinds);
  for (const fb::Program *program : *artifact.manifest().programs())
    if (isReferenceProgram(program->name()->str()) == reference)
      programs[program] = decoder.decode(*program);
  numAsyncCopies = decoder.numAsyncCopies();
  const fb::Program *step = artifact.program("step");
  bool records = options.cudaGraph && step && !reference;
  if (records)
    checkRecordable(programs.at(step));
  peak = residentEnd(layout, mesh);
  size_t bindings = mostBindings(artifact);
  std::vector<std::unique_ptr<Device>> devices = makeDevices();
  errors.resize(devices.size());
  for (uint32_t i = 0; i < devices.size(); ++i)
    executors.push_back(
        std::make_unique<RankExecutor>(context, first + i, std::move(devices[i]), spins, bindings));
  // Nvtx::find() returns null unless a profiling tool is attached.
  if (const Nvtx *nvtx = Nvtx::find())
    attach(std::make_shared<NvtxObserver>(*nvtx, artifact.manifest(), first, localRanks()));
  try {
    communicator->connect();
    addTransferWorkers();
    if (records)
      addRecording();
    for (uint32_t rank = first; rank < first + localRanks(); ++rank)
      threads.emplace_back([this, rank] { serve(rank); });
    currentName = "start";
    onEveryRank(&RankGroup::prepare, false);
    if (options.restrictCalls)
      onEveryRank(&RankGroup::restrictCalls, false);
  } catch (...) {
    stop();
    throw;
  }
}

bool RankGroup::hasChannels() const {
  return std::any_of(programs.begin(), programs.end(),
                     [](const auto &entry) { return entry.second.hasChannels; });
}

void RankGroup::addTransferWorkers() {
  for (const auto &each : executors)
    each->addTransferWorkers(hasChannels(), numAsyncCopies);
}

RankGroup::~RankGroup() { stop(); }

void RankGroup::stop() {
  ending = true;
  generation.fetch_add(1, std::memory_order_release);
  jobEvent.notify();
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &each : executors)
    each->stop();
  communicator->releaseArenas();
  // Observers refer to devices and must be destroyed before the devices.
  observers.clear();
}

std::vector<std::unique_ptr<Device>> RankGroup::makeDevices() const {
  return fsdprt::makeDevices(options.device, artifact, layout,
                             {communicator->localRanks(), numAsyncCopies,
                              communicator->firstDevice(), communicator->arenaAllocator()});
}

uint64_t RankGroup::deviceBytesBeside() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < executors.size(); ++i) {
    const Device &device = executors[i]->getDevice();
    bool isFirst = true; // true if no earlier executor uses the same GPU
    for (size_t k = 0; k < i; ++k)
      isFirst &= executors[k]->getDevice().ordinal() != device.ordinal();
    bytes += isFirst ? device.bytesBeside() : 0;
  }
  return bytes;
}

void RankGroup::onEveryRank(Job newJob, bool beginsRun) {
  job = newJob;
  jobBeginsRun = beginsRun;
  running.store(localRanks(), std::memory_order_relaxed);
  generation.fetch_add(1, std::memory_order_release);
  jobEvent.notify();
  awaitRanks();
  if (firstFailure.load(std::memory_order_acquire) >= 0)
    throwFirstError();
}

void RankGroup::awaitRanks() {
  // `grace` is added to the time limit, so that a rank that waits too long reports this before the
  // main thread does. `since` is the time at which the main thread last observed progress.
  double grace = 2 + options.timeoutSeconds * 0.05, since = 0;
  PollClock clock;
  uint64_t lastBeats = 0;
  waitFor(
      doneEvent, 0, pollMilliseconds, [&] { return running.load(std::memory_order_acquire) == 0; },
      [&] {
        uint64_t beats = running.load(std::memory_order_relaxed) + watchdog.progressRenewals() * 64;
        for (uint32_t rank = first; rank < first + localRanks(); ++rank)
          beats += watchdog.beats(rank) * 64;
        double now = clock.read();
        since = beats == lastBeats ? since : now;
        lastBeats = beats;
        double still = now - since;
        if (still < (watchdog.hasFailed() ? grace : options.timeoutSeconds + grace))
          return;
        hung = true;
        if (watchdog.hasFailed())
          throwFirstError();
        throw Error(FSDPRT_HUNG,
                    format("%s: no rank%s made progress for %.1f s: %s", where().c_str(),
                           localRanks() < ranks() ? " of this process" : "", still,
                           progressReport().c_str()));
      });
}

void RankGroup::throwFirstError() {
  int32_t rank = firstFailure.load(std::memory_order_acquire);
  // If `rank` is negative, only ranks of other processes have failed.
  if (rank < 0) {
    Abandoned reason = communicator->abandoned();
    throw Abandoned(reason.status, where() + ": " + reason.what());
  }
  const Error &error = *errors[static_cast<uint32_t>(rank) - first];
  throw Error(error.status, where() + ": " + error.what());
}

std::string RankGroup::where() const {
  return currentRun ? runText(currentName, currentRun) : currentName;
}

void RankGroup::serve(uint32_t rank) {
  touchStack();
  options.cpus.bind((rank - first) * options.threadsPerRank);
  for (uint64_t seen = 0;; ++seen) {
    waitFor(
        jobEvent, spins, 1000, [&] { return generation.load(std::memory_order_acquire) != seen; },
        [] {});
    if (ending)
      return;
    std::optional<Error> &error = errors[rank - first];
    try {
      if (jobBeginsRun)
        executor(rank).beginRun({&executor(rank), rank, currentName, currentRun, current->data(),
                                 current->data() + current->size(),
                                 std::strcmp(currentName, "step") == 0});
      (this->*job)(executor(rank));
    } catch (const Abandoned &) {
      // This rank has ended because another rank, perhaps in another process, has failed. The other
      // rank reports why the run failed.
      if (localRanks() < ranks())
        error = communicator->abandoned();
    } catch (const Error &reason) {
      error = withDeviceProgress(executor(rank), reason);
    } catch (const std::exception &reason) {
      error = Error(FSDPRT_FAILED, reason.what());
    }
    int32_t none = -1;
    if (error) {
      firstFailure.compare_exchange_strong(none, static_cast<int32_t>(rank),
                                           std::memory_order_acq_rel);
      communicator->abort(error->status);
    }
    if (running.fetch_sub(1, std::memory_order_acq_rel) == 1)
      doneEvent.notify();
  }
}

void RankGroup::run(const fb::Program &program) {
  DecodedProgram &decoded = programs.at(&program);
  current = &decoded.instructions;
  for (const std::shared_ptr<RankObserver> &observer : observers)
    observer->prepare(decoded.instructions);
  peak = std::max(peak, decoded.end);
  currentName = program.name()->c_str();
  bool step = std::strcmp(currentName, "step") == 0;
  currentRun = ++decoded.runs + (step ? options.stepsBefore : 0);
  if (recording && step && !isAgain)
    return runRecorded();
  onEveryRank(&RankGroup::execute);
}

void RankGroup::runAgain(const fb::Program &program, std::shared_ptr<RankObserver> observer) {
  --programs.at(&program).runs;
  observers.push_back(std::move(observer));
  isAgain = true;
  auto restore = [this] {
    isAgain = false;
    observers.pop_back();
  };
  try {
    run(program);
  } catch (...) {
    restore();
    throw;
  }
  restore();
}
