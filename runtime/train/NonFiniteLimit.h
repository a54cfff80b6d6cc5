//===- NonFiniteLimit.h - Limit of non-finite steps -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step is non-finite if its loss or its gradient norm is not finite. Such a step changes no
// parameter. A run ends when the number of consecutive non-finite steps exceeds a limit. The
// default limit is 0, or 49 if the loss scale is dynamic.
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_NONFINITELIMIT_H
#define FSDPRT_TRAIN_NONFINITELIMIT_H

#include "train/TrainingRun.h"

namespace fsdprt {

class NonFiniteLimit {
public:
  /// Sets the count to `before`, which is the number of consecutive non-finite steps at the end of
  /// the save from which the run resumes.
  void resume(uint64_t before) { inARow = before; }
  uint64_t count() const { return inARow; }
  /// Updates the count after step `number`, whose step block is `block`. If the step is non-finite,
  /// reports it. Returns false if the count exceeds the limit. In this case the run must end.
  /// Allocates no memory.
  bool allows(const TrainingRun &run, uint64_t number, const float *block);
  bool isExceeded() const { return *why != 0; }
  const char *reason() const { return why; }

private:
  uint64_t inARow = 0;
  char why[64] = "";
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_NONFINITELIMIT_H
