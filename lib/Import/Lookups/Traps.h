//===- Traps.h - Integer ops without a result -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_TRAPS_H
#define FSDP_IMPORT_TRAPS_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

/// Refuses a division of integers whose divisor may be 0, which ends the process on most
/// processors, and a shift by as many bits as there are, which means nothing. A divisor is known
/// not to be 0 when it is a constant, or the larger of something and a constant above 0.
LogicalResult refuseTraps(Operation *op);

} // namespace mlir::fsdp

#endif // FSDP_IMPORT_TRAPS_H
