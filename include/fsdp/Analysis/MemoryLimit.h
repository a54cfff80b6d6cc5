//===- MemoryLimit.h - Does the plan fit ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_MEMORYLIMIT_H
#define FSDP_ANALYSIS_MEMORYLIMIT_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// The largest arena that the runtime takes.
constexpr int64_t kMaxArenaBytes = int64_t(1) << 48;

/// Fails with an error where the arena of a rank is larger than `limit` bytes (0: kMaxArenaBytes).
/// It says what fills the arena most, and what makes that smaller. The arena of the reference is
/// not a rank's: nobody has to run it.
LogicalResult checkMemoryLimit(ModuleOp planned, int64_t limit);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_MEMORYLIMIT_H
