//===- LaunchOptions.h - Options for starting processes ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Options that control how ranks and processes are started. They come from the command line or are
// set by placeProcess().
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_LAUNCHOPTIONS_H
#define FSDPRT_LAUNCH_LAUNCHOPTIONS_H

#include "launch/Environment.h"

namespace fsdprt {

struct LaunchOptions {
  const char *program = "fsdp-run"; ///< name of the program, for messages
  std::string artifact;
  std::string verifyKey; ///< PEM file of the key that must have signed the artifact, or empty
  uint64_t ranks = 0;    ///< number of ranks that the artifact must have, or 0 for any
  std::string device = "cpu", backend = "local";
  bool runs = true; ///< false for options such as --dump, which run no program

  bool processes = false; ///< true if this process starts one process per rank
  bool backendGiven = false, processesGiven = false, heartbeatGiven = false;
  /// Backend that connects ranks. It differs from `backend` only for NCCL.
  std::string control = "local";
  double timeoutSeconds = 60, heartbeatSeconds = 2, rendezvousSeconds = 60;
  bool restart = false; ///< true if the ranks restart after a rank is lost or hangs
  uint64_t mostRestarts = 3;
  /// Least and greatest number of ranks with which a run may restart after the loss of ranks. If
  /// `mostRanks` is 0, the number of ranks must not change.
  uint64_t leastRanks = 0, mostRanks = 0;
  std::string elasticFolder; ///< folder of the artifacts for other numbers of ranks
  bool isElastic() const { return mostRanks != 0; }
  std::string flightRecord; ///< path of the flight record; empty to use a default path

  // The next members are set only in a process that has one of several ranks.
  std::optional<uint32_t> launchedRank;
  int launchedChannel = -1;         ///< descriptor of the channel to the supervising process
  std::string launchedResume;       ///< folder of saves to resume from after a restart
  std::string launchedArtifact;     ///< artifact of a restart with another number of ranks
  std::optional<LaunchPlace> place; ///< set if another launcher gave this process a rank
  bool needsRendezvous = false;     ///< true if the ranks connect at `place` and not over MPI

  /// Returns true in the process of rank 0, which prints and writes the files of the whole run.
  bool isRoot() const { return launchedRank.value_or(0) == 0; }
};

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_LAUNCHOPTIONS_H
