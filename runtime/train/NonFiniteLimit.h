//===- NonFiniteLimit.h - Limit of non-finite steps -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step whose loss or gradient norm is not finite changes no parameter. A run ends when the number
// of consecutive non-finite steps exceeds a limit: by default 0, or 49 with a dynamic loss scale.
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_NONFINITELIMIT_H
#define FSDPRT_TRAIN_NONFINITELIMIT_H

#include "train/TrainingRun.h"

namespace fsdprt {

class NonFiniteLimit {
public:
  /// Sets the count to `before`, the number of consecutive non-finite steps just before the save
  /// from which the run resumes.
  void resume(uint64_t before) { inARow = before; }
  uint64_t count() const { return inARow; }
  /// Updates the count after step `number`, whose step block is `block`, and reports a non-finite
  /// step. Returns false if the count exceeds the limit, so that the run must end. Allocates no
  /// memory.
  bool allows(const TrainingRun &run, uint64_t number, const float *block);
  bool isExceeded() const { return *why != 0; }
  const char *reason() const { return why; }

private:
  uint64_t inARow = 0;
  char why[64] = "";
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_NONFINITELIMIT_H
