//===- LauncherRendezvous.h - Ranks started by another launcher *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     torchrun, srun, a script
//       fsdp-run        RANK=0    prints, writes metrics, exports
//         fsdp-run                the host: forked by rank 0; computes and prints nothing, outlives
//                                 rank 0
//       fsdp-run        RANK=1
//       ...
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_LAUNCHERRENDEZVOUS_H
#define FSDPRT_LAUNCH_LAUNCHERRENDEZVOUS_H

#include "core/Error.h"
#include "launch/LaunchOptions.h"

namespace fsdprt {

/// Connects this rank with the others at options.place, and sets options.launchedChannel to its end
/// of a channel. Must be called before threads exist. Throws Error if the ranks do not meet.
void rendezvous(LaunchOptions &options);

/// Tells the other ranks that this one fails before meeting them, so that they do not wait for it.
/// May take some seconds.
void reportToPeers(const LaunchPlace &place, const Error &error);

/// Tells the host that the rank ends because of an error. Returns the first failure of all ranks,
/// as the host reports it; this rank's own if the host does not answer.
Error askHost(const LaunchOptions &options, int channel, fsdprt_status status, const char *message);

/// As askHost; prints the failure to stderr and returns its status, the exit code.
int reportToHost(const LaunchOptions &options, int channel, fsdprt_status status,
                 const char *message);

/// Leaves the host at the end of a rank. Rank 0 waits briefly for the host, which ends after the
/// last rank.
void leaveRendezvous(const LaunchOptions &options, int channel);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_LAUNCHERRENDEZVOUS_H
