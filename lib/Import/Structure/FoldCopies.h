//===- FoldCopies.h - Fold transposes and broadcasts into maps --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_FOLDCOPIES_H
#define FSDP_LIB_IMPORT_FOLDCOPIES_H

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/Statistic.h"

namespace mlir::fsdp {

/// Adds two kinds of patterns. The first kind folds a copy into the maps of the generics that read
/// the copy. The second kind folds a transpose of a product into the product. `numFolded` counts
/// the folds.
void populateFoldCopyPatterns(RewritePatternSet &patterns, llvm::Statistic &numFolded);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_FOLDCOPIES_H
