//===- LossWeights.h - Weights of losses by their targets -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_UPDATE_LOSSWEIGHTS_H
#define FSDP_LIB_UPDATE_LOSSWEIGHTS_H

#include "Programs.h"

namespace mlir {
namespace fsdp {

/// Describes how the weight of a program's loss is computed. The weight was an argument of the
/// program. The computed value replaces this argument.
struct LossWeight {
  BlockArgument total;          ///< argument that the sum of all counts will replace; null if the
                                ///< loss has no weight
  Value count;                  ///< number of counted targets in the current micro-batch
  SmallVector<Operation *> ops; ///< the ops that compute `count` from the batch, in order

  explicit operator bool() const { return static_cast<bool>(total); }
};

/// Counts the targets of a micro-batch and computes the weight of the loss of this micro-batch. The
/// loss of the whole batch is the mean of the weighted losses of `terms` micro-batches. Must be
/// called before the loops over micro-batches are built. Each of `context` ranks has a part of the
/// sequence.
FailureOr<LossWeight> createLossWeight(func::FuncOp func, int64_t terms, int64_t context);

/// Computes the weight of the loss of a step that becomes the program `reference`. A later call of
/// createLossWeight() returns this weight.
LogicalResult weighReference(func::FuncOp func, int64_t terms, int64_t context);

/// Counts the targets of all micro-batches on all ranks, at the beginning of the program. Replaces
/// the argument `total` by this count, and erases the argument. If `microBatches` is not 1, it must
/// be the size of the batch arguments' first dimension.
LogicalResult createTotalCount(const Program &program, LossWeight weight, int64_t microBatches,
                               MeshOp mesh);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_LIB_UPDATE_LOSSWEIGHTS_H
