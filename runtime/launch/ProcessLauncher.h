//===- ProcessLauncher.h - A process for each rank --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     fsdp-run --processes          starts and supervises the ranks; computes nothing
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

/// The artifact and the save with which the ranks start again after a rank is lost.
struct Restart {
  std::string artifact; ///< path
  uint64_t ranks = 0;   ///< number of ranks of the artifact
  /// Folder of the saves from which the ranks resume. Empty if the ranks start at the first step.
  std::string resume;
};

/// Runs this program once for every rank, with the same arguments. Returns the exit code. Throws
/// the first error of a rank. All ranks have ended when launch() returns or throws. If ranks are
/// lost and options.restart is true, calls planRestart() with the number of ranks that were not
/// lost, and starts the ranks again as the result of planRestart() describes. If planRestart()
/// throws an error, the message of that error is appended to the message of the first error.
int launch(const LaunchOptions &options, char **argv,
           const std::function<Restart(uint64_t left)> &planRestart);

/// Returns the message that a rank sends to the supervising process to report a failure.
Message failureOf(fsdprt_status status, const char *message);

/// Reports the failure of a rank to the process that runs launch() and has started this rank. If
/// that process has ended, prints the failure instead.
void reportToLauncher(const LaunchOptions &options, int channel, fsdprt_status status,
                      const char *message);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_PROCESSLAUNCHER_H
