//===- ProgressReport.cpp - Positions of ranks on their GPUs ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The watchdog records only which command a rank has enqueued last on its GPU. The command that the
// GPU executes may be much earlier. The GPU therefore counts launches: its heartbeat is n after the
// GPU has begun launch 32 n of the run. If a command hangs or fails while the heartbeat is n, this
// command is between launch 32 n and launch 32 (n + 1).
//
//===----------------------------------------------------------------------===//

#include "execute/RankGroup.h"

using namespace fsdprt;

/// Returns the command of launch number `left` in [begin, end), where the number of the first
/// launch is 1. Each phase of a kernel is one launch. If the range has fewer than `left` launches,
/// subtracts the number of these launches from `left` and returns null.
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
      launchAt(interval.numbers + 1)) // No launch of the program matches the heartbeat.
    return {};
  if (!passed)
    return on + "before command " + textOf(*next);
  return next ? on + "between commands " + textOf(*passed) + " and " + textOf(*next)
              : on + "after command " + textOf(*passed);
}

/// Resets the heartbeat of the GPU. The previous run must have ended on the device.
void RankExecutor::resetHeartbeat() {
  heartbeat = 0;
  device->resetHeartbeat();
}

void RankExecutor::updateHeartbeat() {
  uint32_t now = device->heartbeat();
  if (now == heartbeat)
    return;
  heartbeat = now;
  context.watchdog.beat(rank);
}

void RankExecutor::finishDevice() {
  device->finish([this] {
    communicator.poll();
    updateHeartbeat();
  });
}

/// Waits for the devices of all ranks of this process. The threads of these ranks must be idle.
void RankGroup::finishDevices() {
  executors.front()->getDevice().finish([this] {
    communicator->poll();
    for (const auto &each : executors)
      each->updateHeartbeat();
  });
}

/// Returns a text about each rank of this process: the last command that the rank has executed or
/// enqueued, and the position of the rank's GPU.
std::string RankGroup::progressReport() const {
  std::string text;
  bool isBehind = false;
  for (uint32_t rank = first; rank < first + localRanks(); ++rank) {
    std::string place = executor(rank).deviceProgress();
    isBehind |= !place.empty();
    text += (rank > first ? "; " : "") + communicator->describeProgress(rank) + place;
  }
  return text + (isBehind ? "; a rank's last command is the one that it enqueued on its GPU last, "
                            "which may be far ahead of the one that runs there"
                          : "");
}

/// Returns `reason` if the rank's GPU has no sticky fault, and otherwise an error that also
/// describes the fault. After a sticky fault, all later CUDA calls of all ranks return this fault.
Error RankGroup::withDeviceProgress(const RankExecutor &rank, const Error &reason) const {
  std::string fault = rank.getDevice().fault();
  if (fault.empty())
    return reason;
  std::string said = reason.message.find(fault) == std::string::npos ? " (" + fault + ")" : "";
  return Error(
      reason.status,
      format("%s: %s, because a command on GPU %d failed%s: %s; to find it, set "
             "CUDA_LAUNCH_BLOCKING=1 to wait for each kernel, run with --profile to wait for each "
             "command of the first rank, or run compute-sanitizer",
             artifact.getFile().c_str(), reason.what(), rank.getDevice().ordinal(), said.c_str(),
             progressReport().c_str()));
}
