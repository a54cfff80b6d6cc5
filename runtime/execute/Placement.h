//===- Placement.h - Devices and backends of a session ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_PLACEMENT_H
#define FSDPRT_EXECUTE_PLACEMENT_H

#include "artifact/Artifact.h"
#include "collectives/Communicator.h"

namespace fsdprt {

bool isDevice(const fsdprt_session_options &options, const char *name);
/// Returns true if the backend `name` connects the ranks. If the ranks use NCCL for collectives,
/// options.control selects the backend that connects them.
bool isControl(const fsdprt_session_options &options, const char *name);
/// Throws Error if the artifact cannot run on the device and backend that `options` select.
void checkPlace(const Artifact &artifact, const fsdprt_session_options &options);
/// Creates the communicator of the sharded ranks. Throws Error.
std::unique_ptr<Communicator> makeCommunicator(const Artifact &artifact,
                                               const fsdprt_session_options &options,
                                               double timeoutSeconds, uint32_t threadsPerRank);
/// Creates the communicator of the unsharded reference, which has one rank.
std::unique_ptr<Communicator> makeSoloCommunicator(const Artifact &artifact,
                                                   const fsdprt_session_options &options,
                                                   std::unique_ptr<Watchdog> watchdog,
                                                   uint32_t threads);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_PLACEMENT_H
