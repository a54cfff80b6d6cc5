//===- StepGraph.cpp - A step as one graph of its ranks' GPUs -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The first run of 'step' is recorded by all ranks as they would execute it, each on its thread,
// and then launched; later ones are launched by the first rank here. What the host does in a step
// beside that is to number it, before.
//
//===----------------------------------------------------------------------===//

#include "artifact/Arenas.h"
#include "execute/RankGroup.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;

/// Whether the host takes part in a command while it executes.
bool RankGroup::needsHost(const Instruction &instruction) const {
  switch (instruction.kind) {
  case fb::Body::Collective:
    return !communicator->isOnDevice();
  case fb::Body::Copy: {
    const auto &copy = *static_cast<const fb::Copy *>(instruction.body);
    return isInFile(layout, copy.source()->offset()) || isInFile(layout, copy.target()->offset());
  }
  case fb::Body::Fill:
    return !isOnDevice(layout, static_cast<const fb::Fill *>(instruction.body)->target()->offset());
  case fb::Body::Initialise:
    return true;
  default:
    return false;
  }
}

/// Before there is anything to record.
void RankGroup::checkRecordable(const DecodedProgram &step) const {
  if (communicator->localRanks() > 1 && std::strcmp(communicator->name(), "nccl") == 0)
    badInput("%s: expected a process for each rank, for a CUDA graph over NCCL, found %u ranks in "
             "one; run with --processes, or without --cuda-graph",
             artifact.getFile().c_str(), communicator->localRanks());
  for (const Instruction &instruction : step.instructions)
    if (needsHost(instruction))
      badInput("%s: expected a step that GPUs do by themselves, for a CUDA graph, found command "
               "%u, %s '%s', in which the host takes part; run "
               "without --cuda-graph",
               artifact.getFile().c_str(), instruction.number, fb::EnumNameBody(instruction.kind),
               printable(instruction.label).c_str());
}

void RankGroup::addRecording() {
  std::vector<Device *> devices;
  for (const auto &each : executors)
    devices.push_back(&each->getDevice());
  recording = devices.front()->makeGraph(devices);
}

/// Of the current program.
void RankGroup::record() {
  uint64_t before[4];
  std::copy_n(communicator->exchangedBytes(), 4, before);
  recording->begin();
  try {
    onEveryRank(&RankGroup::recordRank);
    recording->end();
  } catch (...) {
    recording->cancel();
    throw;
  }
  for (size_t kind = 0; kind < 4; ++kind)
    recordedBytes[kind] = communicator->exchangedBytes()[kind] - before[kind];
  communicator->countExchanged(recordedBytes, -1); // a recording moves nothing
}

void RankGroup::recordRank(RankExecutor &rank) {
  rank.resetHeartbeat();
  rank.executeCommands();
}

void RankGroup::replay(RankExecutor &rank) {
  if (&rank != executors.front().get())
    return;
  RankExecutor::ObservedRun observed(rank);
  for (const auto &each : executors) {
    each->numberStep();
    each->resetHeartbeat();
  }
  recording->launch();
  finishDevices();
}

void RankGroup::runRecorded() {
  if (!recording->isReady())
    record();
  onEveryRank(&RankGroup::replay);
  communicator->countExchanged(recordedBytes, 1);
}
