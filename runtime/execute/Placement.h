//===- Placement.h - Where ranks are, and how they meet --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a session's options say of devices and backends.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_PLACEMENT_H
#define FSDPRT_EXECUTE_PLACEMENT_H

#include "artifact/Artifact.h"
#include "collectives/Communicator.h"

namespace fsdprt {

/// Whether it is what the options say.
bool isDevice(const fsdprt_session_options &options, const char *name);
/// Of what brings ranks together; beside NCCL, where bytes move over that.
bool isControl(const fsdprt_session_options &options, const char *name);
/// Throws Error where the artifact does not run there, or not so.
void checkPlace(const Artifact &artifact, const fsdprt_session_options &options);
std::unique_ptr<Communicator> makeCommunicator(const Artifact &artifact,
                                               const fsdprt_session_options &options,
                                               double timeoutSeconds, uint32_t threadsPerRank);
/// Of the reference, which is alone.
std::unique_ptr<Communicator> makeSoloCommunicator(const Artifact &artifact,
                                                   const fsdprt_session_options &options,
                                                   std::unique_ptr<Watchdog> watchdog,
                                                   uint32_t threads);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_PLACEMENT_H
