//===- Printer.h - Output of fsdp-run ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Prints the output of a run by write(2) from buffers on the stack, without allocating memory. On a
// terminal, redraws a progress bar in one line. Otherwise, prints about twenty lines, spread evenly
// over all steps, and an additional line whenever no line was printed for ten seconds. If stdout is
// a pipe whose reader has closed it, prints nothing more.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PRINTER_H
#define FSDP_RUN_PRINTER_H

#include "train/RunReporter.h"

namespace fsdprt {

class Printer final : public RunReporter {
public:
  /// If `silent` is true, prints only warnings. If `plain` is true, does not draw the bar even if
  /// stdout is a terminal. `plain` is true for ranks that a launcher has started, because a
  /// launcher may connect these ranks to a terminal and then write their output to a file.
  explicit Printer(bool silent = false, bool plain = false);

  /// Writes text to stdout without changing it. Throws Error if the text cannot be written.
  void raw(const char *text, size_t size);
  /// Draws the bar at most every 0.1 s. Without a bar, prints a line for some of the steps.
  void step(const StepReport &report) override;
  void endSteps() override;
  /// Returns true if stdout is a pipe and the reader of this pipe has closed it.
  bool isUnread() const override { return unread; }

private:
  /// If the bar is on the terminal, clears it. Then writes text to stdout.
  void write(const char *text, size_t size) override;
  void writeWarning(const char *text) override;
  void bar(const StepReport &report);
  bool terminal, silent, drawn = false, unread = false;
  double lastDrawn = 0, lastLine = 0;
};

} // namespace fsdprt

#endif // FSDP_RUN_PRINTER_H
