//===- Simulation.h - Simulates a step on a cluster -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   compute   | launch | launch | wait.. | launch |   commands of the artifact's program `step`
//   channel 1 |  gather    |  gather    |                Links.h
//
// All ranks run one program, and their groups lie alike on the links. One rank therefore stands for
// all.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_SIMULATE_SIMULATION_H
#define FSDPRT_SIMULATE_SIMULATION_H

#include "artifact/Artifact.h"
#include "fsdprt/fsdprt.h"
#include "simulate/Cluster.h"
#include <vector>

namespace fsdprt {

/// Totals of all collectives of one kind and one unit.
struct SimulatedCollective {
  std::string kind, unit, protocol;
  uint64_t runs = 0, bytes = 0; // bytes: larger of source and target, over all runs
  double inFlight = 0, alone = 0,
         exposed = 0; // seconds: from begin to end; with idle links; waited for
};

struct Simulation {
  double seconds = 0, compute = 0, exposed = 0;
  uint64_t ranks = 0, tokens = 0, arenaBytes = 0, chunks = 0; // tokens: of all ranks
  std::vector<double> busy;                                   // seconds, by level of links
  std::vector<SimulatedCollective> collectives;               // by exposed time, descending
  std::vector<fsdprt_trace_event>
      events; // of rank 0, ordered by end; strings belong to the artifact
};

/// Simulates the program `step`. Throws an Error if the cluster cannot hold the mesh, or if ranks
/// would not behave alike.
Simulation simulate(const Artifact &artifact, const Cluster &cluster);

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_SIMULATION_H
