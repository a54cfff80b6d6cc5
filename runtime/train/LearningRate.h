//===- LearningRate.h - The learning rate of a step -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     warm-up            decay                         after the decay
//     lr * s / warmup    half a cosine to the minimum  minimum
//
// The first step is s = 1. If `decaySteps` is 0, the rate does not decay after the warm-up.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_LEARNINGRATE_H
#define FSDPRT_TRAIN_LEARNINGRATE_H

#include <cmath>
#include <cstdint>

namespace fsdprt {

struct LearningRate {
  double lr = 0, minimum = 0;
  uint64_t warmupSteps = 0;
  uint64_t decaySteps = 0; ///< step from which the rate is `minimum`; 0 if the rate does not decay

  double at(uint64_t step) const {
    if (step < warmupSteps)
      return lr * static_cast<double>(step) / static_cast<double>(warmupSteps);
    if (decaySteps == 0)
      return lr;
    if (step >= decaySteps)
      return minimum;
    double done =
        static_cast<double>(step - warmupSteps) / static_cast<double>(decaySteps - warmupSteps);
    return minimum + (lr - minimum) * 0.5 * (1 + std::cos(3.141592653589793 * done));
  }
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_LEARNINGRATE_H
