//===- UnshardedCheck.h - Comparison with an unsharded run ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The reference program runs in the process of rank 0, in its own arena, with unsharded parameters.
// The micro-batches of the reference program are the batches of all ranks, in the order of ranks.
// After every step, loss and gradient norm of the reference program must equal those of the ranks.
// After the last step, its states must equal those of the ranks. Numbers are equal if all bits are.
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

  /// Throws Error unless the reference program's inputs have the size of the batches of all ranks.
  void expectInputs(const std::vector<fsdprt_input_info> &inputs) const;
  /// Runs 'reference_init' in the process of rank 0. Does nothing in other processes.
  void initialise() const;
  /// Runs step `number` of the reference program. Returns true if its loss and gradient norm equal
  /// those in `block`, the step block of rank 0. Otherwise reports the difference and returns
  /// false. In other processes, only returns true.
  bool step(uint64_t number, const float *block) const;
  /// Compares all states and reports the result. Returns true if they are equal. All processes must
  /// call compare().
  bool compare() const;

private:
  const TrainingRun &run;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_UNSHARDEDCHECK_H
