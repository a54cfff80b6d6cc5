//===- CheckLimits.h - Limits of a model's file -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_CHECKLIMITS_H
#define FSDP_LIB_IMPORT_CHECKLIMITS_H

#include "fsdp/Import/ParseModel.h"

namespace llvm {
class SourceMgr;
}

namespace mlir::fsdp {

/// Check the size, the text and the IR of a model. Each function fails with an error if a limit is
/// exceeded.
LogicalResult checkFileSize(uint64_t bytes, StringRef name, const ParseLimits &limits,
                            MLIRContext *context);
LogicalResult checkText(StringRef text, StringRef name, const llvm::SourceMgr &sources,
                        const ParseLimits &limits, MLIRContext *context);
LogicalResult checkModule(ModuleOp module, const ParseLimits &limits);

/// Erases a module. Unlike Operation::erase, eraseDeep does not recurse once per level of regions.
void eraseDeep(ModuleOp module);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_CHECKLIMITS_H
