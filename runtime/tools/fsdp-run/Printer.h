//===- Printer.h - Output of fsdp-run ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes with write(2) from buffers on the stack, without allocating memory. On a terminal, a bar
// on one line is redrawn. Elsewhere about twenty plain lines are printed, and one every ten
// seconds. After the reader of a pipe has closed it, nothing more is printed.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PRINTER_H
#define FSDP_RUN_PRINTER_H

#include "train/RunReporter.h"

namespace fsdprt {

class Printer final : public RunReporter {
public:
  /// `silent`: prints nothing but warnings. `plain`: never draws the bar; launchers give processes
  /// a terminal and write its output to files.
  explicit Printer(bool silent = false, bool plain = false);

  /// Writes text to stdout unchanged. Throws Error if this fails.
  void raw(const char *text, size_t size);
  /// Draws the bar, at most every 0.1 s, or prints a line, if one is due.
  void step(const StepReport &report) override;
  /// Ends the line of the bar.
  void endSteps() override;
  /// Returns whether stdout is a pipe that its reader closed.
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
