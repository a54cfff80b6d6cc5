//===- NcclStub.h - A stub of NCCL ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// libfsdprt_nccl_stub.so implements the functions of NCCL and of CUDA's driver that the runtime
// calls. Ranks are threads or processes of one machine. The host executes the work of the devices.
// The streams of a process advance only during calls of this process. Unlike NCCL, the stub adds in
// the order of the ranks. The stub rejects calls whose behaviour NCCL leaves undefined:
//
//   - a call on a communicator that has a call in progress, was destroyed, or is in use by another
//     thread;
//   - n-th collectives of a communicator that differ between two members in kind, type, count,
//     operation or root;
//   - a call with a blocking communicator, a stream of another device, or inaccessible memory;
//   - a config that the version of the library does not have;
//   - a window of memory that ncclMemAlloc has not allocated, that is a window already, or whose
//     size differs between members; a collective outside of the windows of its communicator, or at
//     offsets that differ between members; the end of a communicator, or of memory, with windows.
//
// A rejected call fails, ncclGetLastError returns the reason, and fsdprt_nccl_stub_violations
// counts the call. Tests load the library as the runtime does, and find the functions of this file
// by dlsym. The environment variable FSDPRT_NCCL_STUB also sets switches:
// "version=20700,devices=1".
//
//   version         result of ncclGetVersion
//   devices         number of devices
//   pin             if 0, the registration of host memory with the device fails
//   pageable        if 1, the device can access all host memory
//   init_error      result of the initialisation on the rank init_error_rank
//   init_error_rank rank whose initialisation returns init_error
//   init_hang       if 1, the first communicator never becomes ready
//   error           asynchronous error of the rank error_rank
//   error_rank      rank that gets the asynchronous error
//   error_at        index, from 1, of the rank's collective with the asynchronous error
//   hang_at         index, from 1, of a collective that never ends after all ranks have begun it
//   alloc_error     result of ncclMemAlloc
//   windows         if 0, ncclCommWindowRegister succeeds without making a window, as NCCL does
//                   where it does not support windows
//   window_fails_on rank on which this happens
//   window_error    result of ncclCommWindowRegister
//   late_rank       rank whose collectives reach their stream late
//   late_ms         delay of these collectives in milliseconds
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_NCCL_NCCLSTUB_H
#define FSDPRT_TESTING_NCCL_NCCLSTUB_H

#include <cstdint>

extern "C" {
/// fsdprt_nccl_stub_set() sets a switch. fsdprt_nccl_stub_reset() clears switches, counts and
/// violations.
void fsdprt_nccl_stub_set(const char *name, int64_t value);
void fsdprt_nccl_stub_reset(void);
/// These functions return the number of calls of a function such as "ncclCommAbort", the number of
/// communicators that were created so far, and the number of communicators that exist.
uint64_t fsdprt_nccl_stub_calls(const char *function);
uint64_t fsdprt_nccl_stub_made(void);
uint64_t fsdprt_nccl_stub_living(void);
/// These functions return the number of registrations with communicators, and the number of ranges
/// of host memory that are pinned.
uint64_t fsdprt_nccl_stub_registered(void);
/// These functions return the number of windows of this process, and the number of its allocations
/// by ncclMemAlloc.
uint64_t fsdprt_nccl_stub_windows(void);
uint64_t fsdprt_nccl_stub_allocated(void);
/// Returns the member "maxCTAs" or "CTAPolicy" of the last config, or INT_MIN if it is not set.
int64_t fsdprt_nccl_stub_config(const char *member);
uint64_t fsdprt_nccl_stub_pinned(void);
/// Returns the number of rejected calls. Sets `first` to the message of the first rejected call.
uint64_t fsdprt_nccl_stub_violations(const char **first);
}

#endif // FSDPRT_TESTING_NCCL_NCCLSTUB_H
