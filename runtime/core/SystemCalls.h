//===- SystemCalls.h - Restriction of system calls --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Filters of seccomp(2) for the native code of an artifact. A forbidden call ends the process with
// exit code 1 and a message. A filter cannot be removed.
//
//   of the process   no new program or process, no new socket, no tracing, no executable memory
//   of a thread      only what a kernel, its collectives and the C library's allocator need
//
// The filter of a thread does not isolate it: its code can write the memory of other threads, which
// have the filter of the process only.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_SYSTEMCALLS_H
#define FSDPRT_CORE_SYSTEMCALLS_H

namespace fsdprt {

/// Installs the filter of the process for all its threads, once. Throws Error if the system
/// refuses.
void restrictProcess();

/// Installs the filter of the calling thread. `usesFile`: its rank keeps state in a file. Throws
/// Error if the system refuses.
void restrictThread(bool usesFile);

} // namespace fsdprt

#endif // FSDPRT_CORE_SYSTEMCALLS_H
