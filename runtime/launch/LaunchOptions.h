//===- LaunchOptions.h - Options for starting processes ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The user's options for ranks and processes. LaunchPlan.h completes them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_LAUNCHOPTIONS_H
#define FSDPRT_LAUNCH_LAUNCHOPTIONS_H

#include "launch/Environment.h"

namespace fsdprt {

struct LaunchOptions {
  const char *program = "fsdp-run"; ///< name of the program, for messages
  std::string artifact;
  std::string verifyKey; ///< PEM file of the key that must have signed the artifact; may be empty
  uint64_t ranks = 0;    ///< required number of ranks of the artifact; 0: any
  std::string device = "cpu", backend = "local";
  bool runs = true; ///< this process runs programs; false for --dump and others

  bool processes = false; ///< this process starts one process per rank
  bool backendGiven = false, processesGiven = false, heartbeatGiven = false;
  std::string control = "local"; ///< backend that connects ranks; differs from `backend` for NCCL
  double timeoutSeconds = 60, heartbeatSeconds = 2, rendezvousSeconds = 60;
  bool restart = false; ///< restart if a rank is lost or hangs
  uint64_t mostRestarts = 3;
  /// Least and most ranks of a restart after ranks were lost; 0: the artifact's ranks only.
  uint64_t leastRanks = 0, mostRanks = 0;
  std::string elasticFolder; ///< folder of the artifacts for other numbers of ranks
  bool isElastic() const { return mostRanks != 0; }
  std::string flightRecord; ///< path; empty: a file in the temporary folder

  // For a process that has one of several ranks:
  std::optional<uint32_t> launchedRank;
  int launchedChannel = -1;         ///< descriptor of the channel to the supervising process
  std::string launchedResume;       ///< folder of saves to resume from after a restart
  std::string launchedArtifact;     ///< artifact after a restart with fewer ranks
  std::optional<LaunchPlace> place; ///< place given by a launcher
  bool needsRendezvous = false;     ///< ranks of one machine connect at `place`

  /// Returns true in the process of rank 0, which prints and writes the files of the whole run.
  bool isRoot() const { return launchedRank.value_or(0) == 0; }
};

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_LAUNCHOPTIONS_H
