//===- Interrupts.h - Ending a run early ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The first SIGINT, SIGTERM or SIGHUP is a wish, looked at between steps; the second ends
// the process as it always did. Signals that were ignored stay so (nohup, a shell's
// background jobs).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_INTERRUPTS_H
#define FSDPRT_LAUNCH_INTERRUPTS_H

namespace fsdprt {

/// Early: before there are steps; it is said, and the process ends. Quiet: another process says it.
/// One that fsdp-run started for a rank (launched) hears SIGTERM from that alone, and is told once
/// more by a SIGKILL.
enum class Interrupts { early, said, quiet, launched };
void catchInterrupts(Interrupts how);
/// The signal that asked for the end, or 0.
int interruptSignal();

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_INTERRUPTS_H
