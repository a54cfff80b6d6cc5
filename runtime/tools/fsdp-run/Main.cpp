//===- Main.cpp - fsdp-run --------------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses the options and opens the artifact. Then does what the options ask for: prints the
// artifact, simulates a step, walks the programs on the null device, trains, or starts one process
// per rank. On an error, prints one line to stderr and returns an exit code. If stdout is a pipe
// and its reader closes the pipe, training ends after the current step. The process then writes the
// file of --export, and ends by SIGPIPE without a message.
//
//===----------------------------------------------------------------------===//

#include "AllocationHook.h"
#include "NullRun.h"
#include "PlantedFaults.h"
#include "Printer.h"
#include "ProfileTable.h"
#include "Simulate.h"
#include "TraceFile.h"
#include "fsdpcommon/ShortText.h"
#include "fsdprt/emulator.h"
#include "launch/Interrupts.h"
#include "launch/LaunchPlan.h"
#include "launch/LauncherRendezvous.h"
#include "launch/ProcessLauncher.h"
#include "train/ElasticArtifacts.h"
#include "train/Trainer.h"
#include <csignal>
#include <cstdio>
#include <tuple>
#include <unistd.h>

using namespace fsdprt;

static int dump(fsdprt_artifact *artifact, Printer &printer) {
  auto write = [](void *to, const char *text, size_t size) -> int32_t {
    try {
      static_cast<Printer *>(to)->raw(text, size);
      return static_cast<Printer *>(to)->isUnread();
    } catch (const Error &) {
      return 1;
    }
  };
  call(fsdprt_artifact_dump, static_cast<const fsdprt_artifact *>(artifact),
       static_cast<int32_t (*)(void *, const char *, size_t)>(write),
       static_cast<void *>(&printer));
  return 0;
}

static ArtifactHandle open(const Options &options) {
  fsdprt_artifact *opened = nullptr;
  if (options.verifyKey.empty())
    call(fsdprt_artifact_open, options.artifact.c_str(), &opened);
  else
    call(fsdprt_artifact_open_signed, options.artifact.c_str(), options.verifyKey.c_str(), &opened);
  return ArtifactHandle(opened);
}

static uint64_t ranksOf(const fsdprt_artifact *artifact) {
  fsdprt_artifact_info info = {};
  info.struct_size = sizeof info;
  fsdprt_artifact_get_info(artifact, &info);
  return info.ranks;
}

/// Opens the artifact before the ranks connect. Throws Error if the number of ranks of the artifact
/// differs from the number of processes. Returns null if the artifact cannot be opened. The run
/// then fails after the ranks have connected, so that all ranks report the error.
static ArtifactHandle openEarly(const Options &options) {
  ArtifactHandle artifact;
  try {
    artifact = open(options);
  } catch (const Error &) {
    return nullptr;
  }
  checkPlaceOf(options, ranksOf(artifact.get()));
  return artifact;
}

/// If --elastic is given and a launcher has started this process, selects the artifact whose number
/// of ranks is the number of processes that the launcher has started.
static void chooseElastic(Options &options) {
  if (!options.isElastic() || !options.runs || options.processes || options.launchedChannel >= 0)
    return;
  std::optional<LaunchPlace> place = findLaunchPlace();
  if (!place)
    badInput("--elastic has no effect without --processes or a launcher such as mpirun");
  options.artifact = ElasticArtifacts(options.artifact, options.elasticFolder, options.leastRanks,
                                      options.mostRanks)
                         .forRanks(place->ranks);
}

namespace {
/// Ends the run after the current step if a signal such as SIGINT has been received.
class InterruptObserver final : public TrainingObserver {
public:
  void beforeTraining(const TrainingRun &run) override {
    const TrainingOptions &options = run.options;
    catchInterrupts(options.needsRendezvous && !run.isRoot             ? Interrupts::quiet
                    : options.launchedRank && !options.needsRendezvous ? Interrupts::launched
                                                                       : Interrupts::said);
  }
  int requestedEnd() const override { return interruptSignal(); }
};
} // namespace

static int train(const Options &options, fsdprt_artifact *artifact, Printer &printer) {
  PlantedFaults faults(options);
  ProfileReport profile;
  InterruptObserver interrupts;
  AllocationCheck allocations;
  TraceReport trace;
  std::vector<TrainingObserver *> observers = {&faults};
  if (options.profile)
    observers.push_back(&profile);
  observers.push_back(&interrupts);
  if (!options.trace.empty())
    observers.push_back(&trace);
  if (options.assertNoAllocations)
    observers.push_back(&allocations);
  return Trainer(options, artifact, printer, observers).execute();
}

