//===- ProgressReport.cpp - Where ranks are on their GPUs -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank is seen at the command that it has put on its GPU last. Where the GPU is the heartbeat
// says, to one beat: its number n stands for the (32 n)-th launch of the run, which a walk through
// the program finds. What hangs or fails is after that and no further than the next beat.
//
//===----------------------------------------------------------------------===//

#include "execute/RankGroup.h"

using namespace fsdprt;

/// The command of a launch, `left` launches behind `begin`; null where there are fewer: `left` is
/// then what is left.
static const Instruction *findLaunch(const fb::Manifest &manifest, const Instruction *begin,
                                     const Instruction *end, uint64_t &left) {
  for (const Instruction *at = begin; at != end; ++at) {
    if (at->kind == fb::Body::Launch) {
      uint64_t phases = manifest.kernels()
                            ->Get(static_cast<const fb::Launch *>(at->body)->kernel())
                            ->phases()
                            ->size();
      if (left <= phases)
        return at;
      left -= phases;
    } else if (at->kind == fb::Body::Loop) {
      const Instruction *body = at + 1;
      for (uint32_t k = 0, count = static_cast<const fb::Loop *>(at->body)->count(); k < count; ++k)
        if (const Instruction *found = findLaunch(manifest, body, body + at->length, left))
          return found;
      at += at->length;
    }
  }
  return nullptr;
}

static std::string textOf(const Instruction &at) {
  return format("%u ('%s')", at.number, printable(at.label).c_str());
}

std::string RankExecutor::deviceProgress() const {
  HeartbeatInterval interval = device->heartbeatInterval();
  if (interval.launches == 0 || !run.begin)
    return {};
  auto launchAt = [&](uint64_t beat) {
    uint64_t left = beat * interval.launches;
    return beat ? findLaunch(context.artifact.manifest(), run.begin, run.end, left) : nullptr;
  };
  uint64_t beats = device->heartbeat();
  const Instruction *passed = launchAt(beats), *next = launchAt(beats + 1);
  std::string on = format(", on GPU %d ", device->ordinal());
  if ((!passed && !next) ||
      launchAt(interval.numbers + 1)) // too short for a beat, or too long for numbers
    return {};
  if (!passed)
    return on + "before command " + textOf(*next);
  return next ? on + "between commands " + textOf(*passed) + " and " + textOf(*next)
              : on + "after command " + textOf(*passed);
}

//===- Heartbeats ---------------------------------------------------------===//

/// The run before has ended on it.
void RankExecutor::resetHeartbeat() {
  heartbeat = 0;
  device->resetHeartbeat();
}

/// What the GPU goes on with is progress of its rank.
void RankExecutor::updateHeartbeat() {
  uint32_t now = device->heartbeat();
  if (now == heartbeat)
    return;
  heartbeat = now;
  context.watchdog.beat(rank);
}

/// Until all that the rank has launched has ended, or another rank has failed.
void RankExecutor::finishDevice() {
  device->finish([this] {
    communicator.poll();
    updateHeartbeat();
  });
}

/// The same of all ranks here, which do nothing meanwhile.
void RankGroup::finishDevices() {
  executors.front()->getDevice().finish([this] {
    communicator->poll();
    for (const auto &each : executors)
      each->updateHeartbeat();
  });
}
//===- Of a group ---------------------------------------------------------===//

/// Of those here: what they have come to, and what their GPUs have.
std::string RankGroup::progressReport() const {
  std::string text;
  bool isBehind = false;
  for (uint32_t rank = first; rank < first + localRanks(); ++rank) {
    std::string place = executor(rank).deviceProgress();
    isBehind |= !place.empty();
    text += (rank > first ? "; " : "") + communicator->describeProgress(rank) + place;
  }
  return text + (isBehind ? "; a rank was last seen at what it put on its GPU last, which may be "
                            "far ahead of what runs there"
                          : "");
}

/// With what is known of a fault that ends a GPU, which is reported to all ranks and calls after
/// it.
Error RankGroup::withDeviceProgress(const RankExecutor &rank, const Error &reason) const {
  std::string fault = rank.getDevice().fault();
  if (fault.empty())
    return reason;
  std::string said = reason.message.find(fault) == std::string::npos ? " (" + fault + ")" : "";
  return Error(
      reason.status,
      format("%s: %s, since something on GPU %d failed%s: %s; CUDA_LAUNCH_BLOCKING=1 waits for "
             "each kernel and so names it, "
             "--profile for each command of the first rank, compute-sanitizer says what it did",
             artifact.getFile().c_str(), reason.what(), rank.getDevice().ordinal(), said.c_str(),
             progressReport().c_str()));
}
