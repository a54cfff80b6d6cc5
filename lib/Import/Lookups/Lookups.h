//===- Lookups.h - Positions that depend on data ----------------*- C++ -*-===//
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

/// The ids behind a position that a body computes from data: an operand when the
/// position is one, otherwise the result of a new generic before this one.
FailureOr<Ids> findIds(linalg::GenericOp generic, Value position, OpBuilder &b);

/// The same as signed numbers that are equal to the position. A position may depend on another
/// lookup of the body.
FailureOr<Ids> findPositions(linalg::GenericOp generic, Value position, OpBuilder &b);

/// An op that reads rows of a table, or classes, at ids.
struct RowLookup {
  Operation *op;
  Value ids;
  int64_t extent; ///< ids are in [0, extent)
  StringRef what; ///< of which there are so many
  std::optional<int64_t> ignore;

  bool admits(ArrayRef<IntegerRange> ranges) const {
    return llvm::all_of(ranges, [&](IntegerRange range) {
      return range.within(0, extent - 1) || (ignore && range.within(*ignore, *ignore));
    });
  }
};

/// fsdp.gather_rows and fsdp.cross_entropy.
std::optional<RowLookup> getRowLookup(Operation *op);

/// The largest limit that ids of this type can have.
int64_t getLargestLimit(Type ids);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_LOOKUPS_H
