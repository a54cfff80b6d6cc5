//===- NcclStub.h - A stub of NCCL ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// libfsdprt_nccl_stub.so implements the functions of NCCL and of CUDA's driver that the runtime
// calls. Ranks are threads or processes of one machine, devices are the host, and streams advance
// during calls of their process. It moves data and adds in rank order, unlike NCCL. It rejects what
// NCCL leaves undefined:
//
//   - a call on a communicator that has a call under way, was destroyed, or is in use by another
//     thread;
//   - n-th collectives of the members of a communicator that differ in kind, type, count, operation
//     or root;
//   - a blocking communicator, a stream of another device, memory that the device cannot reach.
//
// Such a call fails, ncclGetLastError returns the reason, and the process counts it: see
// fsdprt_nccl_stub_violations. Tests load the library like the runtime, and find the functions
// below by dlsym. FSDPRT_NCCL_STUB sets switches, too: "version=20700,devices=1".
//
//   version         result of ncclGetVersion
//   devices         number of devices
//   pin             0: registration of host memory with the device fails
//   pageable        1: the device reaches all host memory
//   init_error      result of an initialisation ...
//   init_error_rank ... on this rank
//   init_hang       1: the first communicator is never ready
//   error           asynchronous error ...
//   error_rank      ... of this rank ...
//   error_at        ... in its n-th collective, from 1
//   hang_at         the n-th collective that all its ranks have begun, from 1, never ends
//   late_rank       collectives of this rank ...
//   late_ms         ... reach their stream this many milliseconds late
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_NCCL_NCCLSTUB_H
#define FSDPRT_TESTING_NCCL_NCCLSTUB_H

#include <cstdint>

extern "C" {
/// set() sets a switch; reset() clears switches, counts and violations.
void fsdprt_nccl_stub_set(const char *name, int64_t value);
void fsdprt_nccl_stub_reset(void);
/// Calls of a function, such as "ncclCommAbort"; communicators created so far; communicators alive.
uint64_t fsdprt_nccl_stub_calls(const char *function);
uint64_t fsdprt_nccl_stub_made(void);
uint64_t fsdprt_nccl_stub_living(void);
/// Current registrations, and current pinned ranges.
uint64_t fsdprt_nccl_stub_registered(void);
uint64_t fsdprt_nccl_stub_pinned(void);
/// Returns the number of wrong calls; sets `first` to the message of the first one.
uint64_t fsdprt_nccl_stub_violations(const char **first);
}

#endif // FSDPRT_TESTING_NCCL_NCCLSTUB_H
