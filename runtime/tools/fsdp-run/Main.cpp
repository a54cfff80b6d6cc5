//===- Main.cpp - fsdp-run --------------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Options, artifact, then a dump, a simulation or a run, or a process for each rank that runs. Errors are one line on
// stderr and an exit code. A reader of stdout that goes away ends the process quietly, by SIGPIPE, as it does others;
// but after the current step, and with --export written.
//
//===----------------------------------------------------------------------===//

#include "Launch.h"
#include "Launcher.h"
#include "Meeting.h"
#include "Simulate.h"
#include "Trainer.h"
#include <csignal>
#include <cstdio>
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
       static_cast<int32_t (*)(void *, const char *, size_t)>(write), static_cast<void *>(&printer));
  return 0;
}

static int run(const Options &options, char **argv, Printer &printer) {
  if (options.processes && !options.launchedRank && !options.dump && options.simulate.empty())
    return launch(options, argv);
  fsdprt_artifact *opened = nullptr;
  call(fsdprt_artifact_open, options.artifact.c_str(), &opened);
  ArtifactHandle artifact(opened);
  if (options.dump)
    return dump(artifact.get(), printer);
  if (!options.simulate.empty()) {
    simulate(options, artifact.get(), printer);
    return 0;
  }
  fsdprt_artifact_info info = {};
  info.struct_size = sizeof info;
  fsdprt_artifact_get_info(artifact.get(), &info);
  checkPlaceOf(options, info.ranks);
  return Trainer(options, artifact.get(), printer).run();
}

/// The exit code.
static int report(const Options &options, int channel, fsdprt_status status, const char *message) {
  if (options.meets && channel >= 0)
    return reportToHost(options, channel, status, message);
  std::string who = options.place ? format("rank %u: ", options.place->rank) : "";
  if (channel >= 0)
    tellLauncher(channel, status, message);
  else
    std::fprintf(stderr, "fsdp-run: error: %s%s\n", who.c_str(), message);
  return status;
}

int main(int argc, char **argv) {
  Options options;
  int exitCode = 0;
  std::signal(SIGPIPE, SIG_IGN); // a closed pipe is a failed write
  std::signal(SIGXFSZ, SIG_IGN); // and so is a file that may not grow
  if (!parseOptions(argc, argv, options, exitCode))
    return exitCode;
  try {
    placeProcess(options);
    if (options.meets)
      meet(options);
  } catch (const Error &error) {
    return report(options, -1, error.status, error.what());
  }
  Printer printer(!options.isRoot(), options.place.has_value());
  int channel = options.launchedChannel >= 0 ? dup(options.launchedChannel) : -1; // outlives the session
  try {
    exitCode = run(options, argv, printer);
  } catch (const Error &error) {
    bool quiet = options.dump && printer.isUnread();
    exitCode = quiet ? 0 : report(options, channel, error.status, error.what());
  } catch (const std::exception &error) {
    exitCode = report(options, channel, FSDPRT_FAILED, error.what());
  }
  if (options.meets)
    leaveHost(options, channel);
  if (exitCode == 0 && printer.isUnread()) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  return exitCode;
}
