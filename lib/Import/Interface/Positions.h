//===- Positions.h - Positions in the exported file -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `--params` and `--buffer` name arguments and constants by their position in the file or by name.
// fsdp-select-entry records the positions before other passes move ops; the functions below read
// the positions.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_POSITIONS_H
#define FSDP_LIB_IMPORT_POSITIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace mlir::fsdp {

/// Discardable attribute for the position of an argument or constant. fsdp-name-batch removes it.
inline constexpr llvm::StringLiteral positionAttr = "fsdp.position";

/// Discardable attribute of constants for which --buffer says `keep` or gives a file.
inline constexpr llvm::StringLiteral keepAttr = "fsdp.keep";

/// Returns the value of a tensor constant of any dialect; null if `op` is no such constant.
ElementsAttr constantValue(Operation *op);

/// Returns whether `op` is a tensor constant of rank ≥ 1 and not a splat: a weight or a buffer that
/// an exporter wrote into the module.
bool isTable(Operation *op);

/// Returns the resource key of a table; empty if its values are inline.
StringRef resourceKey(Operation *op);

/// Returns whether the values of a table are missing, as in `dense_resource<__elided__>`.
bool isElided(Operation *op);

void setPosition(BlockArgument arg, int64_t position);
void setPosition(Operation *constant, int64_t position);
int64_t getPosition(BlockArgument arg);
std::optional<int64_t> getPosition(Operation *constant);

/// Returns the name that a location gives an argument: `loc("params['h'][0]['w']")` gives `h.0.w`.
/// Returns an empty string if the location has no name.
std::string nameFromLocation(Location loc);

/// Returns the public function of a module that has a body; null if there is none.
func::FuncOp getEntry(Operation *module);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_POSITIONS_H
