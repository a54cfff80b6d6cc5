//===- NonFiniteLimit.h - Steps that may be not finite ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step whose loss or gradient norm is not finite changes no parameter. A run goes on after some
// of them in a row: none, or 49 where a loss scale adapts, or as many as the options say.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_NONFINITELIMIT_H
#define FSDPRT_TRAIN_NONFINITELIMIT_H

#include "train/TrainingRun.h"

namespace fsdprt {

class NonFiniteLimit {
public:
  /// `before`: steps in a row that were not finite in the run of a save.
  void resume(uint64_t before) { inARow = before; }
  uint64_t count() const { return inARow; }
  /// Counts step `number` by its step block, and reports it when it was not finite. Returns false
  /// when the run has to end. Allocates nothing.
  bool allows(const TrainingRun &run, uint64_t number, const float *block);
  bool isExceeded() const { return *why != 0; }
  const char *reason() const { return why; }

private:
  uint64_t inARow = 0;
  char why[64] = "";
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_NONFINITELIMIT_H
