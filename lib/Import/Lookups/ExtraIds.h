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

/// Finds the extra ids of the function's arguments. An extra id is a value outside [0,
/// `fsdp.limit`) for which the model is nevertheless defined.
class ExtraIds {
public:
  /// Finds the extra ids and sets `fsdp.extra_ids` of the arguments. If a lookup would read out of
  /// range at an extra id, but the model ignores the result in this case, makes the lookup read
  /// index 0 instead. Requires that `fsdp.limit` is set. Fails with an error if `fsdp.extra_ids`
  /// already lists an id that the model does not handle.
  LogicalResult run(func::FuncOp func);

  /// Returns whether `decide` returns equal results for the ranges that ids within the limits lead
  /// to, and for the ranges that each extra id leads to.
  bool agree(Operation *op, llvm::function_ref<std::optional<int64_t>(IdRanges &)> decide);

  unsigned count() const { return cases.size(); }
  /// Returns the ranges of values if all arguments are within their limits.
  IdRanges &getLimits() { return limits; }

private:
  /// An extra id, and the ranges of values if all elements of `arg` are this id and all other
  /// arguments are within their limits.
  struct Case {
    BlockArgument arg;
    int64_t value;
    IdRanges ranges;
  };
  /// A lookup whose index in dimension `dim` is out of range for an extra id. The model ignores the
  /// result of the lookup in this case.
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
