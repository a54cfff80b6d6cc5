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

/// A tensor of ids and its map over the loops of a generic.
struct Ids {
  Value tensor;
  AffineMap map;
};

/// Returns the ids that a body uses as an index, before integer casts: an input of the generic if
/// the index is an element of that input, else the result of a new generic. Fails if the index
/// depends on an output or on another lookup.
FailureOr<Ids> findIds(linalg::GenericOp generic, Value position, OpBuilder &b);

/// Returns ids that equal the index as signed numbers. The index may depend on another lookup of
/// the body in a tensor that is defined outside the body.
FailureOr<Ids> findPositions(linalg::GenericOp generic, Value position, OpBuilder &b);

/// An op that reads rows of a table, or the logits of classes, at ids.
struct RowLookup {
  Operation *op;
  Value ids;
  int64_t extent;                ///< valid ids are in [0, extent)
  StringRef what;                ///< name of the indexed things, such as "rows of the table"
  std::optional<int64_t> ignore; ///< a valid id outside [0, extent), if there is one

  /// Returns whether all ids in `ranges` are valid.
  bool admits(ArrayRef<IntegerRange> ranges) const {
    return llvm::all_of(ranges, [&](IntegerRange range) {
      return range.within(0, extent - 1) || (ignore && range.within(*ignore, *ignore));
    });
  }
};

/// Returns the lookup of an fsdp.gather_rows or fsdp.cross_entropy; nothing for other ops.
std::optional<RowLookup> getRowLookup(Operation *op);

/// Returns the greatest limit for ids of an integer type: the type's greatest value plus 1.
int64_t getLargestLimit(Type ids);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_LOOKUPS_H
