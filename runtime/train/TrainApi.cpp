//===- TrainApi.cpp - Launching, saving and resuming, in C ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements fsdprt/train.h. Each function calls the C++ function that does its work. The call is
// inside guard(), which converts exceptions to errors of the C interface.
//
//===----------------------------------------------------------------------===//

#include "abi/Guard.h"
#include "abi/Structs.h"
#include "fsdprt/train.h"
#include "launch/LaunchPlan.h"
#include "launch/LauncherRendezvous.h"
#include "train/SavedRun.h"
#include "train/Saver.h"
#include <cstring>
#include <unistd.h>

using namespace fsdprt;

static uint64_t ranksOf(const fsdprt_artifact *artifact) {
  fsdprt_artifact_info info = {};
  info.struct_size = sizeof info;
  fsdprt_artifact_get_info(artifact, &info);
  return info.ranks;
}

static fsdprt_session_info describe(const fsdprt_session *session) {
  fsdprt_session_info info = {};
  info.struct_size = sizeof info;
  fsdprt_session_get_info(session, &info);
  return info;
}

/// Returns the rank of this process. Returns nullopt if a single process has all ranks.
static std::optional<uint32_t> singleRank(const fsdprt_session *session) {
  fsdprt_session_info info = describe(session);
  return info.processes > 1 ? std::optional(info.first_rank) : std::nullopt;
}

static void copyText(char *to, size_t size, const std::string &text) {
  std::strncpy(to, text.c_str(), size - 1);
  to[size - 1] = '\0';
}

struct fsdprt_launch {
  LaunchOptions options;
  std::string program;
  /// Duplicate of the descriptor of the rank's channel, or -1. The session closes the original
  /// descriptor.
  int channel = -1;
};

fsdprt_status fsdprt_launch_join(const fsdprt_artifact *artifact,
                                 const fsdprt_launch_options *given, fsdprt_launch **out,
                                 fsdprt_error *error) {
  return guard(error, [&] {
    *out = nullptr;
    fsdprt_launch_options taken = takeStruct(given);
    auto launch = std::make_unique<fsdprt_launch>();
    LaunchOptions &options = launch->options;
    launch->program = taken.program ? taken.program : "fsdprt";
    options.program = launch->program.c_str();
    options.artifact = taken.path ? taken.path : "the artifact";
    options.device = taken.device ? taken.device : "cpu";
    if (taken.backend) {
      options.backend = taken.backend;
      options.backendGiven = true;
    }
    options.control = options.backend == "nccl" ? "local" : options.backend;
    auto seconds = [](double given, double otherwise) { return given > 0 ? given : otherwise; };
    options.rendezvousSeconds = seconds(taken.rendezvous_seconds, options.rendezvousSeconds);
    options.heartbeatSeconds = seconds(taken.heartbeat_seconds, options.heartbeatSeconds);
    options.timeoutSeconds = seconds(taken.timeout_seconds, options.timeoutSeconds);
    try {
      placeProcess(options);
      checkPlaceOf(options, ranksOf(artifact));
    } catch (const Error &problem) {
      if (options.place)
        reportToPeers(*options.place, problem);
      throw;
    }
    if (!options.place && options.control != "mpi")
      return;
    if (options.needsRendezvous) {
      rendezvous(options);
      launch->channel = dup(options.launchedChannel);
    }
    *out = launch.release();
  });
}

void fsdprt_launch_place(const fsdprt_launch *launch, fsdprt_session_options *options) {
  const LaunchOptions &from = launch->options;
  options->backend = from.backend.c_str();
  options->control = from.backend == "nccl" ? from.control.c_str() : nullptr;
  options->rank = from.launchedRank.value_or(0);
  options->channel = from.launchedChannel;
  options->local_rank = from.place && from.place->localRank ? *from.place->localRank + 1 : 0;
  options->ranks_on_machine = from.place ? from.place->localRanks.value_or(0) : 0;
}

void fsdprt_launch_leave(fsdprt_launch *launch, fsdprt_status status, const char *message,
                         fsdprt_error *error) {
  if (!launch)
    return;
  if (launch->channel >= 0) {
    if (status != FSDPRT_OK) {
      Error verdict = askHost(launch->options, launch->channel, status, message ? message : "");
      if (error) {
        error->status = verdict.status;
        copyText(error->message, sizeof error->message, verdict.message);
      }
    }
    leaveRendezvous(launch->options, launch->channel);
    close(launch->channel);
  }
  delete launch;
}

struct fsdprt_saver {
  Saver saver;
};

fsdprt_status fsdprt_saver_open(const fsdprt_artifact *artifact, const fsdprt_session *session,
                                const char *folder, const fsdprt_resumed *resumed, uint64_t keep,
                                fsdprt_saver **out, fsdprt_error *error) {
  return guard(error, [&] {
    auto made = std::make_unique<fsdprt_saver>();
    made->saver.open(folder, resumed ? resumed->folder : "", resumed && *resumed->fallback, keep,
                     artifact, singleRank(session));
    *out = made.release();
  });
}

void fsdprt_saver_close(fsdprt_saver *saver) { delete saver; }

static RunState stateOf(uint64_t step, uint64_t seed) {
  RunState state;
  state.step = step;
  state.seed = seed;
  state.source = "caller";
  return state;
}

fsdprt_status fsdprt_saver_save(fsdprt_saver *saver, fsdprt_session *session, uint64_t step,
                                uint64_t seed, fsdprt_error *error) {
  return guard(error, [&] {
    saver->saver.wait(session);
    saver->saver.save(stateOf(step, seed), session, [] {});
  });
}

fsdprt_status fsdprt_saver_start(fsdprt_saver *saver, fsdprt_session *session, uint64_t step,
                                 uint64_t seed, fsdprt_error *error) {
  return guard(error, [&] {
    saver->saver.wait(session);
    saver->saver.start(stateOf(step, seed), session, [] {});
  });
}

fsdprt_status fsdprt_saver_poll(fsdprt_saver *saver, fsdprt_session *session, int32_t *busy,
                                fsdprt_error *error) {
  return guard(error, [&] {
    *busy = 0;
    saver->saver.poll(session);
    *busy = saver->saver.isBusy();
  });
}

fsdprt_status fsdprt_saver_wait(fsdprt_saver *saver, fsdprt_session *session, fsdprt_error *error) {
  return guard(error, [&] { saver->saver.wait(session); });
}

fsdprt_status fsdprt_saves_resume(const fsdprt_artifact *artifact, fsdprt_session *session,
                                  const char *path, const char *artifactPath, int32_t reference,
                                  fsdprt_resumed *resumed, fsdprt_error *error) {
  return guard(error, [&] {
    SavedRun saved;
    saved.open(path, artifactPath ? artifactPath : "the artifact", artifact, singleRank(session));
    saved.load(session, reference != 0);
    fsdprt_resumed filled = {};
    filled.step = saved.state().step;
    filled.seed = saved.state().seed;
    copyText(filled.folder, sizeof filled.folder, saved.getFolder());
    copyText(filled.fallback, sizeof filled.fallback, saved.fallback());
    copyText(filled.remark, sizeof filled.remark, saved.remark({}));
    giveStruct(filled, resumed);
  });
}
