//===- RaiseErfc.h - Error functions in StableHLO ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_STABLEHLO_RAISEERFC_H
#define FSDP_IMPORT_STABLEHLO_RAISEERFC_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

/// Returns x if the result of a `stablehlo.select` is erfc(x), and elementwise ops compute this
/// result from x and constants alone. Returns null otherwise.
Value matchErfc(Operation *select);

} // namespace mlir::fsdp

#endif // FSDP_IMPORT_STABLEHLO_RAISEERFC_H
