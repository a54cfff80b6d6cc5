//===- FaultInjection.h - Faults of a session, for tests --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Injects faults for tests and hidden options of tools. The functions are not part of the C
// interface.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_FAULTS_FAULTINJECTION_H
#define FSDPRT_TESTING_FAULTS_FAULTINJECTION_H

#include "testing/faults/RankFault.h"

namespace fsdprt {

struct InjectedFaults {
  /// One plus a rank, or 0 for none. The rank's contribution to the first reduce-scatter of the
  /// program 'step' is left out, or to the largest all-reduce if there is no reduce-scatter.
  uint32_t dropGradientOfRank = 0;
  /// Fault of a rank, in the form of RankFault::parse(); empty for none.
  std::string rankFault;
  /// The only kinds of kernels to run (execute/SessionHooks.h); empty for all.
  std::string onlyKinds;
};

/// Applies the faults to the next session that this thread creates. Throws an Error if they are
/// invalid.
void injectFaults(const InjectedFaults &faults);

} // namespace fsdprt

#endif // FSDPRT_TESTING_FAULTS_FAULTINJECTION_H
