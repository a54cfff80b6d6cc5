//===- MemoryLimit.h - Check the arena against a limit ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_MEMORYLIMIT_H
#define FSDP_ANALYSIS_MEMORYLIMIT_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// Largest arena that the runtime accepts, in bytes.
constexpr int64_t kMaxArenaBytes = int64_t(1) << 48;

/// Fails with an error if the arena of a rank is larger than `limit` bytes, or than kMaxArenaBytes
/// if `limit` is 0. The error names the command with the most live bytes. Notes of the error list
/// the categories of buffers that take the most memory, and the options that reduce the memory of
/// these categories. Ignores the arena of the reference program, because users need not run that
/// program.
LogicalResult checkMemoryLimit(ModuleOp planned, int64_t limit);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_MEMORYLIMIT_H
