//===- Peers.h - Work of an emulated GPU that waits for others --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What libfsdp-emulated-cuda.so has beside CUDA's driver, for libraries whose operations on a
// stream end when other processes have come: they are tried, again and again, by whoever waits for
// the stream, and replayed with a graph that they were captured into.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_CUDA_PEERS_H
#define FSDPRT_TESTING_CUDA_PEERS_H

#include <cstdint>

extern "C" {
/// On a stream of the current context: reads `sourceBytes` at `source`, writes `targetBytes` at
/// `target`. Its functions are called with the driver's lock held, and call nothing of the
/// driver's.
struct fsdp_emulated_cuda_work {
  const char *name;
  uint64_t source, sourceBytes, target, targetBytes;
  void *user;
  /// Each time that it comes to be done: what `attempt` gets then.
  void *(*begin)(void *user);
  /// With the bytes in the host's memory. 1: it has ended, 0: not yet.
  int (*attempt)(void *begun, const void *source, void *target);
};
int fsdp_emulated_cuda_enqueue(void *stream, const fsdp_emulated_cuda_work *work);
/// Forgets what went wrong, and what is to be done.
void fsdp_emulated_cuda_reset(void);
}

#endif // FSDPRT_TESTING_CUDA_PEERS_H
