//===- Traps.h - Integer ops with an undefined result -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_TRAPS_H
#define FSDP_IMPORT_TRAPS_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

/// Reports integer divisions whose divisor may be 0. On most processors, a division by 0 ends the
/// process. Accepts a divisor that is a constant other than 0, or the maximum of a value and a
/// positive constant. Also reports shifts by a constant that is at least the number of bits of the
/// type. The result of such a shift is undefined.
LogicalResult refuseTraps(Operation *op);

} // namespace mlir::fsdp

#endif // FSDP_IMPORT_TRAPS_H
