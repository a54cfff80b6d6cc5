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

/// Connects this rank with the others at options.place, and sets options.launchedChannel to this
/// rank's end of a channel. Must be called before threads exist. Throws Error if the ranks do not
/// connect in time.
void rendezvous(LaunchOptions &options);

/// Tells the other ranks that this rank fails before it connects, so that they do not wait for it.
/// May take some seconds.
void reportToPeers(const LaunchPlace &place, const Error &error);

/// Tells the host that the rank ends because of an error. Returns the first failure of all ranks,
/// as the host reports it. If the host does not answer, returns this rank's own failure.
Error askHost(const LaunchOptions &options, int channel, fsdprt_status status, const char *message);

/// Like askHost(). Also prints the failure to stderr, and returns its status, which is the exit
/// code.
int reportToHost(const LaunchOptions &options, int channel, fsdprt_status status,
                 const char *message);

/// Tells the host that a rank ends in an orderly way. Rank 0 waits briefly for the host, which ends
/// after the last rank.
void leaveRendezvous(const LaunchOptions &options, int channel);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_LAUNCHERRENDEZVOUS_H
