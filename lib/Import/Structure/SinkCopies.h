//===- SinkCopies.h - Move transposes towards their readers -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_SINKCOPIES_H
#define FSDP_LIB_IMPORT_SINKCOPIES_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::fsdp {

/// Adds patterns for slices, elementwise ops and concatenations that read transposed values. The
/// patterns make these ops read the values before the transpose, and transpose the result instead.
/// The transpose thereby moves towards an op whose maps can absorb it.
void populateSinkCopyPatterns(RewritePatternSet &patterns);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_SINKCOPIES_H
