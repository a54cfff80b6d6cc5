//===- CollectiveWorker.h - Completes collectives on a thread ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions. See LICENSE for licence
// information. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_COLLECTIVEWORKER_H
#define FSDPRT_EXECUTE_COLLECTIVEWORKER_H

#include "collectives/Communicator.h"
#include "device/cpu/AsyncTransferWorker.h"

namespace fsdprt {

/// Waits for a collective to complete. If `bytesPerSecond` is not 0, the wait lasts at least as
/// long as the transfer would take over a link with this bandwidth.
void finishPaced(Communicator &communicator, uint32_t collective, uint32_t rank, WorkerPool &pool,
                 double bytesPerSecond);

/// Creates the worker that calls finishPaced() for the collectives of `rank`.
std::unique_ptr<AsyncTransferWorker> makeCollectiveWorker(Communicator &communicator, uint32_t rank,
                                                          double bytesPerSecond);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_COLLECTIVEWORKER_H
