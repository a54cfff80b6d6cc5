//===- UnshardedCheck.h - Comparison with an unsharded run ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The reference program runs next to the ranks in its own arena, with whole parameters. The batches
// of all ranks are its micro-batches, in the order of ranks. Loss and gradient norm after every
// step, and all states after the last step, must be equal bit for bit.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_UNSHARDEDCHECK_H
#define FSDPRT_TRAIN_UNSHARDEDCHECK_H

#include "train/TrainingRun.h"
#include <vector>

namespace fsdprt {

class UnshardedCheck {
public:
  /// Throws Error if the artifact has no reference program. `run` must outlive the check.
  explicit UnshardedCheck(const TrainingRun &run);

  /// Throws Error unless each of `inputs` of the reference holds the batches of all ranks.
  void expectInputs(const std::vector<fsdprt_input_info> &inputs) const;
  /// Initialises the reference's states. Like step(), does nothing in a process without rank 0.
  void initialise() const;
  /// Runs the reference's step `number`. Returns true if its loss and norm equal those of `block`,
  /// the step block of rank 0. Otherwise reports the difference and returns false.
  bool step(uint64_t number, const float *block) const;
  /// Compares all states and reports the result. Returns true if they are equal. All processes must
  /// call it.
  bool compare() const;

private:
  const TrainingRun &run;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_UNSHARDEDCHECK_H
