//===- CollectiveWorker.cpp - Completes collectives on a thread -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions. See LICENSE for licence
// information. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "execute/CollectiveWorker.h"

using namespace fsdprt;

void fsdprt::finishPaced(Communicator &communicator, uint32_t collective, uint32_t rank,
                         WorkerPool &pool, double bytesPerSecond) {
  double begin = bytesPerSecond > 0 ? monotonicSeconds() : 0;
  communicator.wait(collective, rank, pool);
  if (bytesPerSecond <= 0)
    return;
  double end = begin + static_cast<double>(communicator.wireBytes(collective)) / bytesPerSecond;
  for (double now = monotonicSeconds(); now < end && !communicator.getWatchdog().hasFailed();
       now = monotonicSeconds()) {
    double nap = std::min(end - now, 0.01);
    timespec time = {0, static_cast<long>(nap * 1e9)};
    nanosleep(&time, nullptr);
  }
}

std::unique_ptr<AsyncTransferWorker>
fsdprt::makeCollectiveWorker(Communicator &communicator, uint32_t rank, double bytesPerSecond) {
  return std::make_unique<AsyncTransferWorker>(
      communicator.numCollectives(),
      [&communicator, rank, bytesPerSecond, pool = std::make_shared<WorkerPool>(1, 0)](
          uint32_t number) { finishPaced(communicator, number, rank, *pool, bytesPerSecond); });
}
