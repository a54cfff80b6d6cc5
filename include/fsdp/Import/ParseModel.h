//===- ParseModel.h - A file of a model ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_PARSEMODEL_H
#define FSDP_IMPORT_PARSEMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::fsdp {

/// Reads a model. On text that this MLIR cannot parse, says what it expects and
/// how to produce it. Null after an error.
OwningOpRef<ModuleOp> parseModel(StringRef path, MLIRContext *context);

} // namespace mlir::fsdp

#endif // FSDP_IMPORT_PARSEMODEL_H
