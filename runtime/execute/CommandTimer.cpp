//===- CommandTimer.cpp - Times of commands ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "execute/CommandTimer.h"
#include "execute/RankGroup.h"

using namespace fsdprt;

CommandTimer::CommandTimer(RankGroup &group, const std::vector<Instruction> &instructions,
                           bool wantsProfile, uint32_t traceRuns)
    : group(group), firstRank(group.firstRank()), states(group.localRanks()) {
  const fb::Manifest &manifest = group.getArtifact().manifest();
  if (wantsProfile)
    profile = std::make_unique<Profile>(manifest, instructions);
  if (traceRuns)
    trace =
        std::make_unique<Trace>(manifest, instructions, firstRank, group.localRanks(), traceRuns);
  for (uint32_t i = 0; i < states.size(); ++i)
    if (trace || i == 0)
      states[i].timeline =
          group.executor(firstRank + i).getDevice().makeTimeline(Trace::stampsOf(instructions));
}

void CommandTimer::beginRun(const RankRun &run) {
  State &state = stateOf(run);
  state.active = run.isStep && (trace || run.rank == firstRank);
  if (!state.active)
    return;
  if (state.timeline)
    state.timeline->begin([this] { group.getCommunicator().poll(); });
  if (profile && run.rank == firstRank)
    profile->begin();
  if (trace)
    trace->begin(run.rank);
}

void CommandTimer::endRun(const RankRun &run) {
  State &state = stateOf(run);
  if (!state.active)
    return;
  if (profile && run.rank == firstRank)
    profile->end();
  if (const DeviceTimeline *timeline = state.timeline.get(); trace && timeline)
    trace->resolve(run.rank, [timeline](uint64_t stamp) {
      return timeline->timeOf(static_cast<uint32_t>(stamp));
    });
}

void CommandTimer::beforeCommand(const RankRun &run, const Instruction &) {
  State &state = stateOf(run);
  if (!state.active)
    return;
  state.start = Profile::now();
  if (state.timeline)
    state.before = state.timeline->stampCommand();
}

void CommandTimer::afterCommand(const RankRun &run, const Instruction &instruction) {
  State &state = stateOf(run);
  if (!state.active)
    return;
  if (state.timeline)
    return endStamped(run, state, instruction);
  // A profile waits for the device, so that the measured command does not overlap the next command.
  if (profile)
    run.executor->finishDevice();
  uint64_t end = Profile::now();
  auto index = static_cast<size_t>(&instruction - run.begin);
  if (profile && run.rank == firstRank)
    profile->add(index, end - state.start);
  if (!trace)
    return;
  DeviceSpan span = run.executor->spanOnHost(instruction);
  trace->add(run.rank, index, state.start, end, span.from, span.to);
}

void CommandTimer::endStamped(const RankRun &run, State &state, const Instruction &instruction) {
  uint32_t after = state.timeline->stampCommand();
  auto index = static_cast<size_t>(&instruction - run.begin);
  if (profile) {
    run.executor->finishDevice();
    bool computes = instruction.kind == fb::Body::Launch || instruction.kind == fb::Body::Fill;
    uint64_t took = computes ? state.timeline->timeOf(after) - state.timeline->timeOf(state.before)
                             : Profile::now() - state.start;
    if (run.rank == firstRank)
      profile->add(index, took);
  }
  if (!trace)
    return;
  DeviceSpan span = run.executor->spanOnDevice(instruction);
  trace->add(run.rank, index, state.before, after, span.from, span.to);
}
