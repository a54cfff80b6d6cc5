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
  /// Called before the first run with the group of sharded ranks. May attach observers or plant
  /// faults in collectives.
  std::function<void(RankGroup &ranks)> prepare;
  /// True if observers must be called for each command, which excludes a CUDA graph.
  bool seesCommands = false;
  /// Kinds of kernels, separated by commas, or empty for all. If not empty, all programs except
  /// 'init' run only launches of these kinds, and no collectives, copies or fills. The results are
  /// then meaningless.
  std::string onlyKinds;
};

/// Returns the hooks of the next session that this thread creates. The session resets them.
SessionHooks &nextSessionHooks();

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_SESSIONHOOKS_H
