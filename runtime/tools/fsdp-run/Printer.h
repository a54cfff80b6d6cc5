//===- Printer.h - What the user sees ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// write(2) from buffers on the stack: printing allocates nothing. On a terminal the
// step line is one line that is drawn again; elsewhere about twenty plain lines, and
// one every ten seconds. When the reader of a pipe has gone nothing is printed any more.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PRINTER_H
#define FSDP_RUN_PRINTER_H

#include "train/RunReporter.h"

namespace fsdprt {

class Printer final : public RunReporter {
public:
  /// `silent`: of a process that has nothing to say. `plain`: never draws; launchers make terminals
  /// for what they start, and write what comes there to files.
  explicit Printer(bool silent = false, bool plain = false);

  /// Writes text to stdout as it is. Throws Error when it cannot be written.
  void raw(const char *text, size_t size);
  /// Draws or prints what a step has to say, not more often than is of use.
  void step(const StepReport &report) override;
  /// Ends the bar.
  void endSteps() override;
  /// Nobody reads stdout: a pipe whose other end was closed.
  bool isUnread() const override { return unread; }

private:
  /// Clears a bar that is being drawn.
  void write(const char *text, size_t size) override;
  void writeWarning(const char *text) override;
  void bar(const StepReport &report);
  bool terminal, silent, drawn = false, unread = false;
  double lastDrawn = 0, lastLine = 0;
};

} // namespace fsdprt

#endif // FSDP_RUN_PRINTER_H