/// Starts one process per rank and returns the exit code. If --elastic is given, throws Error if
/// there is no artifact for another number of ranks.
static int launchRanks(const Options &options, char **argv, Printer &printer) {
  std::optional<ElasticArtifacts> artifacts;
  if (options.isElastic()) {
    artifacts.emplace(options.artifact, options.elasticFolder, options.leastRanks,
                      options.mostRanks);
    for (const std::string &reason : artifacts->leftOut())
      printer.warning("--elastic does not use %s", reason.c_str());
    artifacts->expectSeveral();
    printer.line("elastic: %s", artifacts->text().c_str());
  }
  return launch(options, argv, [&](uint64_t left) {
    Restart restart{options.artifact, 0, hasSaves(options.save) ? options.save : std::string()};
    if (artifacts)
      std::tie(restart.ranks, restart.artifact) = artifacts->forAtMost(left);
    return restart;
  });
}

/// Executes the action that the options select, and returns the exit code. If `artifact` is null,
/// opens the artifact first.
static int run(const Options &options, ArtifactHandle artifact, char **argv, Printer &printer) {
  if (options.processes && !options.launchedRank && options.runs)
    return launchRanks(options, argv, printer);
  if (options.isNull() && !options.dump)
    return walk(options, printer);
  if (!artifact)
    artifact = open(options);
  if (options.dump)
    return dump(artifact.get(), printer);
  if (!options.simulate.empty()) {
    simulate(options, artifact.get(), printer);
    return 0;
  }
  checkPlaceOf(options, ranksOf(artifact.get()));
  return train(options, artifact.get(), printer);
}

/// Reports the error with which a run has ended. If another process prints the errors of this
/// process, sends the error to that process. Otherwise prints the error to stderr. Returns the exit
/// code.
static int report(const Options &options, int channel, fsdprt_status status, const char *message) {
  if (options.needsRendezvous && channel >= 0)
    return reportToHost(options, channel, status, message);
  std::string who = options.place ? format("rank %u: ", options.place->rank) : "";
  if (channel >= 0)
    reportToLauncher(options, channel, status, message);
  else
    std::fprintf(stderr, "fsdp-run: error: %s%s\n", who.c_str(),
                 fsdpcommon::printableMessage(message).c_str());
  return status == FSDPRT_ABANDONED ? status : failureStatus(status);
}

/// Reports a usage error to the other ranks, which would wait for this rank. Returns the exit code.
static int endUnparsed(const Options &options, int exitCode) {
  try {
    if (std::optional<LaunchPlace> place = findLaunchPlace(); place && exitCode == FSDPRT_BAD_INPUT)
      reportToPeers(*place, Error(FSDPRT_BAD_INPUT, options.problem));
  } catch (const Error &) {
    // The other ranks cannot be reached, because the environment variables are invalid.
  }
  return exitCode;
}

int main(int argc, char **argv) {
  Options options;
  int exitCode = 0;
  fsdprt_register_emulator();
  // Ignore SIGPIPE and SIGXFSZ, so that a write to a closed pipe, or beyond the limit of the file
  // size, returns an error instead of ending the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  if (!parseOptions(argc, argv, options, exitCode))
    return endUnparsed(options, exitCode);
  ArtifactHandle artifact;
  try {
    placeProcess(options);
    chooseElastic(options);
    if (options.runs && options.launchedChannel < 0)
      catchInterrupts(Interrupts::early);
    if (options.needsRendezvous)
      artifact = openEarly(options);
  } catch (const Error &error) {
    int code = report(options, -1, error.status, error.what());
    if (options.place)
      reportToPeers(*options.place, error);
    return code;
  }
  try {
    if (options.needsRendezvous)
      rendezvous(options);
  } catch (const Error &error) {
    return report(options, -1, error.status, error.what());
  }
  Printer printer(!options.isRoot(), options.place.has_value());
  // The session closes options.launchedChannel. The duplicate is kept to report errors later.
  int channel = options.launchedChannel >= 0 ? dup(options.launchedChannel) : -1;
  try {
    exitCode = run(options, std::move(artifact), argv, printer);
  } catch (const Error &error) {
    bool quiet = options.dump && printer.isUnread();
    exitCode = quiet ? 0 : report(options, channel, error.status, error.what());
  } catch (const std::exception &error) {
    exitCode = report(options, channel, FSDPRT_FAILED, error.what());
  }
  if (options.needsRendezvous)
    leaveRendezvous(options, channel);
  if (exitCode == 0 && printer.isUnread()) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  return exitCode;
}
