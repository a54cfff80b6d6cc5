//===- Lookups.h - Indices that depend on data ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_LOOKUPS_H
#define FSDP_LIB_IMPORT_LOOKUPS_H

#include "Lookups/IdRanges.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace mlir::fsdp {

/// A tensor of ids, and the indexing map with which a generic would read this tensor.
struct Ids {
  Value tensor;
  AffineMap map;
};

/// Returns the tensor of ids that a body uses as the index `position`. If a cast between integer
/// types computes the index, the ids are the values before the cast. If the index is an element of
/// an input of the generic, returns this input. Otherwise returns the result of a new generic that
/// computes the index. Fails if the index depends on an output of the generic or on another lookup.
FailureOr<Ids> findIds(linalg::GenericOp generic, Value position, OpBuilder &b);

/// Differs from findIds() in two ways. Each id, as a signed number, equals the index. The index may
/// depend on another lookup of the body if that lookup reads a tensor from outside the body.
FailureOr<Ids> findPositions(linalg::GenericOp generic, Value position, OpBuilder &b);

/// An op that uses ids as indices, to read rows of a table or the logits of classes.
struct RowLookup {
  Operation *op;
  Value ids;
  int64_t extent;                ///< valid ids are in [0, extent)
  StringRef what;                ///< the indexed objects in messages, such as "rows of the table"
  std::optional<int64_t> ignore; ///< a valid id outside [0, extent), if there is one

  /// Returns whether the lookup is defined for all ids in `ranges`.
  bool admits(ArrayRef<IntegerRange> ranges) const {
    return llvm::all_of(ranges, [&](IntegerRange range) {
      return range.within(0, extent - 1) || (ignore && range.within(*ignore, *ignore));
    });
  }
};

/// Returns the lookup that `op` performs if `op` is an fsdp.gather_rows or an fsdp.cross_entropy.
/// Returns nothing for other ops.
std::optional<RowLookup> getRowLookup(Operation *op);

/// Returns the greatest limit for ids of an integer type: the type's greatest value plus 1.
int64_t getLargestLimit(Type ids);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_LOOKUPS_H
