//===- SessionHooks.h - What tests ask of a session -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Requests that are no part of the C interface: testing/faults/FaultInjection.h makes them, for the
// next session that this thread creates.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_SESSIONHOOKS_H
#define FSDPRT_EXECUTE_SESSIONHOOKS_H

#include "execute/RankGroup.h"
#include <functional>

namespace fsdprt {

struct SessionHooks {
  /// Called with the group of sharded ranks, before anything runs: attaches observers, or plants
  /// faults in collectives.
  std::function<void(RankGroup &ranks)> prepare;
  /// Whether observers have to see each command, which a CUDA graph does not show.
  bool seesCommands = false;
  /// Kinds of kernels, with commas between. Of the programs beside 'init' only the launches of
  /// these kinds are run, and no collective, copy or fill: what is computed then means nothing.
  /// Empty: all.
  std::string onlyKinds;
};

/// Returns the hooks of the next session that this thread creates, which takes them.
SessionHooks &nextSessionHooks();

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_SESSIONHOOKS_H
