//===- SystemCalls.h - Restriction of system calls --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Installs filters of seccomp(2) that restrict the native code of an artifact. A forbidden system
// call ends the process with exit code 1 and a message. An installed filter cannot be removed.
//
//     filter of the process   forbids new programs, processes, sockets, tracing, executable memory
//     filter of a thread      permits only calls that kernels, collectives and malloc() need
//
// The filter of a thread does not isolate the thread. Code in this thread can overwrite memory of
// other threads, and the system calls of other threads are restricted only by the filter of the
// process.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_SYSTEMCALLS_H
#define FSDPRT_CORE_SYSTEMCALLS_H

namespace fsdprt {

/// Installs the filter of the process for all its threads. Later calls do nothing. Throws Error if
/// the kernel refuses the filter.
void restrictProcess();

/// Installs the filter of the calling thread. If `usesFile` is true, permits reads and writes of a
/// file of offloaded states. Throws Error if the kernel refuses the filter.
void restrictThread(bool usesFile);

} // namespace fsdprt

#endif // FSDPRT_CORE_SYSTEMCALLS_H
