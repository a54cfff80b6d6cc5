//===- PackArenas.h - Offsets of all buffers --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_PACKARENAS_H
#define FSDP_PLAN_PACKARENAS_H

#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/Packing.h"
#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// Describes the front of an arena, which holds the buffers that belong to no program and always
/// live.
struct ArenaFront {
  /// `end` is the end of the last such buffer. `base` is the begin of the buffers of programs.
  /// `bytes` is the sum of the sizes, each rounded up to the alignment.
  int64_t end = 0, base = 0, bytes = 0;
};

/// Places the buffers of `arena` that always live, and calls `place` with the offset of each.
ArenaFront packFront(ArrayRef<BufferOp> arena, llvm::function_ref<void(BufferOp, int64_t)> place);

/// Returns the size in bytes of the device's arena with `program` alone, whose buffers have
/// `lifetimes`. Stops at the first packing of at most `enough` bytes.
int64_t measureArena(LayoutOp layout, StringAttr program,
                     const llvm::MapVector<StringAttr, Lifetime> &lifetimes, int64_t enough);

} // namespace mlir::fsdp

#endif // FSDP_PLAN_PACKARENAS_H
