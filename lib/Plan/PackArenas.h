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

/// What of an arena always lives: buffers without a program, one after another.
struct ArenaFront {
  /// After the last of them; where buffers of programs begin; bytes, each rounded up to the
  /// alignment.
  int64_t end = 0, base = 0, bytes = 0;
};

/// `arena`: all of its buffers. `place` is told of those that always live.
ArenaFront packFront(ArrayRef<BufferOp> arena, llvm::function_ref<void(BufferOp, int64_t)> place);

/// Bytes of the device's arena when the buffers of `program` live as `lifetimes` says, beside no
/// other program: as packed, up to the first packing of at most `enough`.
int64_t measureArena(LayoutOp layout, StringAttr program,
                     const llvm::MapVector<StringAttr, Lifetime> &lifetimes, int64_t enough);

} // namespace mlir::fsdp

#endif // FSDP_PLAN_PACKARENAS_H
