//===- LaunchPlan.h - Ranks of this process ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decides which ranks this process has, from its options and the environment variables of
// launchers. docs/how-to/launch.md has the rules.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_LAUNCHPLAN_H
#define FSDPRT_LAUNCH_LAUNCHPLAN_H

#include "launch/LaunchOptions.h"

namespace fsdprt {

/// Sets the backends, the rank and the place in `options`. Throws Error if options and environment
/// contradict each other.
void placeProcess(LaunchOptions &options);

/// Throws Error if the number of processes of a launcher is not the number of ranks of the
/// artifact.
void checkPlaceOf(const LaunchOptions &options, uint64_t ranksOfArtifact);

/// Returns the path of the flight record, which is written if a rank is lost or hangs. Without
/// --flight-record, each call creates a folder that only this user can read.
std::string flightRecordPath(const LaunchOptions &options);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_LAUNCHPLAN_H
