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

/// Runs this program once for every rank, with the same arguments. Returns the exit code. If not
/// all ranks end in an orderly way, throws Error with the first reason. No rank is left running.
/// findSave() returns the folder of saves to resume from after a restart, or an empty text.
int launch(const LaunchOptions &options, char **argv, const std::function<std::string()> &findSave);

/// Returns the message in which a rank reports its failure.
Message failureOf(fsdprt_status status, const char *message);

/// Reports why a process that launch() started ends.
void reportToLauncher(const LaunchOptions &options, int channel, fsdprt_status status,
                      const char *message);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_PROCESSLAUNCHER_H
