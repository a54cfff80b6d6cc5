//===- Positions.h - Positions in the exported file -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The options `--params` and `--buffer` identify an argument or a constant by its position in the
// file or by its name. The pass fsdp-select-entry stores these positions in attributes before other
// passes move ops.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_POSITIONS_H
#define FSDP_LIB_IMPORT_POSITIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace mlir::fsdp {

/// Discardable attribute: position of an argument or constant. The pass fsdp-name-batch removes it.
inline constexpr llvm::StringLiteral positionAttr = "fsdp.position";

/// Discardable attribute of a constant for which --buffer specifies `keep` or a file.
inline constexpr llvm::StringLiteral keepAttr = "fsdp.keep";

/// Returns the value of `op` if it is a tensor constant of any dialect, and else null.
ElementsAttr constantValue(Operation *op);

/// Returns whether `op` is a table, that is, a tensor constant of rank ≥ 1 that is not a splat.
/// Tables are weights or buffers that an exporter wrote into the module.
bool isTable(Operation *op);

/// Returns the resource key of a table. The key is empty if the values of the table are inline.
StringRef resourceKey(Operation *op);

/// Returns whether the values of a table are missing, as in `dense_resource<__elided__>`.
bool isElided(Operation *op);

void setPosition(BlockArgument arg, int64_t position);
void setPosition(Operation *constant, int64_t position);
int64_t getPosition(BlockArgument arg);
std::optional<int64_t> getPosition(Operation *constant);

/// Returns the name of a value from its location: `h.0.w` for `loc("params['h'][0]['w']")`. Returns
/// an empty string if the location has no name.
std::string nameFromLocation(Location loc);

/// Returns the public function with a body in a module, or null if the module has none.
func::FuncOp getEntry(Operation *module);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_POSITIONS_H
