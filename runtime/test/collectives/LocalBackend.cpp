//===- LocalBackend.cpp - Threads, for the conformance tests ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Registers a backend whose ranks are threads that share one communicator.
//
//===----------------------------------------------------------------------===//

#include "collectives/local/Local.h"
#include "test/collectives/RankThreads.h"

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
class LocalBackend : public Backend {
public:
  const char *name() const override { return "local"; }
  void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) override {
    LocalCommunicator communicator(meeting.mesh, meeting.timeoutSeconds, /*spins=*/100);
    attendTogether(communicator, meeting, /*sumsInOrder=*/true, body);
  }
};
} // namespace

static RegisterBackend registered(std::make_unique<LocalBackend>());
