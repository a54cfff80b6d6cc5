//===- Interrupts.h - Ending a run early ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// After the first SIGINT, SIGTERM or SIGHUP, interruptSignal() returns the signal's number. The run
// calls this function between steps, and ends if the result is not 0. The second signal ends the
// process by the default action. Signals that the process already ignores, for example under
// nohup(1), stay ignored.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_INTERRUPTS_H
#define FSDPRT_LAUNCH_INTERRUPTS_H

namespace fsdprt {

/// Effect of the first signal:
/// - early: prints a line and ends the process, because no step has begun.
/// - said: prints a line and asks the run to end.
/// - quiet: asks the run to end. Another process prints the line.
/// - launched: every SIGTERM asks the run to end. Other signals are not caught. Processes that
///   fsdp-run has started for ranks use this value.
enum class Interrupts { early, said, quiet, launched };
void catchInterrupts(Interrupts how);
/// Returns the number of the signal that asked the run to end, or 0.
int interruptSignal();

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_INTERRUPTS_H
