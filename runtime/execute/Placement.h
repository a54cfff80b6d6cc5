//===- Placement.h - Devices and backends of a session ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Interprets a session's options for devices and backends.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_PLACEMENT_H
#define FSDPRT_EXECUTE_PLACEMENT_H

#include "artifact/Artifact.h"
#include "collectives/Communicator.h"

namespace fsdprt {

/// Returns true if the options select this device.
bool isDevice(const fsdprt_session_options &options, const char *name);
/// Returns true if this backend connects the ranks. With NCCL, it does everything except
/// collectives.
bool isControl(const fsdprt_session_options &options, const char *name);
/// Throws Error if the artifact cannot run with these options.
void checkPlace(const Artifact &artifact, const fsdprt_session_options &options);
/// Creates the communicator of the ranks. Throws Error.
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
