//===- UnshardedCheck.h - Compares a run with one that is not sharded -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The reference program runs beside the ranks on an arena of its own: all parameters whole, the
// ranks' batches as its micro-batches, in rank order. After every step loss and gradient norm,
// after the last one every value of every state have to be the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_UNSHARDEDCHECK_H
#define FSDPRT_TRAIN_UNSHARDEDCHECK_H

#include "train/TrainingRun.h"
#include <vector>

namespace fsdprt {

class UnshardedCheck {
public:
  /// Throws Error when the artifact has no reference. `run` outlives this.
  explicit UnshardedCheck(const TrainingRun &run);

  /// Throws Error unless the reference takes the batches of all ranks for each of `inputs`.
  void expectInputs(const std::vector<fsdprt_input_info> &inputs) const;
  /// Sets the reference's states. Does nothing in processes without rank 0, as the next one does.
  void initialise() const;
  /// Runs the reference's step `number`. Returns true if its loss and norm are those of `block`,
  /// the step block of rank 0, and reports it otherwise.
  bool step(uint64_t number, const float *block) const;
  /// Compares all states, in all processes. Returns true if they are equal, and reports either.
  bool compare() const;

private:
  const TrainingRun &run;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_UNSHARDEDCHECK_H
