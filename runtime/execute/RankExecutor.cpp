//===- RankExecutor.cpp - Executes programs on one rank ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "execute/RankExecutor.h"
#include "core/SystemCalls.h"

using namespace fsdprt;

static constexpr uint64_t chunkBytes = uint64_t(1) << 20;

RankExecutor::RankExecutor(const GroupContext &context, uint32_t number,
                           std::unique_ptr<Device> newDevice, uint32_t spins, size_t mostBindings)
    : context(context), layout(context.layout), communicator(context.communicator), rank(number),
      device(std::move(newDevice)),
      arena(device->allocate(layout, communicator.needsSharedArenas() ? Arena::Kind::shared
                                                                      : Arena::Kind::own)),
      pool(context.options.threadsPerRank, spins, context.options.cpus,
           (number - communicator.firstRank()) * context.options.threadsPerRank),
      bindings(mostBindings) {
  if (layout.file_bytes())
    file = std::make_unique<RankFile>(context.options.offloadDirectory, rank, layout.file_bytes());
  if (file && !device->isHostVisible())
    chunk.resize(chunkBytes);
  device->attach(arena, pool);
  communicator.registerArena(
      rank, {arena.at(0), arena.firstPartBytes(), arena.descriptor(), device->queue()});
}

void RankExecutor::addTransferWorkers(bool hasChannels, uint32_t copies) {
  if (hasChannels && communicator.allowsTransferWorkers())
    transferWorker = makeCollectiveWorker(communicator, rank, context.options.linkBytesPerSecond);
  transfers.resize(copies);
  auto performCopy = [this](uint32_t number) { perform(transfers[number]); };
  if (copies && file && !device->isAsynchronous())
    fileWorker = std::make_unique<AsyncTransferWorker>(copies, performCopy);
}

void RankExecutor::stop() {
  transferWorker.reset();
  device->detach();
  fileWorker.reset();
}

void RankExecutor::restrictCalls() {
  std::vector<std::exception_ptr> errors(pool.size());
  pool.run([&](uint32_t worker) {
    try {
      restrictThread(file != nullptr);
    } catch (...) {
      errors[worker] = std::current_exception();
    }
  });
  for (const std::exception_ptr &error : errors)
    if (error)
      std::rethrow_exception(error);
}

void RankExecutor::beginRun(const RankRun &begun) {
  run = begun;
  context.watchdog.beginRun(rank, run.program, run.number);
}

void RankExecutor::execute() {
  numberStep();
  resetHeartbeat();
  executeCommands();
  finishDevice();
  for (const std::shared_ptr<RankObserver> &observer : context.observers)
    observer->endRun(run);
}

RankExecutor::ObservedRun::ObservedRun(const RankExecutor &executor) : executor(executor) {
  for (const std::shared_ptr<RankObserver> &observer : executor.context.observers)
    observer->beginRun(executor.run);
}

RankExecutor::ObservedRun::~ObservedRun() {
  for (const std::shared_ptr<RankObserver> &observer : executor.context.observers)
    observer->endCommands(executor.run);
}

void RankExecutor::executeCommands() {
  ObservedRun observed(*this);
  executeRange(run.begin, run.end, 0);
}

void RankExecutor::executeRange(const Instruction *begin, const Instruction *end,
                                uint64_t iteration) {
  for (const Instruction *at = begin; at != end; ++at) {
    context.watchdog.beat(rank, at->number, at->label);
    if (at->kind != fb::Body::Loop) {
      for (const std::shared_ptr<RankObserver> &observer : context.observers)
        observer->beforeCommand(run, *at);
      executeOne(*at, iteration);
      for (const std::shared_ptr<RankObserver> &observer : context.observers)
        observer->afterCommand(run, *at);
      continue;
    }
    uint32_t count = static_cast<const fb::Loop *>(at->body)->count();
    for (uint32_t k = 0; k < count; ++k)
      executeRange(at + 1, at + 1 + at->length, k);
    at += at->length;
  }
}

DeviceSpan RankExecutor::spanOnHost(const Instruction &instruction) const {
  if (instruction.kind != fb::Body::Wait)
    return {};
  if (instruction.transferKind == TransferKind::copies)
    return device->spanOfCopy(instruction.collective);
  const AsyncTransferWorker *worker = workerOf(instruction.transferKind);
  AsyncTransferWorker::Span span =
      worker ? worker->span(instruction.collective) : AsyncTransferWorker::Span();
  return {span.begin, span.end};
}

