//===- LaunchPlan.cpp - Ranks of this process -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. A process that `fsdp-run --processes` has started reads its rank from --launched-rank.
//  2. If a launcher has started several processes, environment variables contain the rank of this
//     process. In this case --backend=local, --processes, and a value of --ranks that differs from
//     the number of processes are errors. Ranks connect over MPI if the launcher is an MPI
//     launcher, and otherwise at the address that the environment contains. With --backend=nccl,
//     collectives run over NCCL.
//  3. Otherwise this process has all ranks or, with --processes, starts a process for each rank.
//
//===----------------------------------------------------------------------===//

#include "launch/LaunchPlan.h"
#include "core/Error.h"
#include "launch/Rendezvous.h"
#include <cstdlib>
#include <unistd.h>

using namespace fsdprt;
using ull = unsigned long long;

static void refuseContradictions(const LaunchOptions &options) {
  std::string place = options.place->text();
  if (options.processesGiven)
    badInput("--processes starts all ranks, but this process is %s; omit --processes, or start the "
             "process without a launcher",
             place.c_str());
  if (options.backendGiven && options.backend == "local")
    badInput(
        "--backend=local has all ranks in one process, but this process is %s; omit --backend, "
        "or start the process without a launcher",
        place.c_str());
  if (options.ranks && options.ranks != options.place->ranks)
    badInput("--ranks=%llu, but the process is %s; start as many processes, or omit --ranks",
             (ull)options.ranks, place.c_str());
}

/// Checks that the ranks can connect without MPI. Throws Error if the environment contains no
/// address, if the ranks are on several machines, or if --on-failure=restart is given.
static void checkMeeting(const LaunchOptions &options) {
  const LaunchPlace &place = *options.place;
  if (!place.saysWhere())
    badInput("%s, without a place where ranks meet: set MASTER_ADDR and MASTER_PORT for all ranks, "
             "or start with mpirun, or without a launcher and with --processes",
             place.text().c_str());
  if (!place.meetingName.empty() && place.localRanks.value_or(place.ranks) != place.ranks)
    badInput("%s, %u of them on this machine (%s): ranks of several machines need MPI to reach "
             "each other; start with mpirun",
             place.text().c_str(), *place.localRanks, machineName().c_str());
  if (options.restart)
    badInput("--on-failure=restart needs --processes, but this process is %s; let the launcher "
             "restart the ranks",
             place.text().c_str());
}

/// Throws Error unless the parent process owns the other end of `launchedChannel`. Users therefore
/// cannot set the options --launched-* themselves.
static void checkLaunched(const LaunchOptions &options) {
  bool isLaunched =
      options.launchedChannel >= 0 && processBehind(options.launchedChannel) == getppid();
  if (!isLaunched || !options.launchedRank)
    badInput(
        "--launched-rank, --launched-channel, --launched-resume and --launched-artifact are for "
        "processes started by fsdp-run itself; start ranks with --processes, or with RANK and "
        "WORLD_SIZE in the "
        "environment");
}

void fsdprt::placeProcess(LaunchOptions &options) {
  if (options.launchedRank || options.launchedChannel >= 0 || !options.launchedResume.empty() ||
      !options.launchedArtifact.empty())
    checkLaunched(options);
  if (options.launchedRank || !options.runs)
    return;
  std::optional<LaunchPlace> place = findLaunchPlace();
  if (place && place->ranks > 1) {
    options.place = place;
    refuseContradictions(options);
    options.launchedRank = place->rank;
    if (!options.backendGiven || options.backend == "nccl")
      options.control = place->hasMpi ? "mpi" : "shm";
    if (!options.backendGiven)
      options.backend = options.control;
    options.needsRendezvous = options.control == "shm";
    if (options.needsRendezvous)
      checkMeeting(options);
  } else if (options.backend == "mpi")
    options.launchedRank = 0;
  if (options.device == "cuda" && options.control != "local" && options.backend != "nccl")
    badInput("--device=cuda: ranks on GPUs are threads of one process, or processes over NCCL: "
             "expected --backend=local or nccl, found '%s'",
             options.control.c_str());
  if (options.heartbeatGiven && !options.processes && !options.place)
    badInput("--heartbeat-seconds applies to several processes (--processes, torchrun, mpirun), "
             "but this one has all ranks");
}

void fsdprt::checkPlaceOf(const LaunchOptions &options, uint64_t ranks) {
  if (options.place && options.place->ranks != ranks)
    badInput("%s: compiled for %llu rank%s, but the process is %s; start as many processes, or "
             "compile with "
             "another --mesh",
             options.artifact.c_str(), (ull)ranks, ranks == 1 ? "" : "s",
             options.place->text().c_str());
}

std::string fsdprt::flightRecordPath(const LaunchOptions &options) {
  if (!options.flightRecord.empty())
    return options.flightRecord;
  const char *temporary = std::getenv("TMPDIR");
  std::string folder = format("%s/%s-%d-XXXXXX", temporary && *temporary ? temporary : "/tmp",
                              options.program, static_cast<int>(getpid()));
  // In $TMPDIR or /tmp, other users can also create files, so the record gets a folder that only
  // this user can access. If mkdtemp() fails, the write of the record fails later, with a message
  // that names the path.
  [[maybe_unused]] char *made = mkdtemp(folder.data());
  return folder + "/flight.json";
}
