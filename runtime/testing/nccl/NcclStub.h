//===- NcclStub.h - A library that stands in for NCCL -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// libfsdprt_nccl_stub.so has the functions of NCCL and of CUDA's driver that the runtime uses, for
// ranks that are threads of a process or processes of a machine: its devices are the host, its
// streams move on when somebody of their process looks. It does move data, with sums in the order
// of ranks (NCCL's own order is another), and it is strict where NCCL is undefined:
//
//   - a call on a communicator that has one under way, that is gone, or that another thread is
//     inside of;
//   - members of a communicator whose n-th collectives are not the same in kind, type, count,
//     operation or root;
//   - a communicator that blocks, a stream of another device, memory that the device cannot reach.
//
// Such a call fails, ncclGetLastError says why, and it is counted, per process: see violations().
// Tests load the library as the runtime does, and use what follows by dlsym. A switch may also
// stand in FSDPRT_NCCL_STUB: "version=20700,devices=1".
//
//   version         what ncclGetVersion gives
//   devices         how many there are
//   pin             0: host memory cannot be made known to the device; pageable 1: it need not be
//   init_error      this result for ...
//   init_error_rank ... the rank of the first communicator that has this number, as it begins
//   init_hang       1: the first communicator never comes up
//   error           this result is reported later, and not by the call, by ...
//   error_rank      ... this rank ...
//   error_at        ... in its n-th collective, from 1
//   hang_at         the n-th collective that all its ranks have begun, from 1, never ends
//   late_rank       what this rank begins ...
//   late_ms         ... reaches its stream this much later
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_NCCL_NCCLSTUB_H
#define FSDPRT_TESTING_NCCL_NCCLSTUB_H

#include <cstdint>

extern "C" {
/// Turns a switch; forgets switches, counts and violations.
void fsdprt_nccl_stub_set(const char *name, int64_t value);
void fsdprt_nccl_stub_reset(void);
/// How often a function was called, such as "ncclCommAbort"; how many communicators were made in
/// all, and how many live.
uint64_t fsdprt_nccl_stub_calls(const char *function);
uint64_t fsdprt_nccl_stub_made(void);
uint64_t fsdprt_nccl_stub_living(void);
/// Registrations and pinned ranges that there are now.
uint64_t fsdprt_nccl_stub_registered(void);
uint64_t fsdprt_nccl_stub_pinned(void);
/// How many calls were wrong, and the first of them.
uint64_t fsdprt_nccl_stub_violations(const char **first);
}

#endif // FSDPRT_TESTING_NCCL_NCCLSTUB_H
