//===- RunReporter.h - Output of a run for its user -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A run reports lines, steps and warnings to a RunReporter, and derived classes print them. The
// function line() allocates no memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_RUNREPORTER_H
#define FSDPRT_TRAIN_RUNREPORTER_H

#include <cstddef>
#include <cstdint>

namespace fsdprt {

struct StepReport {
  uint64_t step = 0, steps = 0;
  double loss = 0, gradNorm = 0, lr = 0, tokensPerSecond = 0, secondsLeft = 0;
  /// true if `loss` and `gradNorm` are meaningless, so that only the times are reported
  bool onlyTimes = false;
};

class RunReporter {
public:
  virtual ~RunReporter() = default;

  /// Prints a line. Throws Error if the line cannot be written.
  void line(const char *text, ...) __attribute__((format(printf, 2, 3)));
  /// Prints a warning about a problem that does not end the run.
  void warning(const char *text, ...) __attribute__((format(printf, 2, 3)));
  virtual void step(const StepReport &report) = 0;
  virtual void endSteps() {}
  /// Returns true if nobody reads the output any more, so that the run must end.
  virtual bool isUnread() const { return false; }

protected:
  /// Prints the text of a line. The text ends with a newline.
  virtual void write(const char *text, size_t size) = 0;
  virtual void writeWarning(const char *text) = 0;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_RUNREPORTER_H
