//===- StepGraph.cpp - A step as one CUDA graph ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In the first run of 'step', the thread of each rank of this process records its commands in one
// graph. The first rank of this process launches the graph, both at the end of this run and in each
// later run. Before a launch, the host only writes the number of the step and resets the
// heartbeats.
//
//===----------------------------------------------------------------------===//

#include "artifact/Arenas.h"
#include "execute/RankGroup.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;

/// Returns true if the host must do more for a command than enqueue it. The graph cannot record
/// such a command.
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

void RankGroup::checkRecordable(const DecodedProgram &step) const {
  if (communicator->localRanks() > 1 && std::strcmp(communicator->name(), "nccl") == 0)
    badInput("%s: a CUDA graph over NCCL: expected a process for each rank, found %u ranks in one; "
             "run with --processes, or without --cuda-graph",
             artifact.getFile().c_str(), communicator->localRanks());
  for (const Instruction &instruction : step.instructions)
    if (needsHost(instruction))
      badInput("%s: a CUDA graph: expected a step that runs on GPUs only, found command %u, %s "
               "'%s', which needs the host; run without --cuda-graph",
               artifact.getFile().c_str(), instruction.number, fb::EnumNameBody(instruction.kind),
               printable(instruction.label).c_str());
}

void RankGroup::addRecording() {
  std::vector<Device *> devices;
  for (const auto &each : executors)
    devices.push_back(&each->getDevice());
  recording = devices.front()->makeGraph(devices);
}

void RankGroup::record() {
  uint64_t before[collectiveKinds];
  std::copy_n(communicator->exchangedBytes(), collectiveKinds, before);
  recording->begin();
  try {
    onEveryRank(&RankGroup::recordRank);
    recording->end();
  } catch (...) {
    recording->cancel();
    throw;
  }
  for (size_t kind = 0; kind < collectiveKinds; ++kind)
    recordedBytes[kind] = communicator->exchangedBytes()[kind] - before[kind];
  // The communicator has counted the bytes of the recorded collectives, which have transferred
  // nothing yet. Therefore subtract these bytes.
  communicator->countExchanged(recordedBytes, -1);
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
