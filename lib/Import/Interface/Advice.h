//===- Advice.h - Advice on unsupported ops ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_ADVICE_H
#define FSDP_LIB_IMPORT_ADVICE_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

/// Returns advice on how to avoid an op that Import does not support. Returns an empty string if
/// there is no advice.
llvm::StringRef adviceForOp(llvm::StringRef opName);

/// Returns advice on how to avoid the ops of a dialect that Import does not support.
llvm::StringRef adviceForDialect(llvm::StringRef dialect);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_ADVICE_H
