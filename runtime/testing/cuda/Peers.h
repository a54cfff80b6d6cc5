//===- Peers.h - Emulated work that waits for other processes ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares functions of libfsdp-emulated-cuda.so that are not in the driver API. A library uses
// them to enqueue work that waits for other processes. When the host waits for the stream, the
// emulated driver calls `attempt` until the work has ended. If a graph has captured work, each
// launch repeats it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_CUDA_PEERS_H
#define FSDPRT_TESTING_CUDA_PEERS_H

#include <cstdint>

extern "C" {
/// Work on a stream of the current context that reads `sourceBytes` at `source` and writes
/// `targetBytes` at `target`. The functions of the work run under the driver's lock and must not
/// call the driver.
struct fsdp_emulated_cuda_work {
  const char *name;
  uint64_t source, sourceBytes, target, targetBytes;
  void *user;
  /// The driver calls begin() at the start of each execution of the work. The result of begin() is
  /// the argument `begun` of attempt().
  void *(*begin)(void *user);
  /// `source` and `target` are host addresses. Returns 1 when the work has ended, and 0 before.
  int (*attempt)(void *begun, const void *source, void *target);
};
int fsdp_emulated_cuda_enqueue(void *stream, const fsdp_emulated_cuda_work *work);
/// Removes pending work and recorded failures.
void fsdp_emulated_cuda_reset(void);
}

#endif // FSDPRT_TESTING_CUDA_PEERS_H
