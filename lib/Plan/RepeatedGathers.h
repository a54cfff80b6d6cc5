//===- RepeatedGathers.h - Units that a block gathers twice -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_REPEATEDGATHERS_H
#define FSDP_PLAN_REPEATEDGATHERS_H

#include "fsdp/IR/FSDP.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::fsdp {

/// A gather of the forward (`first`) and a gather of the backward that repeats `first` (`again`).
struct RepeatedGather {
  UnshardOp first, again;
};

/// Returns the repeated gathers of `block`, in the order of the gathers of the forward.
SmallVector<RepeatedGather> findRepeatedGathers(Block &block);

/// Erases the gather `again` of each element of findRepeatedGathers() whose bit in `kept` is set.
/// The readers of this gather then read the gather of the forward. The gathered parameters then
/// stay in the arena until the backward.
void keepGathers(Block &block, const llvm::BitVector &kept);

} // namespace mlir::fsdp

#endif // FSDP_PLAN_REPEATEDGATHERS_H
