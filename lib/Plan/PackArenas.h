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

/// Describes the front of an arena. The front holds the buffers that belong to no program. These
/// buffers are always alive.
struct ArenaFront {
  /// `end` is the offset at which the last buffer of the front ends. `base` is the offset at which
  /// the buffers of the programs begin. `bytes` is the sum of the sizes of the buffers of the
  /// front, each rounded up to the alignment.
  int64_t end = 0, base = 0, bytes = 0;
};

/// Chooses the offsets of those buffers of `arena` that are always alive. Calls `place` with each
/// of these buffers and its offset.
ArenaFront packFront(ArrayRef<BufferOp> arena, llvm::function_ref<void(BufferOp, int64_t)> place);

/// Returns the size in bytes that the device's arena would have if `program` were its only program
/// and if the buffers of `program` had the given `lifetimes`. Tries several packings, and stops at
/// the first packing that needs at most `enough` bytes.
int64_t measureArena(LayoutOp layout, StringAttr program,
                     const llvm::MapVector<StringAttr, Lifetime> &lifetimes, int64_t enough);

} // namespace mlir::fsdp

#endif // FSDP_PLAN_PACKARENAS_H
