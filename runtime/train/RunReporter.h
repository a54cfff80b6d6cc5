//===- RunReporter.h - What a run says to its user --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A run reports lines, steps and warnings; where they go is for who derives from this. A line
// allocates nothing.
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
  bool onlyTimes = false; ///< the other numbers mean nothing
};

class RunReporter {
public:
  virtual ~RunReporter() = default;

  /// Reports a line. May throw Error when it cannot be written.
  void line(const char *text, ...) __attribute__((format(printf, 2, 3)));
  /// Reports what the user has to know although the run goes on.
  void warning(const char *text, ...) __attribute__((format(printf, 2, 3)));
  /// Is called after each step.
  virtual void step(const StepReport &report) = 0;
  /// Is called after the last step.
  virtual void endSteps() {}
  /// Returns true if nobody reads any more: the run is to end.
  virtual bool isUnread() const { return false; }

protected:
  /// Takes a line, with its newline.
  virtual void write(const char *text, size_t size) = 0;
  virtual void writeWarning(const char *text) = 0;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_RUNREPORTER_H
