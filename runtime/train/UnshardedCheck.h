//===- UnshardedCheck.h - Comparison with an unsharded run ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The reference program runs in the process of rank 0. It has its own arena, and its parameters are
// not sharded. The micro-batches of the reference program are the batches of all ranks, in the
// order of ranks. After every step, the reference program and the ranks must have equal losses and
// equal gradient norms. After the last step, the states of the reference program must equal the
// states of the ranks. Two numbers are equal only if all their bits are equal.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_UNSHARDEDCHECK_H
#define FSDPRT_TRAIN_UNSHARDEDCHECK_H

#include "train/TrainingRun.h"
#include <vector>

namespace fsdprt {

class UnshardedCheck {
public:
  /// Throws Error if the artifact has no reference program. `run` must outlive this object.
  explicit UnshardedCheck(const TrainingRun &run);

  /// Throws Error unless each input of the reference program has the size of the batches of all
  /// ranks together.
  void expectInputs(const std::vector<fsdprt_input_info> &inputs) const;
  /// In the process of rank 0, runs the program 'reference_init'. In other processes, does nothing.
  void initialise() const;
  /// In the process of rank 0, runs step `number` of the reference program. Compares its loss and
  /// gradient norm with `block`, the step block of rank 0. If they are equal, returns true.
  /// Otherwise reports the difference and returns false. In other processes, returns true.
  bool step(uint64_t number, const float *block) const;
  /// Compares all states of the ranks with the states of the reference program, and reports the
  /// result. Returns true if all states are equal. All processes must call compare().
  bool compare() const;

private:
  const TrainingRun &run;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_UNSHARDEDCHECK_H
