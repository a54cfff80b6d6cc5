//===- LaunchPlan.h - Which ranks this process has --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From options and the environment of launchers: docs/how-to/launch.md has the rules.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_LAUNCHPLAN_H
#define FSDPRT_LAUNCH_LAUNCHPLAN_H

#include "launch/LaunchOptions.h"

namespace fsdprt {

/// Fills in backend, rank and place. Throws Error when options and environment contradict each
/// other.
void placeProcess(LaunchOptions &options);

/// Throws Error unless there are as many processes as the artifact has ranks, where a launcher
/// started them.
void checkPlaceOf(const LaunchOptions &options, uint64_t ranksOfArtifact);

/// Returns where the last collectives of all ranks are written when one is lost or hangs. A path
/// that the options do not give is another one at each call.
std::string flightRecordPath(const LaunchOptions &options);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_LAUNCHPLAN_H
