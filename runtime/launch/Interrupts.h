//===- Interrupts.h - Ending a run early ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The first SIGINT, SIGTERM or SIGHUP asks for the end of the run and is checked between steps. The
// second one ends the process by its default action. Ignored signals stay ignored (nohup,
// background jobs of a shell).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_INTERRUPTS_H
#define FSDPRT_LAUNCH_INTERRUPTS_H

namespace fsdprt {

/// How signals are handled. early: before there are steps; prints a line and ends the process.
/// said: prints a line, and the run ends after the step. quiet: the same without a line, because
/// another process prints it. launched: in a process that fsdp-run started for a rank; only SIGTERM
/// is caught, each time.
enum class Interrupts { early, said, quiet, launched };
void catchInterrupts(Interrupts how);
/// Returns the signal that asked for the end, or 0.
int interruptSignal();

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_INTERRUPTS_H
