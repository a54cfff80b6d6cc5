//===- SessionHooks.h - Hooks of sessions for tests -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Requests outside of the C interface, for the next session that this thread creates. They are made
// by testing/faults/FaultInjection.h.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_SESSIONHOOKS_H
#define FSDPRT_EXECUTE_SESSIONHOOKS_H

#include "execute/RankGroup.h"
#include <functional>

namespace fsdprt {

struct SessionHooks {
  /// Called with the group of sharded ranks before anything runs, to attach observers or to plant
  /// faults in collectives.
  std::function<void(RankGroup &ranks)> prepare;
  /// Observers need to see each command, which a CUDA graph does not allow.
  bool seesCommands = false;
  /// Kinds of kernels, separated by commas. If not empty, all programs except 'init' only run
  /// launches of these kinds, and no collectives, copies or fills. Their results are meaningless.
  std::string onlyKinds;
};

/// Returns the hooks of the next session that this thread creates. The session resets them.
SessionHooks &nextSessionHooks();

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_SESSIONHOOKS_H
