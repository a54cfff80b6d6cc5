//===- ExtraIds.h - Ids that a model handles itself -------------*- C++ -*-===//
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

/// Values outside of the limits for which the model's result is defined all the same.
class ExtraIds {
public:
  /// Finds them, sets `fsdp.extra_ids`, and keeps lookups whose result is thrown away for such a
  /// value in range. Limits are set. Fails when the function lists a value that the model does not
  /// handle.
  LogicalResult run(func::FuncOp func);

  /// Whether what `decide` says about op under the limits, it says for the extra ids too.
  bool agree(Operation *op, llvm::function_ref<std::optional<int64_t>(IdRanges &)> decide);

  unsigned count() const { return cases.size(); }
  /// All arguments within their limits.
  IdRanges &getLimits() { return limits; }

private:
  /// All elements of an argument are this value; the other arguments are within their limits.
  struct Case {
    BlockArgument arg;
    int64_t value;
    IdRanges ranges;
  };
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
