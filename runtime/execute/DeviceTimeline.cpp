//===- DeviceTimeline.cpp - When commands ran on GPUs -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The host is through with a command when it is on a stream, which says nothing of the time it
// takes. Where a trace or a profile is asked for, each command has a stamp before and behind it on
// the compute stream, and a transfer has two on its own; what they were is asked when the run has
// ended. And while a rank waits for its GPU, the beats of that are its own.
//
//===----------------------------------------------------------------------===//

#include "execute/RankGroup.h"

using namespace fsdprt;

/// Of the ranks that a program's times are asked of.
void RankGroup::addTimelines(const Decoded &step) {
  uint64_t stamps = Trace::stampsOf(step.instructions);
  for (uint32_t i = 0; i < rankStates.size(); ++i) {
    Rank &rank = *rankStates[i];
    if (trace || i == 0)
      rank.timeline = rank.device->makeTimeline(stamps);
  }
}

void RankGroup::beginTimes(uint32_t rank) {
  if (rankState(rank).timeline)
    rankState(rank).timeline->begin(whileWaiting);
  if (profile && rank == first)
    profile->begin();
  if (trace)
    trace->begin(rank);
}

void RankGroup::endTimes(uint32_t rank) {
  if (profile && rank == first)
    profile->end();
  if (const DeviceTimeline *timeline = rankState(rank).timeline.get(); trace && timeline)
    trace->resolve(rank, [timeline](uint64_t stamp) {
      return timeline->timeOf(static_cast<uint32_t>(stamp));
    });
}

/// Of what a wait, or a command that is its own wait, ends.
DeviceSpan RankGroup::spanOf(uint32_t index, const Instruction &instruction) const {
  bool isBlocking = instruction.kind == fb::Body::Collective &&
                    static_cast<const fb::Collective *>(instruction.body)->channel() == 0;
  if (instruction.kind != fb::Body::Wait && !isBlocking)
    return {};
  if (instruction.transferKind == TransferKind::copies)
    return rankState(index).device->spanOfCopy(instruction.collective);
  return instruction.transferKind == TransferKind::collectives
             ? communicator->spanOnDevice(instruction.collective, index)
             : DeviceSpan();
}

void RankGroup::executeStamped(uint32_t index, const Instruction &instruction, uint64_t iteration) {
  Rank &rank = rankState(index);
  uint64_t start = Profile::now();
  uint32_t before = rank.timeline->stampCommand();
  executeOne(index, instruction, iteration);
  uint32_t behind = rank.timeline->stampCommand();
  auto number = static_cast<size_t>(&instruction - current->data());
  if (profile) {
    finishDevice(rank); // what it takes by itself
    bool computes = instruction.kind == fb::Body::Launch || instruction.kind == fb::Body::Fill;
    uint64_t took = computes ? rank.timeline->timeOf(behind) - rank.timeline->timeOf(before)
                             : Profile::now() - start;
    if (index == first)
      profile->add(number, took);
  }
  if (!trace)
    return;
  DeviceSpan moved = spanOf(index, instruction);
  trace->add(index, number, before, behind, moved.from, moved.to);
}

/// The run before has ended on it.
void RankGroup::resetHeartbeat(Rank &rank) {
  rank.heartbeat = 0;
  rank.device->resetHeartbeat();
}

/// What the GPU goes on with is progress of its rank.
void RankGroup::updateHeartbeat(Rank &rank) {
  uint32_t heartbeat = rank.device->heartbeat();
  if (heartbeat == rank.heartbeat)
    return;
  rank.heartbeat = heartbeat;
  watchdog.beat(rank.number);
}

/// Until all that the rank has launched has ended, or another rank has failed.
void RankGroup::finishDevice(Rank &rank) {
  rank.device->finish([this, &rank] {
    communicator->poll();
    updateHeartbeat(rank);
  });
}

/// The same of all ranks here, which do nothing meanwhile.
void RankGroup::finishDevices() {
  rankState(first).device->finish([this] {
    communicator->poll();
    for (const auto &each : rankStates)
      updateHeartbeat(*each);
  });
}
