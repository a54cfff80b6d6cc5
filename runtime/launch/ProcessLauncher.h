//===- ProcessLauncher.h - A process for each rank --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     fsdp-run --processes          starts, watches, reports; computes nothing
//       fsdp-run --launched-rank=0  prints, writes metrics, exports
//       fsdp-run --launched-rank=1
//       ...
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_PROCESSLAUNCHER_H
#define FSDPRT_LAUNCH_PROCESSLAUNCHER_H

#include "collectives/Channel.h"
#include "fsdprt/fsdprt.h"
#include "launch/LaunchOptions.h"

namespace fsdprt {

/// How ranks start again.
struct Restart {
  std::string artifact; ///< path
  uint64_t ranks = 0;   ///< of the artifact
  std::string resume;   ///< folder of saves to resume from; empty: start from the beginning
};

/// Runs this program once for every rank, with the same arguments. Returns the exit code. Throws
/// Error with the first reason if the ranks do not all end in order. No rank is left running.
/// planRestart(left) says how to go on if `left` of the ranks were not lost. If it throws, its
/// message is appended to the reason.
int launch(const LaunchOptions &options, char **argv,
           const std::function<Restart(uint64_t left)> &planRestart);

/// Returns the message in which a rank reports its failure.
Message failureOf(fsdprt_status status, const char *message);

/// Reports why a process that launch() started ends.
void reportToLauncher(const LaunchOptions &options, int channel, fsdprt_status status,
                      const char *message);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_PROCESSLAUNCHER_H
