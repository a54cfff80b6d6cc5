//===- Conformance.h - Conformance tests of backends ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A backend makes communicators for a mesh. ConformanceTest.cpp tests each backend that is
// registered as follows:
//
//     static RegisterBackend mine(std::make_unique<MyBackend>());
//
// Backend::meet() calls `body` on one thread for each rank of this process. If another program,
// such as mpirun, starts one process for each rank, meet() calls `body` once in each process. Tests
// in which the number of ranks differs from the number of processes are then skipped.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_COLLECTIVES_CONFORMANCE_H
#define FSDPRT_TEST_COLLECTIVES_CONFORMANCE_H

#include "collectives/Communicator.h"
#include "device/Arena.h"
#include <functional>
#include <memory>

namespace fsdprt::test {

/// The arguments of Backend::meet(), which are equal on all ranks.
struct Meeting {
  Mesh mesh;
  std::vector<CollectiveKey> keys;
  uint64_t arenaBytes = 1 << 20;
  double timeoutSeconds = 60;
  uint32_t workers = 1;
  std::function<void(Communicator &)> prepare = {}; ///< is called after add(), unless empty
};

struct Attendee {
  Communicator &communicator;
  uint32_t rank;
  const Arena &arena;
  WorkerPool &pool;
  bool sumsInOrder = true; ///< if false, sums may differ by rounding from the sums of rule (R5)
};

class Backend {
public:
  virtual ~Backend() = default;
  virtual const char *name() const = 0;
  /// Returns false if tests with this number of ranks are to be skipped.
  virtual bool canMeet(uint32_t) const { return true; }
  /// Returns true if all ranks are in this process, so that they can share counters.
  virtual bool isOneProcess() const { return true; }
  virtual void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) = 0;
};

std::vector<std::unique_ptr<Backend>> &backends();

struct RegisterBackend {
  explicit RegisterBackend(std::unique_ptr<Backend> backend) {
    backends().push_back(std::move(backend));
  }
};

} // namespace fsdprt::test

#endif // FSDPRT_TEST_COLLECTIVES_CONFORMANCE_H
