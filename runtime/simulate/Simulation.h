//===- Simulation.h - A step on a cluster that is not there -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   compute   | launch | launch | wait.. | launch |   the artifact's program `step`, by commands
//   channel 1 |  gather    |  gather    |                Links.h
//
// Ranks are alike: one program, groups that lie alike on the links. One rank stands for all.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_SIMULATE_SIMULATION_H
#define FSDPRT_SIMULATE_SIMULATION_H

#include "artifact/Artifact.h"
#include "fsdprt/fsdprt.h"
#include "simulate/Cluster.h"
#include <vector>

namespace fsdprt {

/// All collectives of one kind and one unit.
struct SimulatedCollective {
  std::string kind, unit, protocol;
  uint64_t runs = 0, bytes = 0; // bytes: of the larger of source and target, over all runs
  double inFlight = 0, alone = 0,
         exposed = 0; // seconds: begin to end; with the links for itself; waited for
};

struct Simulation {
  double seconds = 0, compute = 0, exposed = 0;
  uint64_t ranks = 0, tokens = 0, arenaBytes = 0, chunks = 0; // tokens: of all ranks
  std::vector<double> busy;                                   // seconds, by level of links
  std::vector<SimulatedCollective> collectives;               // the most exposed first
  std::vector<fsdprt_trace_event>
      events; // of rank 0, in the order of their ends; text lives as long as the artifact
};

/// Throws an Error where the cluster cannot hold the mesh, or ranks would not be alike.
Simulation simulate(const Artifact &artifact, const Cluster &cluster);

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_SIMULATION_H
