//===- ProcessSupervisor.cpp - Supervises ranks in processes ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The age of a heartbeat is the sum of the times between polls since the heartbeat last changed.
// Each of these times counts as at most 100 ms. Heartbeats therefore do not become stale while the
// machine is suspended.
//
//===----------------------------------------------------------------------===//

#include "launch/ProcessSupervisor.h"
#include "core/FutexEvent.h"
#include "io/OutputFile.h"
#include "launch/LaunchPlan.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <unistd.h>

using namespace fsdprt;
using ull = unsigned long long;

static uint32_t
countCollectives(const flatbuffers::Vector<flatbuffers::Offset<fb::Command>> *commands) {
  uint32_t count = 0;
  for (uint32_t i = 0; commands && i < commands->size(); ++i) {
    const fb::Loop *loop = commands->Get(i)->body_as_Loop();
    count +=
        loop ? countCollectives(loop->body()) : commands->Get(i)->body_as_Collective() != nullptr;
  }
  return count;
}

static uint32_t countCollectives(const Artifact &artifact) {
  uint32_t count = 0;
  for (const fb::Program *program : *artifact.manifest().programs())
    if (!isReferenceProgram(program->name()->str()))
      count += countCollectives(program->commands());
  return count;
}

static uint32_t ranksOf(const Artifact &artifact, const LaunchOptions &options) {
  uint64_t ranks = artifact.getMesh().ranks();
  if (options.ranks != 0 && options.ranks != ranks)
    badInput("%s: compiled for %llu rank%s (mesh %s), asked to run on %llu; run with --ranks=%llu "
             "or compile with another --mesh",
             artifact.getFile().c_str(), (ull)ranks, ranks == 1 ? "" : "s",
             artifact.getMesh().text().c_str(), (ull)options.ranks, (ull)ranks);
  return static_cast<uint32_t>(ranks);
}

static ShmHost makeHost(const Artifact &artifact, const LaunchOptions &options,
                        const std::vector<int> &ends) {
  uint32_t ranks = ranksOf(artifact, options), collectives = countCollectives(artifact);
  if (!ends.empty() && ends.size() != ranks)
    badInput(
        "%s: compiled for %u rank%s, but started as %zu processes; start as many, or compile with "
        "another --mesh",
        options.artifact.c_str(), ranks, ranks == 1 ? "" : "s", ends.size());
  return ends.empty() ? ShmHost(ranks, collectives) : ShmHost(ends, collectives);
}

ProcessSupervisor::ProcessSupervisor(const LaunchOptions &options, const std::vector<int> &ends)
    : options(options), artifact(Artifact::open(options.artifact, Rules::all, options.verifyKey)),
      host(makeHost(*artifact, options, ends)), watch(host.getBoard().watchdog(0)),
      heartbeats(host.ranks()) {
  watch->setStringBase(&artifact->manifest());
}

void ProcessSupervisor::begin(bool startedRanks) {
  lastPoll = lastArrival = monotonicSeconds();
  Watcher &self = host.getBoard().header().watcher;
  self.process = static_cast<uint32_t>(getpid());
  self.startedRanks = startedRanks;
  self.heartbeatSeconds = options.heartbeatSeconds;
  std::strncpy(self.program, options.program, sizeof self.program - 1);
  self.heartbeat.store(1, std::memory_order_release);
}

bool ProcessSupervisor::allEnded() const {
  for (uint32_t rank = 0; rank < heartbeats.size(); ++rank)
    if (!hasEnded(rank))
      return false;
  return true;
}

bool ProcessSupervisor::hasReported(uint32_t rank) {
  return host.getBoard().rankSlot(rank).finished.load(std::memory_order_acquire) ||
         host.failureOf(rank);
}

void ProcessSupervisor::killStragglers() {
  if (reason && monotonicSeconds() - reasonSetAt > graceSeconds)
    for (uint32_t rank = 0; rank < heartbeats.size(); ++rank)
      kill(rank, SIGKILL);
}

