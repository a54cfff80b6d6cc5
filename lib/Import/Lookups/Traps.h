//===- Traps.h - Integer ops with an undefined result -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_TRAPS_H
#define FSDP_IMPORT_TRAPS_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

/// Reports an error for an integer division whose divisor may be 0, which ends the process on most
/// processors, and for a constant shift by at least as many bits as the type has, which is
/// undefined. A divisor is known not to be 0 if it is another constant, or a maximum with a
/// positive constant.
LogicalResult refuseTraps(Operation *op);

} // namespace mlir::fsdp

#endif // FSDP_IMPORT_TRAPS_H
