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

#include <cstddef>
#include <cstdint>

namespace fsdprt {

struct StepReport {
  uint64_t step = 0, steps = 0;
  double loss = 0, gradNorm = 0, lr = 0, tokensPerSecond = 0, secondsLeft = 0;
  bool onlyTimes = false; // the other numbers mean nothing
};

class Printer {
public:
  /// `silent`: of a process that has nothing to say. `plain`: never draws; launchers make terminals
  /// for what they start, and write what comes there to files.
  explicit Printer(bool silent = false, bool plain = false);

  /// A line on stdout, in full; clears a bar that is being drawn. Throws Error when stdout cannot
  /// be written.
  void line(const char *text, ...) __attribute__((format(printf, 2, 3)));
  /// The same without the newline, and without limit of length.
  void raw(const char *text, size_t size);
  /// Draws or prints what a step has to say, not more often than is of use.
  void step(const StepReport &report);
  /// Ends the bar.
  void endSteps();
  /// Nobody reads stdout: a pipe whose other end was closed.
  bool isUnread() const { return unread; }

private:
  void bar(const StepReport &report);
  bool terminal, silent, drawn = false, unread = false;
  double lastDrawn = 0, lastLine = 0;
};

/// "12.3 MiB" into `text`.
const char *shortBytes(uint64_t bytes, char (&text)[32]);
/// "1,234,567" into `text`.
const char *grouped(uint64_t number, char (&text)[32]);

} // namespace fsdprt

#endif // FSDP_RUN_PRINTER_H
