//===- BlockOrder.h - Ops in order of what they need ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_FUSE_BLOCKORDER_H
#define FSDP_LIB_FUSE_BLOCKORDER_H

#include "mlir/IR/Block.h"

namespace mlir {
namespace fsdp {

/// Puts ops that stand in front of what they use after it, directly after the last of it; all
/// others keep their order. An op whose operands lead back to itself stays where it is, in front of
/// the terminator.
void restoreOrder(Block &block);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_LIB_FUSE_BLOCKORDER_H
