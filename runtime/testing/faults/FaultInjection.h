//===- FaultInjection.h - Faults of a session, for tests --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For tests and for hidden options of tools: no part of the C interface.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_FAULTS_FAULTINJECTION_H
#define FSDPRT_TESTING_FAULTS_FAULTINJECTION_H

#include "execute/RankFault.h"
#include "execute/SessionHooks.h"

namespace fsdprt {

/// Gives these to the next session that this thread creates.
inline void injectFaults(const SessionHooks &hooks) { nextSessionHooks() = hooks; }

} // namespace fsdprt

#endif // FSDPRT_TESTING_FAULTS_FAULTINJECTION_H
