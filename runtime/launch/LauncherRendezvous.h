//===- LauncherRendezvous.h - Ranks started by another launcher *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     torchrun, srun, a script
//       fsdp-run        RANK=0    prints, writes metrics, exports
//         fsdp-run                the host: forked by rank 0; supervises all ranks, outlives rank 0
//       fsdp-run        RANK=1
//       ...
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_LAUNCHERRENDEZVOUS_H
#define FSDPRT_LAUNCH_LAUNCHERRENDEZVOUS_H

#include "core/Error.h"
#include "launch/LaunchOptions.h"

namespace fsdprt {

/// Connects this rank with the other ranks at options.place. Stores the descriptor of the channel
/// to the host in options.launchedChannel. This function must be called before the process starts
/// threads, because it forks on rank 0. Throws Error if not all ranks connect in time.
void rendezvous(LaunchOptions &options);

/// Reports to the other ranks that this rank has failed before it connected, so that the other
/// ranks do not wait for it. The call may take some seconds.
void reportToPeers(const LaunchPlace &place, const Error &error);

/// Reports to the host that this rank ends with an error. Returns the host's answer, which is the
/// first error of all ranks. If the host does not answer, returns the error of this rank.
Error askHost(const LaunchOptions &options, int channel, fsdprt_status status, const char *message);

/// Calls askHost() and prints the returned error to stderr. Returns the exit code that belongs to
/// the status of this error.
int reportToHost(const LaunchOptions &options, int channel, fsdprt_status status,
                 const char *message);

/// Reports to the host that this rank ends without an error. Rank 0 then waits at most 1 second for
/// the host to end.
void leaveRendezvous(const LaunchOptions &options, int channel);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_LAUNCHERRENDEZVOUS_H
