//===- Positions.h - What users point at in a foreign file ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `--params` and `--buffer` name arguments and constants by their position in
// the file or by name. fsdp-select-entry records the positions before anything
// moves; these functions read them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_POSITIONS_H
#define FSDP_LIB_IMPORT_POSITIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace mlir::fsdp {

/// Discardable attribute of arguments and constants; gone after Import.
inline constexpr llvm::StringLiteral positionAttr = "fsdp.position";

/// Of constants that --buffer says to keep as they are.
inline constexpr llvm::StringLiteral keepAttr = "fsdp.keep";

/// The value of a constant op on tensors, of whatever dialect; null otherwise.
ElementsAttr constantValue(Operation *op);

/// A tensor constant of rank ≥ 1 that is not the same value everywhere: weights
/// and buffers that an importer wrote into the module.
bool isTable(Operation *op);

/// The resource key of a table; empty when its values are written in place.
StringRef resourceKey(Operation *op);

/// Its text was printed with `dense_resource<__elided__>` or its blob is missing.
bool isElided(Operation *op);

void setPosition(BlockArgument arg, int64_t position);
void setPosition(Operation *constant, int64_t position);
int64_t getPosition(BlockArgument arg);
std::optional<int64_t> getPosition(Operation *constant);

/// The name that a location gives an argument: `loc("params['h'][0]['w']")` is
/// `h.0.w`. Empty when there is none.
std::string nameFromLocation(Location loc);

/// The only public function of a module; null when there is none.
func::FuncOp getEntry(Operation *module);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_POSITIONS_H
