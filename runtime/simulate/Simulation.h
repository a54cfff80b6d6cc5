//===- Simulation.h - Simulates a step on a cluster -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   compute   | launch | launch | wait.. | launch |   commands of the artifact's program `step`
//   channel 1 |  gather    |  gather    |                Links.h
//
// Simulates one rank, because all ranks run the same program and their groups use the links alike.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_SIMULATE_SIMULATION_H
#define FSDPRT_SIMULATE_SIMULATION_H

#include "artifact/Artifact.h"
#include "fsdprt/fsdprt.h"
#include "simulate/Cluster.h"
#include <vector>

namespace fsdprt {

/// Totals of all collectives that have the same kind and unit.
struct SimulatedCollective {
  std::string kind, unit, protocol;
  uint64_t runs = 0, bytes = 0; // `bytes`: source or target, whichever is larger

  /// Sums of times in seconds. `inFlight` is the time from the begin to the end of the collectives.
  /// `alone` is the same time without delays by other transfers on the links. `exposed` is the time
  /// for which the rank waited for the collectives.
  double inFlight = 0, alone = 0, exposed = 0;
};

struct Simulation {
  double seconds = 0, compute = 0, exposed = 0;
  uint64_t ranks = 0, tokens = 0, arenaBytes = 0, chunks = 0; // `tokens`: over all ranks
  // for each level: seconds for which the links were busy
  std::vector<double> busy;
  std::vector<SimulatedCollective> collectives; // sorted by descending `exposed`

  /// Events of rank 0, sorted by end. The artifact owns the strings in the events.
  std::vector<fsdprt_trace_event> events;
};

/// Simulates the program `step` of the artifact. Throws Error if the mesh has more ranks than the
/// cluster, or if the ranks would behave differently.
Simulation simulate(const Artifact &artifact, const Cluster &cluster);

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_SIMULATION_H
