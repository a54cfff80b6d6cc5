//===- ExtraIds.h - Ids outside the limit, e.g. ignore_index ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_EXTRAIDS_H
#define FSDP_LIB_IMPORT_EXTRAIDS_H

#include "Lookups/IdRanges.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {

/// Values outside the limits of arguments for which the model is defined.
class ExtraIds {
public:
  /// Finds extra ids and sets `fsdp.extra_ids`. Replaces an extra id by 0 in lookups whose result
  /// the model then ignores. Requires that `fsdp.limit` is set. Fails with an error if
  /// `fsdp.extra_ids` already lists an id that the model does not handle.
  LogicalResult run(func::FuncOp func);

  /// Returns whether `decide` returns equal results for `op` with ids in the limits and with each
  /// extra id.
  bool agree(Operation *op, llvm::function_ref<std::optional<int64_t>(IdRanges &)> decide);

  unsigned count() const { return cases.size(); }
  /// Returns the ranges for arguments within their limits.
  IdRanges &getLimits() { return limits; }

private:
  /// Ranges if all elements of `arg` are `value` and other arguments are in their limits.
  struct Case {
    BlockArgument arg;
    int64_t value;
    IdRanges ranges;
  };
  /// A lookup whose index `dim` is out of range for an extra id, but whose result is then ignored.
  struct Guard {
    tensor::ExtractOp extract;
    unsigned dim;
    int64_t index;
  };

  SmallVector<int64_t> collectCandidates(BlockArgument arg, int64_t limit);
  bool handles(Case &trial, SmallVectorImpl<Guard> &guards);

  func::FuncOp func;
  llvm::MapVector<Value, SmallVector<int64_t>> accepted;
  std::vector<Case> cases;
  IdRanges limits;
  std::optional<IdRanges> hulls;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_EXTRAIDS_H
