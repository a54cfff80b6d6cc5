//===- LaunchPlan.h - Ranks of this process ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Follows the rules of docs/how-to/launch.md for options and launchers' environments.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_LAUNCHPLAN_H
#define FSDPRT_LAUNCH_LAUNCHPLAN_H

#include "launch/LaunchOptions.h"

namespace fsdprt {

/// Sets backend, rank and place. Throws Error if options and environment contradict each other.
void placeProcess(LaunchOptions &options);

/// Throws Error if a launcher started more or fewer processes than the artifact has ranks.
void checkPlaceOf(const LaunchOptions &options, uint64_t ranksOfArtifact);

/// Returns the path of the flight record, which is written if a rank is lost or hangs. Without the
/// option, each call returns a path in a new folder, which only this user can read.
std::string flightRecordPath(const LaunchOptions &options);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_LAUNCHPLAN_H
