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
#include "fsdpcommon/KernelTime.h"
#include "fsdprt/fsdprt.h"
#include "simulate/Cluster.h"
#include <array>
#include <vector>

namespace fsdprt {

/// Totals of all collectives that have the same kind and unit.
struct SimulatedCollective {
  std::string kind, unit, protocol;
  uint64_t runs = 0, bytes = 0; // `bytes`: size of source or target, whichever is larger

  /// Sums of times in seconds. `inFlight` adds the times from the beginning to the end of each
  /// collective. `alone` adds these times without delays by other transfers. `exposed` adds the
  /// times for which the rank waited.
  double inFlight = 0, alone = 0, exposed = 0;
};

/// Totals of all runs of one kernel.
struct SimulatedKernel {
  std::string kind, name, label; // `label`: of the first command that runs it
  uint64_t runs = 0, launches = 0;
  double seconds = 0, tensor = 0, memory = 0; // `tensor`, `memory`: least times for this work
  fsdpcommon::Bound bound = fsdpcommon::Bound::launch; // of its longest launch
};

/// Models of the times of kernels (fsdpcommon/KernelTime.h).
enum class KernelModel { rates, clocks };

struct Simulation {
  double seconds = 0, compute = 0, exposed = 0;
  bool copies = false; // whether copy engines do all-gathers
  double otherSeconds =
      0;             // of the step without copy engines, or with them; 0 without such a choice
  double slowed = 0; // part of `compute`: launches had fewer multiprocessors because of collectives
  uint64_t ranks = 0, tokens = 0, arenaBytes = 0, chunks = 0; // `tokens`: per step, over all ranks
  // for each level: seconds for which the links were busy
  std::vector<double> busy;
  std::vector<SimulatedCollective> collectives; // sorted by descending `exposed`
  KernelModel model = KernelModel::rates;
  std::vector<SimulatedKernel> kernels; // sorted by descending `seconds`
  /// Seconds of launches, by what bounds each (Bound).
  std::array<double, fsdpcommon::numBounds> bounds = {};

  /// Events of rank 0, sorted by end. The artifact owns the strings in the events.
  std::vector<fsdprt_trace_event> events;
};

/// Simulates the program `step` of the artifact. If the cluster has copy engines, simulates it with
/// and without them, and returns the faster simulation. Throws Error if the mesh has more ranks
/// than the cluster, or if the ranks would behave differently.
Simulation simulate(const Artifact &artifact, const Cluster &cluster);

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_SIMULATION_H
