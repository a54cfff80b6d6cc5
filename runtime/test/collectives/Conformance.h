//===- Conformance.h - Conformance tests of backends ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A backend makes communicators for a mesh. ConformanceTest.cpp tests each registered backend:
//
//     static RegisterBackend mine(std::make_unique<MyBackend>());
//
// meet() calls `body` for each rank of this process, on one thread per rank. If the backend needs
// one process per rank, started by another program, meet() calls `body` once, and tests with other
// mesh sizes are skipped.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_COLLECTIVES_CONFORMANCE_H
#define FSDPRT_TEST_COLLECTIVES_CONFORMANCE_H

#include "collectives/Communicator.h"
#include "device/Arena.h"
#include <functional>
#include <memory>

namespace fsdprt::test {

/// Arguments of a meeting, which are equal on all ranks.
struct Meeting {
  Mesh mesh;
  std::vector<CollectiveKey> keys;
  uint64_t arenaBytes = 1 << 20;
  double timeoutSeconds = 60;
  uint32_t workers = 1;
  std::function<void(Communicator &)> prepare = {}; ///< called after add(), if not empty
};

/// A connected rank of a meeting.
struct Attendee {
  Communicator &communicator;
  uint32_t rank;
  const Arena &arena;
  WorkerPool &pool;
  bool sumsInOrder = true; ///< if false, (R5) holds up to rounding
};

class Backend {
public:
  virtual ~Backend() = default;
  virtual const char *name() const = 0;
  /// Returns false if tests with meshes of this size are skipped.
  virtual bool canMeet(uint32_t) const { return true; }
  /// Returns true if this process has all ranks, so that counters in `body` cover all ranks.
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
