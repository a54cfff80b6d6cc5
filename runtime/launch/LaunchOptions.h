//===- LaunchOptions.h - How the processes of a run are started -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a user asks of ranks and processes, and what LaunchPlan.h makes of it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_LAUNCHOPTIONS_H
#define FSDPRT_LAUNCH_LAUNCHOPTIONS_H

#include "launch/Environment.h"

namespace fsdprt {

struct LaunchOptions {
  const char *program = "fsdp-run"; ///< its name, for messages
  std::string artifact;
  uint64_t ranks = 0; ///< that the artifact has to have; 0: any number
  std::string device = "cpu", backend = "local";
  bool runs = true; ///< programs are run, and not looked at only

  bool processes = false; ///< this process starts one for each rank
  bool backendGiven = false, processesGiven = false, heartbeatGiven = false;
  std::string control = "local"; ///< the backend, or what brings ranks together beside NCCL
  double timeoutSeconds = 60, heartbeatSeconds = 2, rendezvousSeconds = 60;
  bool restart = false; ///< when a rank is lost or hangs
  uint64_t mostRestarts = 3;
  std::string flightRecord; ///< where it is written; empty: in the folder of temporary files

  // Of a process that has one rank of several.
  std::optional<uint32_t> launchedRank;
  int launchedChannel = -1;         ///< to the process that supervises the ranks
  std::string launchedResume;       ///< where to go on after a restart
  std::optional<LaunchPlace> place; ///< what a launcher says of this process
  bool needsRendezvous = false; ///< ranks of one machine that a launcher started meet at the place

  /// Returns true in the process that prints, and that writes what there is one of.
  bool isRoot() const { return launchedRank.value_or(0) == 0; }
};

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_LAUNCHOPTIONS_H
