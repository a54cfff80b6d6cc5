//===- CollectiveWorker.h - Completes collectives on a thread ---*- C++ -*-===//

#ifndef FSDPRT_EXECUTE_COLLECTIVEWORKER_H
#define FSDPRT_EXECUTE_COLLECTIVEWORKER_H

#include "collectives/Communicator.h"
#include "device/cpu/AsyncTransferWorker.h"

namespace fsdprt {

/// Completes a collective, and takes at least as long as links of `bytesPerSecond` would (0: as
/// fast as it goes).
void finishPaced(Communicator &communicator, uint32_t collective, uint32_t rank, WorkerPool &pool,
                 double bytesPerSecond);

/// Makes the worker of `rank` for all collectives that the communicator has.
std::unique_ptr<AsyncTransferWorker> makeCollectiveWorker(Communicator &communicator, uint32_t rank,
                                                          double bytesPerSecond);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_COLLECTIVEWORKER_H
