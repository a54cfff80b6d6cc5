//===- ParseModel.h - Reading a model from a file ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_PARSEMODEL_H
#define FSDP_IMPORT_PARSEMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::fsdp {

/// Reads the model in the file `path`. Returns null after an error. If this version of MLIR cannot
/// parse the file, notes of the error describe the expected form and how to export it.
OwningOpRef<ModuleOp> parseModel(StringRef path, MLIRContext *context);

/// Registers two dialects that parse the text of StableHLO and CHLO, in generic and in custom form.
/// Their ops are not registered; fsdp-lower-stablehlo reads them.
void registerHloDialects(DialectRegistry &registry);

} // namespace mlir::fsdp

#endif // FSDP_IMPORT_PARSEMODEL_H
