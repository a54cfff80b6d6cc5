//===- Interrupts.h - Ending a run early ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The first SIGINT, SIGTERM or SIGHUP asks for the end of the run; the run checks it between steps.
// The second signal ends the process by the default action. Signals that the process ignores
// (nohup, background jobs of a shell) stay ignored.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_INTERRUPTS_H
#define FSDPRT_LAUNCH_INTERRUPTS_H

namespace fsdprt {

/// How signals are handled. With `early`, when there are no steps yet, prints a line and ends the
/// process. With `said`, prints a line, and the run ends after the step. `quiet` is like `said`
/// without the line, because another process prints it. With `launched`, which is for a process
/// that fsdp-run started for a rank, only SIGTERM is caught, each time.
enum class Interrupts { early, said, quiet, launched };
void catchInterrupts(Interrupts how);
/// Returns the signal that asked for the end, or 0.
int interruptSignal();

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_INTERRUPTS_H
