//===- LayoutNames.h - Names of the layouts ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_LAYOUTNAMES_H
#define FSDP_PLAN_LAYOUTNAMES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

/// Names of the layouts. The reference has a separate layout. Its name ends with the name of the
/// main layout.
inline constexpr llvm::StringLiteral mainLayout = "arena", referenceLayout = "reference_arena";

} // namespace mlir::fsdp

#endif // FSDP_PLAN_LAYOUTNAMES_H
