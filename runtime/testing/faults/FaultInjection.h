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

#include "testing/faults/RankFault.h"

namespace fsdprt {

struct InjectedFaults {
  /// 1 + the rank whose contribution to the first reduce-scatter of the program 'step', else to its
  /// largest all-reduce, is left out; 0: none.
  uint32_t dropGradientOfRank = 0;
  /// What a rank does when it reaches a place, as RankFault::parse takes it; empty: nothing.
  std::string rankFault;
  /// Kinds of kernels that alone are run (execute/SessionHooks.h); empty: all.
  std::string onlyKinds;
};

/// Gives these to the next session that this thread creates. Throws Error.
void injectFaults(const InjectedFaults &faults);

} // namespace fsdprt

#endif // FSDPRT_TESTING_FAULTS_FAULTINJECTION_H
