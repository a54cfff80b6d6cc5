//===- LossWeights.h - Losses weighed by what counts in them ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_UPDATE_LOSSWEIGHTS_H
#define FSDP_LIB_UPDATE_LOSSWEIGHTS_H

#include "Programs.h"

namespace mlir {
namespace fsdp {

/// The weight of a program's loss, on its way from an argument to a value.
struct LossWeight {
  BlockArgument total;          ///< stands for the sum of all counts; null: the loss has no weight
  Value count;                  ///< of the micro-batch at hand
  SmallVector<Operation *> ops; ///< what makes `count` from the batch, in order

  explicit operator bool() const { return static_cast<bool>(total); }
};

/// Counts the targets of a micro-batch and computes the weight of its loss, one of `terms`, while
/// the program is still the body of one micro-batch.
FailureOr<LossWeight> createLossWeight(const Program &program, int64_t terms);

/// Counts the targets of all micro-batches of all ranks in front of everything else, once batch
/// arguments have their leading dimension of `microBatches` (where it is not 1). Erases the
/// argument.
LogicalResult createTotalCount(const Program &program, LossWeight weight, int64_t microBatches,
                               MeshOp mesh);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_LIB_UPDATE_LOSSWEIGHTS_H
