//===- CollectiveWorker.h - Completes collectives on a thread ---*- C++ -*-===//

#ifndef FSDPRT_EXECUTE_COLLECTIVEWORKER_H
#define FSDPRT_EXECUTE_COLLECTIVEWORKER_H

#include "collectives/Communicator.h"
#include "device/cpu/AsyncTransferWorker.h"

namespace fsdprt {

/// Completes a collective. If `bytesPerSecond` is not 0, takes at least as long as links of that
/// bandwidth would.
void finishPaced(Communicator &communicator, uint32_t collective, uint32_t rank, WorkerPool &pool,
                 double bytesPerSecond);

/// Creates the transfer worker of `rank` for all collectives of the communicator.
std::unique_ptr<AsyncTransferWorker> makeCollectiveWorker(Communicator &communicator, uint32_t rank,
                                                          double bytesPerSecond);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_COLLECTIVEWORKER_H
