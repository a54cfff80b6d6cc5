//===- Printer.h - Output of fsdp-run ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes with write(2) from buffers on the stack, without allocating memory. On a terminal, it
// redraws a progress bar on one line. Otherwise it prints about twenty lines in total, and a line
// after ten seconds without one. It prints nothing after the reader of a pipe has closed it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PRINTER_H
#define FSDP_RUN_PRINTER_H

#include "train/RunReporter.h"

namespace fsdprt {

class Printer final : public RunReporter {
public:
  /// With `silent`, prints only warnings. With `plain`, never draws the bar, because launchers may
  /// give processes a terminal whose output they write to files.
  explicit Printer(bool silent = false, bool plain = false);

  /// Writes text to stdout unchanged. Throws Error if this fails.
  void raw(const char *text, size_t size);
  /// Draws the bar, at most every 0.1 s, or prints a line if a line is due.
  void step(const StepReport &report) override;
  /// Ends the line of the bar.
  void endSteps() override;
  /// Returns true if stdout is a pipe that its reader has closed.
  bool isUnread() const override { return unread; }

private:
  /// Writes text to stdout, after clearing a drawn bar.
  void write(const char *text, size_t size) override;
  void writeWarning(const char *text) override;
  void bar(const StepReport &report);
  bool terminal, silent, drawn = false, unread = false;
  double lastDrawn = 0, lastLine = 0;
};

} // namespace fsdprt

#endif // FSDP_RUN_PRINTER_H
