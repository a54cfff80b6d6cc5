//===- TraceFile.h - A run on a timeline ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For ui.perfetto.dev and chrome://tracing.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_TRACEFILE_H
#define FSDP_RUN_TRACEFILE_H

#include "Printer.h"
#include "fsdprt/fsdprt.h"
#include <string>
#include <vector>

namespace fsdprt {

/// Writes the trace of a session to `path`, and says how much of the collectives was overlapped.
/// The first run of the session was step `stepsBefore` + 1. All processes call it; that of rank 0
/// writes.
void writeTrace(const std::string &path, const fsdprt_session *session, uint64_t stepsBefore,
                bool isRoot, Printer &printer);

/// The same for one step of rank 0 that was simulated, from time 0 on.
void writeTrace(const std::string &path, std::vector<fsdprt_trace_event> events, Printer &printer);

} // namespace fsdprt

#endif // FSDP_RUN_TRACEFILE_H
