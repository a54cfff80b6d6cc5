//===- FaultInjection.h - Faults of a session, for tests --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Injects faults for tests and hidden options of tools. This file is not part of the C interface.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_FAULTS_FAULTINJECTION_H
#define FSDPRT_TESTING_FAULTS_FAULTINJECTION_H

#include "testing/faults/RankFault.h"

namespace fsdprt {

struct InjectedFaults {
  /// One plus the rank that has the fault, or 0 for no fault. One collective omits the contribution
  /// of this rank: the first reduce-scatter of the program 'step' or, if 'step' has no
  /// reduce-scatter, its largest all-reduce.
  uint32_t dropGradientOfRank = 0;
  /// The fault of a rank, as a text for RankFault::parse(). Empty for no fault.
  std::string rankFault;
  /// The kinds of the kernels that run (execute/SessionHooks.h). If empty, all kernels run.
  std::string onlyKinds;
};

/// Applies the faults to the next session of this thread. Throws an Error if a fault is invalid.
void injectFaults(const InjectedFaults &faults);

} // namespace fsdprt

#endif // FSDPRT_TESTING_FAULTS_FAULTINJECTION_H