DeviceSpan RankExecutor::spanOnDevice(const Instruction &instruction) const {
  bool isBlocking = instruction.kind == fb::Body::Collective &&
                    static_cast<const fb::Collective *>(instruction.body)->channel() == 0;
  if (instruction.kind != fb::Body::Wait && !isBlocking)
    return {};
  if (instruction.transferKind == TransferKind::copies)
    return device->spanOfCopy(instruction.collective);
  return instruction.transferKind == TransferKind::collectives
             ? communicator.spanOnDevice(instruction.collective, rank)
             : DeviceSpan();
}

uint64_t RankExecutor::offsetOf(const fb::Slice &slice, uint64_t iteration) const {
  uint64_t piece = slice.piece() ? context.mesh.pieceOf(slice.split(), rank) * slice.piece() : 0;
  return slice.offset() + piece + iteration * slice.stride();
}

std::byte *RankExecutor::at(const fb::Slice &slice, uint64_t iteration) const {
  return arena.at(offsetOf(slice, iteration));
}

/// Returns true if the host need not wait for earlier commands before it executes `instruction`.
/// This is the case if the host only enqueues the command: the device or the communicator then
/// executes it after the earlier commands.
bool RankExecutor::isOnStream(const Instruction &instruction) const {
  switch (instruction.kind) {
  case fb::Body::Launch:
  case fb::Body::Fill:
  case fb::Body::Copy:
    return true; // If the host does a copy or fill itself, it first calls finishDevice().
  case fb::Body::Collective:
    return communicator.isOnDevice();
  case fb::Body::Wait:
    return instruction.transferKind == TransferKind::collectives ? communicator.isOnDevice()
                                                                 : device->isAsynchronous();
  default:
    return false;
  }
}

void RankExecutor::executeOne(const Instruction &instruction, uint64_t iteration) {
  // Before the host itself executes a command, the device must have executed all earlier commands.
  if (!isOnStream(instruction))
    finishDevice();
  switch (instruction.kind) {
  case fb::Body::Launch:
    return launch(*static_cast<const fb::Launch *>(instruction.body), iteration);
  case fb::Body::Collective:
    return start(instruction, iteration);
  case fb::Body::Wait:
    return wait(instruction);
  case fb::Body::Copy: {
    const auto &body = *static_cast<const fb::Copy *>(instruction.body);
    return body.channel() == 0 ? copy(instruction, iteration) : startCopy(instruction, iteration);
  }
  case fb::Body::Fill:
    return fill(*static_cast<const fb::Fill *>(instruction.body)->target(), iteration);
  case fb::Body::Initialise:
    return initialise(*static_cast<const fb::Initialise *>(instruction.body));
  default:
    return;
  }
}

/// Returns true if a collective is a reduction of floating-point values.
static bool isReduction(const fb::Collective &collective) {
  return (collective.kind() == fb::CollectiveKind::reduce_scatter ||
          collective.kind() == fb::CollectiveKind::all_reduce) &&
         isFloat(collective.dtype());
}

void RankExecutor::start(const Instruction &instruction, uint64_t iteration) {
  const auto &collective = *static_cast<const fb::Collective *>(instruction.body);
  uint64_t source = offsetOf(*collective.source(), iteration);
  if (isReduction(collective))
    for (const std::shared_ptr<RankObserver> &observer : context.observers)
      observer->beforeReduction(run, instruction, source);
  if (instruction.joinsNext)
    communicator.joinNext(rank);
  communicator.start(instruction.collective, rank, arena.at(source),
                     at(*collective.target(), iteration));
  for (const std::shared_ptr<RankObserver> &observer : context.observers)
    observer->afterStart(run, instruction);
  // The worker thread waits for all collectives, even for blocking ones, so that only this thread
  // of the rank waits for other ranks.
  if (transferWorker)
    transferWorker->post(instruction.collective);
  if (collective.channel() == 0)
    wait(instruction);
}

void RankExecutor::wait(const Instruction &instruction) {
  if (instruction.transferKind == TransferKind::copies)
    return device->awaitCopy(instruction.collective);
  if (AsyncTransferWorker *worker = workerOf(instruction.transferKind))
    worker->await(instruction.collective);
  else if (instruction.transferKind == TransferKind::collectives)
    finishPaced(communicator, instruction.collective, rank, pool,
                context.options.linkBytesPerSecond);
}

void RankExecutor::launch(const fb::Launch &launch, uint64_t iteration) {
  uint32_t count = launch.bindings() ? launch.bindings()->size() : 0;
  for (uint32_t i = 0; i < count; ++i)
    bindings[i] = at(*launch.bindings()->Get(i), iteration);
  bindings[count] = arena.at(layout.workspace() ? layout.workspace()->offset() : 0);
  uint32_t phases = context.artifact.manifest().kernels()->Get(launch.kernel())->phases()->size();
  for (uint32_t phase = 0; phase < phases; ++phase) {
    context.watchdog.beat(rank);
    device->launch(launch.kernel(), phase, bindings.data());
  }
}
