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

/// Runs this program once for every rank, with the same arguments. Returns the exit code; throws
/// Error with the first reason when the ranks do not all end as planned. None of them is left then.
/// findSave() returns where to go on after a restart: a folder of saves, or an empty text.
int launch(const LaunchOptions &options, char **argv, const std::function<std::string()> &findSave);

/// What a rank says of its end.
Message failureOf(fsdprt_status status, const char *message);

/// In a process that was started so: tells the one that did why it ends.
void reportToLauncher(const LaunchOptions &options, int channel, fsdprt_status status,
                      const char *message);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_PROCESSLAUNCHER_H
