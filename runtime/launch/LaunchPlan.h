//===- LaunchPlan.h - Ranks of this process ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Determines the ranks of this process from its options and from the environment variables of
// launchers. docs/how-to/launch.md describes the rules.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_LAUNCHPLAN_H
#define FSDPRT_LAUNCH_LAUNCHPLAN_H

#include "launch/LaunchOptions.h"

namespace fsdprt {

/// Sets the members `backend`, `control`, `launchedRank` and `place` of `options`. Throws Error if
/// an option contradicts the environment.
void placeProcess(LaunchOptions &options);

/// Throws Error if a launcher has started more or fewer processes than the artifact has ranks.
void checkPlaceOf(const LaunchOptions &options, uint64_t ranksOfArtifact);

/// Returns the path of the flight record, a file that is written if a rank is lost or hangs. If
/// --flight-record is not given, creates a folder for this file that only this user can read.
std::string flightRecordPath(const LaunchOptions &options);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_LAUNCHPLAN_H