std::string ProcessSupervisor::describeProgress(uint32_t rank) {
  uint32_t last = watch->lastCollective(rank);
  const SharedControlBlock &board = host.getBoard();
  std::string text = watch->describeProgress(rank);
  if (last < board.collectives()) {
    const char *name = board.name(last);
    text += ", which last started " +
            printable({name, strnlen(name, SharedControlBlock::nameBytes - 1)});
  }
  return text;
}

void ProcessSupervisor::setReason(Error error) {
  if (reason || error.status == FSDPRT_ABANDONED)
    return;
  reason = std::move(error);
  if (reason->status == FSDPRT_LOST || reason->status == FSDPRT_HUNG)
    reason->message += writeFlightRecord();
  reasonSetAt = monotonicSeconds();
  host.getBoard().header().failed.store(reason->status, std::memory_order_release);
  tell(*reason);
}

/// Writes the flight record. Returns a text with the path of the record, which callers append to
/// the error message.
std::string ProcessSupervisor::writeFlightRecord() {
  const SharedControlBlock &board = host.getBoard();
  std::string path = flightRecordPath(options);
  std::string text = watch->record(reason->message, [&](uint32_t collective) {
    return collective < board.collectives() ? std::string(board.name(collective)) : std::string();
  });
  try {
    OutputFile file(path, /*atomic=*/true);
    file.write(text.data(), text.size());
    file.commit();
  } catch (const Error &error) {
    return format("; cannot write the last collectives of all ranks: %s", error.what());
  }
  return "; the last collectives of all ranks are in " + path;
}

void ProcessSupervisor::takeFailures() {
  if (host.getRefusal())
    setReason(*host.getRefusal());
  for (uint32_t rank = 0; rank < heartbeats.size(); ++rank)
    if (const std::optional<Error> &failure = host.failureOf(rank))
      setReason(*failure);
}

/// Ends the run if ranks are missing and no rank has connected for `timeoutSeconds` seconds. Before
/// the first rank connects, the limit is ten times as long.
void ProcessSupervisor::checkArrival() {
  if (host.areConnected() || reason)
    return;
  std::string missing = host.missing();
  double now = monotonicSeconds();
  if (missing != lastMissing) {
    lastMissing = missing;
    lastArrival = now;
  }
  bool noneCame =
      static_cast<size_t>(std::count(missing.begin(), missing.end(), ',')) + 1 == heartbeats.size();
  double limit = options.timeoutSeconds * (noneCame ? 10 : 1);
  if (now - lastArrival > limit)
    return reportMissing(missing, limit);
}

void ProcessSupervisor::reportMissing(const std::string &missing, double limit) {
  setReason(
      {FSDPRT_HUNG, format("rank%s %s did not arrive within %g s",
                           missing.find(',') == missing.npos ? "" : "s", missing.c_str(), limit)});
  for (uint32_t rank = 0; rank < heartbeats.size(); ++rank)
    if ((", " + missing + ",").find(", " + std::to_string(rank) + ",") != std::string::npos)
      kill(rank, SIGKILL); // Only SIGKILL ends a process that SIGSTOP has stopped.
}

void ProcessSupervisor::checkHeartbeats() {
  double now = monotonicSeconds(), since = std::min(now - lastPoll, 2 * pollSeconds);
  lastPoll = now;
  host.getBoard().header().watcher.heartbeat.fetch_add(1, std::memory_order_release);
  for (uint32_t rank = 0; rank < heartbeats.size(); ++rank) {
    Heartbeat &heart = heartbeats[rank];
    uint64_t beats = host.getBoard().rankSlot(rank).heartbeat.load(std::memory_order_relaxed);
    bool beatsOn = beats == 0 || beats != heart.beats || hasEnded(rank);
    heart.still = beatsOn ? 0 : heart.still + since;
    heart.beats = beats;
    if (heart.still <= options.heartbeatSeconds)
      continue;
    std::string where = describeProgress(rank);
    setReason({FSDPRT_HUNG, format("rank %u (process %d) has sent no heartbeat for %.1f s: %s",
                                   rank, processOf(rank), heart.still, where.c_str())});
    kill(rank, SIGKILL);
  }
}
