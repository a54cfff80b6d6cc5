//===- SessionHooks.h - Hooks of sessions for tests -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Hooks of the next session that this thread creates. They are not part of the C interface;
// testing/faults/FaultInjection.h sets them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_SESSIONHOOKS_H
#define FSDPRT_EXECUTE_SESSIONHOOKS_H

#include "execute/RankGroup.h"
#include <functional>

namespace fsdprt {

struct SessionHooks {
  /// Called once with the group of sharded ranks, before the first run. May attach observers or
  /// plant faults in collectives.
  std::function<void(RankGroup &ranks)> prepare;
  /// True if observers must be called for each command. In this case, no CUDA graph can be used.
  bool seesCommands = false;
  /// Kinds of kernels, separated by commas, or empty. If this text is not empty, programs other
  /// than 'init' and 'snapshot' run only launches of kernels of these kinds, and no collectives,
  /// copies or fills. The results are then meaningless.
  std::string onlyKinds;
};

/// Returns the hooks of the next session that this thread creates. The session resets the hooks.
SessionHooks &nextSessionHooks();

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_SESSIONHOOKS_H
