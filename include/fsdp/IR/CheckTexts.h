//===- CheckTexts.h - Texts that end up in files -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_CHECKTEXTS_H
#define FSDP_IR_CHECKTEXTS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// Emits an error for each text that is not UTF-8 or has control characters and that is the name of
/// a function, or in an attribute `fsdp.*` of the module, of a function or of an argument. These
/// texts become parts of artifacts, saves, JSON and messages.
LogicalResult checkTexts(ModuleOp module);

} // namespace mlir::fsdp

#endif // FSDP_IR_CHECKTEXTS_H
