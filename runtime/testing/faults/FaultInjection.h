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
  /// One plus the rank that has the fault, or 0 for no fault. The collective omits this rank's
  /// contribution. The collective is the first reduce-scatter of the program 'step' or, if there is
  /// none, its largest all-reduce.
  uint32_t dropGradientOfRank = 0;
  /// Fault of a rank, as text for RankFault::parse(), or empty.
  std::string rankFault;
  /// Only kernels of these kinds run (execute/SessionHooks.h). If empty, all kernels run.
  std::string onlyKinds;
};

/// Applies the faults to the next session of this thread. Throws an Error if they are invalid.
void injectFaults(const InjectedFaults &faults);

} // namespace fsdprt

#endif // FSDPRT_TESTING_FAULTS_FAULTINJECTION_H
