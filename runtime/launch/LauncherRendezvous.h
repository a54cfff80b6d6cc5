//===- LauncherRendezvous.h - Ranks that another launcher started *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     torchrun, srun, a script
//       fsdp-run        RANK=0    prints, writes metrics, exports
//         fsdp-run                the host: rank 0 forks it; computes nothing, says nothing,
//                                 outlives rank 0
//       fsdp-run        RANK=1
//       ...
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_LAUNCHERRENDEZVOUS_H
#define FSDPRT_LAUNCH_LAUNCHERRENDEZVOUS_H

#include "core/Error.h"
#include "launch/LaunchOptions.h"

namespace fsdprt {

/// Brings this rank together with the others at options.place; options.launchedChannel is its end
/// then. To be called before there are threads. Throws Error when they do not meet.
void rendezvous(LaunchOptions &options);

/// When this rank does not get as far as to meet the others: tells them, in seconds, so that they
/// do not wait for it.
void reportToPeers(const LaunchPlace &place, const Error &error);

/// Tells the host that the rank ends because of an error. Returns the first failure of all ranks,
/// as the host reports it; this rank's own if the host does not answer.
Error askHost(const LaunchOptions &options, int channel, fsdprt_status status, const char *message);

/// As askHost; writes the failure to stderr and returns its status, the exit code.
int reportToHost(const LaunchOptions &options, int channel, fsdprt_status status,
                 const char *message);

/// At the end of a rank: it is gone for the host; rank 0 waits a little for the host, which ends
/// after the last rank.
void leaveRendezvous(const LaunchOptions &options, int channel);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_LAUNCHERRENDEZVOUS_H
