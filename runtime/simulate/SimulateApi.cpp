//===- SimulateApi.cpp - C interface of the simulator -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "abi/Guard.h"
#include "abi/Structs.h"
#include "simulate/Simulation.h"
#include <algorithm>
#include <numeric>

using namespace fsdprt;

static void visitAll(const Simulation &simulation, const Cluster &cluster,
                     const fsdprt_simulation_visitor &visitor) {
  for (const SimulatedCollective &row : simulation.collectives) {
    fsdprt_simulated_collective given = {};
    given.struct_size = sizeof given;
    given.kind = row.kind.c_str();
    given.unit = row.unit.c_str();
    given.protocol = row.protocol.c_str();
    given.runs = row.runs;
    given.bytes = row.bytes;
    given.in_flight_seconds = row.inFlight;
    given.alone_seconds = row.alone;
    given.exposed_seconds = row.exposed;
    if (visitor.collective)
      visitor.collective(visitor.user, &given);
  }
  for (const SimulatedKernel &row : simulation.kernels) {
    fsdprt_simulated_kernel given = {};
    given.struct_size = sizeof given;
    given.kind = row.kind.c_str();
    given.name = row.name.c_str();
    given.label = row.label.c_str();
    given.bound = fsdpcommon::nameOf(row.bound);
    given.runs = row.runs;
    given.launches = row.launches;
    given.seconds = row.seconds;
    given.tensor_seconds = row.tensor;
    given.memory_seconds = row.memory;
    if (visitor.kernel)
      visitor.kernel(visitor.user, &given);
  }
  std::vector<unsigned> bounds(simulation.bounds.size());
  std::iota(bounds.begin(), bounds.end(), 0);
  std::stable_sort(bounds.begin(), bounds.end(), [&](unsigned a, unsigned b) {
    return simulation.bounds[a] > simulation.bounds[b];
  });
  for (unsigned bound : bounds)
    if (visitor.bound && simulation.bounds[bound] > 0)
      visitor.bound(visitor.user, fsdpcommon::nameOf(static_cast<fsdpcommon::Bound>(bound)),
                    simulation.bounds[bound]);
  for (size_t level = 0; visitor.link && level < cluster.links.size(); ++level) {
    fsdprt_simulated_link given = {sizeof given, cluster.links[level].name.c_str(),
                                   simulation.busy[level]};
    visitor.link(visitor.user, &given);
  }
  for (const fsdprt_trace_event &event : simulation.events)
    if (visitor.event)
      visitor.event(visitor.user, &event);
}

fsdprt_status fsdprt_artifact_simulate(const fsdprt_artifact *handle, const char *path,
                                       fsdprt_simulation *result,
                                       const fsdprt_simulation_visitor *visitor,
                                       fsdprt_error *error) {
  return guard(error, [&] {
    fsdprt_simulation_visitor taken = takeStruct(visitor);
    Cluster cluster = readCluster(path);
    Simulation simulation = simulate(*handle->artifact, cluster);
    fsdprt_simulation filled = {};
    filled.step_seconds = simulation.seconds;
    filled.compute_seconds = simulation.compute;
    filled.exposed_seconds = simulation.exposed;
    filled.ranks = simulation.ranks;
    filled.tokens = simulation.tokens;
    filled.arena_bytes = simulation.arenaBytes;
    filled.chunks = simulation.chunks;
    filled.clocks_per_second =
        simulation.model == KernelModel::clocks ? cluster.clocksPerSecond : 0;
    filled.slowed_seconds = simulation.slowed;
    filled.copies = simulation.copies;
    filled.other_seconds = simulation.otherSeconds;
    giveStruct(filled, result);
    visitAll(simulation, cluster, taken);
  });
}
