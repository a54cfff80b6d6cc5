//===- LaunchPlan.h - Which ranks this process has --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From options and the environment of launchers: docs/Launch.md has the rules.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_LAUNCHPLAN_H
#define FSDP_RUN_LAUNCHPLAN_H

#include "Options.h"
#include "fsdprt/fsdprt.h"

namespace fsdprt {

/// Fills in backend, rank and place. Throws Error when options and environment contradict each
/// other.
void placeProcess(Options &options);

/// Throws Error unless there are as many processes as the artifact has ranks, where a launcher
/// started them.
void checkPlaceOf(const Options &options, uint64_t ranksOfArtifact);

/// A file whose content has to be the same on all ranks.
struct Content {
  std::string name;       ///< "--text"
  std::string comparison; ///< of the content: size and hash
  std::string path;       ///< for messages: it may differ between ranks
};

/// Returns what all ranks have to have been asked alike, as text: see collectives/Agreement.h.
std::string agreementOf(const Options &options, double lr, uint64_t tokens, uint64_t stepsBefore,
                        const std::vector<Content> &contents);

} // namespace fsdprt

#endif // FSDP_RUN_LAUNCHPLAN_H
