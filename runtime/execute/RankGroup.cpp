//===- RankGroup.cpp - Ranks that run programs together ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Set-up: programs are decoded into flat lists, each collective gets its site, each
// rank maps and touches its arena and writes its rank block. A run is then a walk
// over a list; nothing on the way allocates.
//
// A rank that fails sets the watch's flag, which ends the others' waits; the first
// error is the one reported. A rank that stops beating while nobody waits for it
// (a kernel that does not end) is found by the thread that called run().
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
static constexpr double maxPollSeconds = 0.1; // seconds
static constexpr uint64_t chunkBytes = uint64_t(1) << 20;

RankGroup::RankGroup(std::shared_ptr<const Artifact> shared,
                     std::unique_ptr<Communicator> newCommunicator, const fb::Layout &layout,
                     bool reference, const RankGroupOptions &options)
    : owned(std::move(shared)), artifact(*owned), mesh(newCommunicator->getMesh()), layout(layout),
      options(options), communicator(std::move(newCommunicator)),
      watchdog(communicator->getWatchdog()),
      spins(spinsFor(communicator->localRanks() * options.threadsPerRank)),
      first(communicator->firstRank()) {
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
  for (uint32_t i = 0; i < communicator->localRanks(); ++i) {
    Arena::Kind kind = communicator->needsSharedArenas() ? Arena::Kind::shared : Arena::Kind::own;
    rankStates.push_back(std::make_unique<Rank>(std::move(devices[i]), layout, kind,
                                                options.threadsPerRank, spins, bindings));
    rankStates[i]->number = first + i;
    if (layout.file_bytes())
      rankStates[i]->file =
          std::make_unique<RankFile>(options.offloadDirectory, first + i, layout.file_bytes());
    if (layout.file_bytes() && !rankStates[i]->device->isHostVisible())
      rankStates[i]->chunk.resize(chunkBytes);
    const Arena &arena = rankStates[i]->arena;
    Device &device = *rankStates[i]->device;
    device.attach(arena, rankStates[i]->pool);
    communicator->registerArena(
        first + i, {arena.at(0), arena.mappedBytes(), arena.descriptor(), device.queue()});
  }
  if (const Nvtx *nvtx = Nvtx::find()) // a tool asks for ranges
    attach(std::make_shared<NvtxObserver>(*nvtx, artifact.manifest(), first, localRanks()));
  try {
    communicator->connect();
    addTransferWorkers();
    if (records)
      addRecording();
    for (uint32_t rank = first; rank < first + localRanks(); ++rank)
      rankState(rank).thread = std::thread([this, rank] { serve(rank); });
    currentName = "start";
    onEveryRank(&RankGroup::prepare);
  } catch (...) {
    stop();
    throw;
  }
}

/// Those that a rank needs: for collectives on channels, and for copies on channels.
void RankGroup::addTransferWorkers() {
  bool hasChannels = false;
  for (const auto &[program, decoded] : programs)
    hasChannels |= decoded.hasChannels;
  for (uint32_t i = 0; i < localRanks(); ++i) {
    Rank &rank = *rankStates[i];
    if (hasChannels && communicator->allowsTransferWorkers())
      rank.transferWorker =
          makeCollectiveWorker(*communicator, first + i, options.linkBytesPerSecond);
    rank.transfers.resize(numAsyncCopies);
    auto performCopy = [&rank](uint32_t number) { perform(rank, rank.transfers[number]); };
    if (numAsyncCopies && rank.file && !rank.device->isAsynchronous())
      rank.fileWorker = std::make_unique<AsyncTransferWorker>(numAsyncCopies, performCopy);
  }
}

RankGroup::~RankGroup() { stop(); }

void RankGroup::stop() {
  ending = true;
  generation.fetch_add(1, std::memory_order_release);
  jobEvent.notify();
  for (auto &rankState : rankStates)
    if (rankState->thread.joinable())
      rankState->thread.join();
  for (auto &rankState : rankStates) {
    rankState->transferWorker.reset();
    rankState->device->detach();
    rankState->fileWorker.reset();
  }
  communicator->releaseArenas();
}

//===- Devices ------------------------------------------------------------===//

/// Makes a device for each rank here.
std::vector<std::unique_ptr<Device>> RankGroup::makeDevices() const {
  return fsdprt::makeDevices(
      options.device, artifact, layout,
      {communicator->localRanks(), numAsyncCopies, communicator->firstDevice()});
}

uint64_t RankGroup::deviceBytesBeside() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < rankStates.size(); ++i) {
    const Device &device = *rankStates[i]->device;
    bool isFirst = true; // of those on the same physical device
    for (size_t k = 0; k < i; ++k)
      isFirst &= rankStates[k]->device->ordinal() != device.ordinal();
    bytes += isFirst ? device.bytesBeside() : 0;
  }
  return bytes;
}

uint64_t RankGroup::firstElement(const fb::State &state, uint32_t rank) const {
  return mesh.pieceOf(static_cast<uint64_t>(state.split()), rank) * state.elements();
}

//===- Ranks --------------------------------------------------------------===//

