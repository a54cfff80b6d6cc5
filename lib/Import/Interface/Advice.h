//===- Advice.h - What to do about what is refused --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_ADVICE_H
#define FSDP_LIB_IMPORT_ADVICE_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

/// How to get rid of an op that Import does not take; empty when there is no recipe.
llvm::StringRef adviceForOp(llvm::StringRef opName);

/// The same for any op of a dialect.
llvm::StringRef adviceForDialect(llvm::StringRef dialect);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_ADVICE_H
