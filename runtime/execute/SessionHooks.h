//===- SessionHooks.h - Hooks of sessions for tests -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Requests for the next session that this thread creates. They are not part of the C interface;
// testing/faults/FaultInjection.h makes them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_SESSIONHOOKS_H
#define FSDPRT_EXECUTE_SESSIONHOOKS_H

#include "execute/RankGroup.h"
#include <functional>

namespace fsdprt {

struct SessionHooks {
  /// Called with the group of sharded ranks before the first run, to attach observers or to plant
  /// faults in collectives.
  std::function<void(RankGroup &ranks)> prepare;
  /// True if observers need to see each command, which a CUDA graph does not allow.
  bool seesCommands = false;
  /// Kinds of kernels, separated by commas. If not empty, all programs except 'init' run only
  /// launches of these kinds, and no collectives, copies or fills. The results are then
  /// meaningless.
  std::string onlyKinds;
};

/// Returns the hooks of the next session that this thread creates. The session resets them.
SessionHooks &nextSessionHooks();

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_SESSIONHOOKS_H