void RankGroup::onEveryRank(Job newJob) {
  job = newJob;
  running.store(localRanks(), std::memory_order_relaxed);
  generation.fetch_add(1, std::memory_order_release);
  jobEvent.notify();
  awaitRanks();
  if (firstFailure.load(std::memory_order_acquire) >= 0)
    throwFirstError();
}

void RankGroup::awaitRanks() {
  // Ranks have a little longer to report what they themselves wait for; while they wait for ranks
  // that move they are waited for, too. What counts is how long this thread has seen nothing move:
  // on a machine that stands nobody is blamed.
  double grace = 2 + options.timeoutSeconds * 0.05, lastPoll = monotonicSeconds(), still = 0;
  uint64_t lastBeats = 0;
  waitFor(
      doneEvent, 0, pollMilliseconds, [&] { return running.load(std::memory_order_acquire) == 0; },
      [&] {
        uint64_t beats = running.load(std::memory_order_relaxed) + watchdog.progressRenewals() * 64;
        for (uint32_t rank = first; rank < first + localRanks(); ++rank)
          beats += watchdog.beats(rank) * 64;
        double now = monotonicSeconds();
        still = beats == lastBeats ? still + std::min(now - lastPoll, maxPollSeconds) : 0;
        lastBeats = beats;
        lastPoll = now;
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
  if (rank < 0) // the one that failed is in another process
    throw communicator->abandoned();
  const Error &error = *rankState(static_cast<uint32_t>(rank)).error;
  throw Error(error.status, where() + ": " + error.what());
}

std::string RankGroup::where() const {
  return currentRun ? runText(currentName, currentRun) : currentName;
}

void RankGroup::serve(uint32_t rank) {
  touchStack();
  for (uint64_t seen = 0;; ++seen) {
    waitFor(
        jobEvent, spins, 1000, [&] { return generation.load(std::memory_order_acquire) != seen; },
        [] {});
    if (ending)
      return;
    std::optional<Error> &error = rankState(rank).error;
    try {
      (this->*job)(rank);
    } catch (const Abandoned &) { // another rank has the reason
      if (localRanks() < ranks()) // perhaps in another process
        error = communicator->abandoned();
    } catch (const Error &reason) {
      error = withDeviceProgress(rankState(rank), reason);
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
  run(program);
  isAgain = false;
  observers.pop_back();
}

//===- Execution ----------------------------------------------------------===//

void RankGroup::beginRun(uint32_t rank) {
  watchdog.beginRun(rank, currentName, currentRun);
  rankState(rank).run = {this,
                         rank,
                         currentName,
                         currentRun,
                         current->data(),
                         current->data() + current->size(),
                         std::strcmp(currentName, "step") == 0};
}

void RankGroup::execute(uint32_t rank) {
  beginRun(rank);
  numberStep(rank);
  resetHeartbeat(rankState(rank));
  executeRun(rank);
  finishDevice(rankState(rank));
  for (const std::shared_ptr<RankObserver> &observer : observers)
    observer->endRun(rankState(rank).run);
}

RankGroup::ObservedRun::ObservedRun(const RankGroup &group, const RankRun &run)
    : group(group), run(run) {
  for (const std::shared_ptr<RankObserver> &observer : group.observers)
    observer->beginRun(run);
}

RankGroup::ObservedRun::~ObservedRun() {
  for (const std::shared_ptr<RankObserver> &observer : group.observers)
    observer->endCommands(run);
}

void RankGroup::executeRun(uint32_t rank) {
  ObservedRun observed(*this, rankState(rank).run);
  executeRange(rank, current->data(), current->data() + current->size(), 0);
}

void RankGroup::executeRange(uint32_t rank, const Instruction *begin, const Instruction *end,
                             uint64_t iteration) {
  for (const Instruction *at = begin; at != end; ++at) {
    watchdog.beat(rank, at->number, at->label);
    if (at->kind != fb::Body::Loop) {
      for (const std::shared_ptr<RankObserver> &observer : observers)
        observer->beforeCommand(rankState(rank).run, *at);
      executeOne(rank, *at, iteration);
      for (const std::shared_ptr<RankObserver> &observer : observers)
        observer->afterCommand(rankState(rank).run, *at);
      continue;
    }
    uint32_t count = static_cast<const fb::Loop *>(at->body)->count();
    for (uint32_t k = 0; k < count; ++k)
      executeRange(rank, at + 1, at + 1 + at->length, k);
    at += at->length;
  }
}

DeviceSpan RankGroup::spanOnHost(uint32_t rank, const Instruction &instruction) const {
  if (instruction.kind != fb::Body::Wait)
    return {};
  if (instruction.transferKind == TransferKind::copies)
    return deviceOf(rank).spanOfCopy(instruction.collective);
  const AsyncTransferWorker *worker = workerOf(rankState(rank), instruction.transferKind);
  AsyncTransferWorker::Span span =
      worker ? worker->span(instruction.collective) : AsyncTransferWorker::Span();
  return {span.begin, span.end};
}

DeviceSpan RankGroup::spanOnDevice(uint32_t rank, const Instruction &instruction) const {
  bool isBlocking = instruction.kind == fb::Body::Collective &&
                    static_cast<const fb::Collective *>(instruction.body)->channel() == 0;
  if (instruction.kind != fb::Body::Wait && !isBlocking)
    return {};
  if (instruction.transferKind == TransferKind::copies)
    return deviceOf(rank).spanOfCopy(instruction.collective);
  return instruction.transferKind == TransferKind::collectives
             ? communicator->spanOnDevice(instruction.collective, rank)
             : DeviceSpan();
}

uint64_t RankGroup::offsetOf(uint32_t rank, const fb::Slice &slice, uint64_t iteration) const {
  uint64_t piece = slice.piece() ? mesh.pieceOf(slice.split(), rank) * slice.piece() : 0;
  return slice.offset() + piece + iteration * slice.stride();
}

std::byte *RankGroup::at(uint32_t rank, const fb::Slice &slice, uint64_t iteration) const {
  return rankState(rank).arena.at(offsetOf(rank, slice, iteration));
}

/// Returns true if a command needs nothing of the host but to be enqueued: its device, or what
/// brings such ranks together, executes it after the commands so far.
bool RankGroup::isOnStream(const Rank &rank, const Instruction &instruction) const {
  switch (instruction.kind) {
  case fb::Body::Launch:
  case fb::Body::Fill:
  case fb::Body::Copy:
    return true; // or they finish what was launched themselves
  case fb::Body::Collective:
    return communicator->isOnDevice();
  case fb::Body::Wait:
    return instruction.transferKind == TransferKind::collectives ? communicator->isOnDevice()
                                                                 : rank.device->isAsynchronous();
  default:
    return false;
  }
}

void RankGroup::executeOne(uint32_t index, const Instruction &instruction, uint64_t iteration) {
  Rank &rank = rankState(index);
  if (!isOnStream(rank, instruction)) // the host does the rest
    finishDevice(rank);
  switch (instruction.kind) {
  case fb::Body::Launch:
    return launch(rank, *static_cast<const fb::Launch *>(instruction.body), iteration, index);
  case fb::Body::Collective:
    return start(rank, index, instruction, iteration);
  case fb::Body::Wait:
    return wait(rank, index, instruction);
  case fb::Body::Copy: {
    const auto &body = *static_cast<const fb::Copy *>(instruction.body);
    return body.channel() == 0 ? copy(index, instruction, iteration)
                               : startCopy(index, instruction, iteration);
  }
  case fb::Body::Fill:
    return fill(index, *static_cast<const fb::Fill *>(instruction.body)->target(), iteration);
  case fb::Body::Initialise:
    return initialise(index, *static_cast<const fb::Initialise *>(instruction.body));
  default:
    return;
  }
}

/// Returns true for a sum of floats.
static bool isReduction(const fb::Collective &collective) {
  return (collective.kind() == fb::CollectiveKind::reduce_scatter ||
          collective.kind() == fb::CollectiveKind::all_reduce) &&
         isFloat(collective.dtype());
}

void RankGroup::start(Rank &rank, uint32_t index, const Instruction &instruction,
                      uint64_t iteration) {
  const auto &collective = *static_cast<const fb::Collective *>(instruction.body);
  uint64_t source = offsetOf(index, *collective.source(), iteration);
  if (isReduction(collective))
    for (const std::shared_ptr<RankObserver> &observer : observers)
      observer->beforeReduction(rank.run, instruction, source);
  if (instruction.joinsNext)
    communicator->joinNext(index);
  communicator->start(instruction.collective, index, rank.arena.at(source),
                      at(index, *collective.target(), iteration));
  for (const std::shared_ptr<RankObserver> &observer : observers)
    observer->afterStart(rank.run, instruction);
  if (rank.transferWorker) // all of them, so that one thread waits for peers
    rank.transferWorker->post(instruction.collective);
  if (collective.channel() == 0)
    wait(rank, index, instruction);
}

void RankGroup::wait(Rank &rank, uint32_t index, const Instruction &instruction) {
  if (instruction.transferKind == TransferKind::copies)
    return rank.device->awaitCopy(instruction.collective);
  if (AsyncTransferWorker *transferWorker = workerOf(rank, instruction.transferKind))
    transferWorker->await(instruction.collective);
  else if (instruction.transferKind == TransferKind::collectives)
    finishPaced(*communicator, instruction.collective, index, rank.pool,
                options.linkBytesPerSecond);
}

void RankGroup::launch(Rank &rank, const fb::Launch &launch, uint64_t iteration, uint32_t index) {
  uint32_t count = launch.bindings() ? launch.bindings()->size() : 0;
  for (uint32_t i = 0; i < count; ++i)
    rank.bindings[i] = at(index, *launch.bindings()->Get(i), iteration);
  rank.bindings[count] = rank.arena.at(layout.workspace() ? layout.workspace()->offset() : 0);
  uint32_t phases = artifact.manifest().kernels()->Get(launch.kernel())->phases()->size();
  for (uint32_t phase = 0; phase < phases; ++phase) {
    watchdog.beat(index);
    rank.device->launch(launch.kernel(), phase, rank.bindings.data());
  }
}
