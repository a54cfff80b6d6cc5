//===- SystemCalls.h - Restriction of system calls --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Installs filters of seccomp(2) that restrict the native code of an artifact. A forbidden call
// ends the process with exit code 1 and a message. A filter cannot be removed.
//
//     filter of the process   forbids new programs, processes, sockets, tracing, executable memory
//     filter of a thread      permits only calls that kernels, collectives and malloc() need
//
// The filter of a thread does not isolate the thread: its code can write to the memory of other
// threads, and other threads are restricted only by the filter of the process.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_SYSTEMCALLS_H
#define FSDPRT_CORE_SYSTEMCALLS_H

namespace fsdprt {

/// Installs the filter of the process for all its threads. Later calls do nothing. Throws Error if
/// the system refuses.
void restrictProcess();

/// Installs the filter of the calling thread. `usesFile` permits calls for a file of offloaded
/// states. Throws Error if the system refuses.
void restrictThread(bool usesFile);

} // namespace fsdprt

#endif // FSDPRT_CORE_SYSTEMCALLS_H
