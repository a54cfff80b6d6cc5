//===- Interrupts.h - Ending a run early ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// After the process has received the first SIGINT, SIGTERM or SIGHUP, interruptSignal() returns the
// number of this signal. The run calls interruptSignal() between steps, and ends if the result is
// not 0. A second signal ends the process by the default action of that signal. Signals that the
// process already ignores, for example under nohup(1), stay ignored.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_INTERRUPTS_H
#define FSDPRT_LAUNCH_INTERRUPTS_H

namespace fsdprt {

/// Selects what the first signal does:
/// - early: prints a line and ends the process, because no step has begun.
/// - said: prints a line and asks the run to end.
/// - quiet: asks the run to end and prints nothing, because another process prints the line.
/// - launched: every SIGTERM asks the run to end, and other signals are not caught. A process that
///   fsdp-run has started for one rank uses this value.
enum class Interrupts { early, said, quiet, launched };
void catchInterrupts(Interrupts how);
/// Returns the number of the signal that asked the run to end, or 0.
int interruptSignal();

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_INTERRUPTS_H
