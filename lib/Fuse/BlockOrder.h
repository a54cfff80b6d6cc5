//===- BlockOrder.h - Sort ops after their operands -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_FUSE_BLOCKORDER_H
#define FSDP_LIB_FUSE_BLOCKORDER_H

#include "mlir/IR/Block.h"

namespace mlir {
namespace fsdp {

/// If an op of the range precedes the definition of one of its operands, moves the op directly
/// after its last operand. The order of all other ops does not change. Ops that depend on
/// themselves move to the end. No op before the range may use a result of the range.
void restoreOrder(llvm::iterator_range<Block::iterator> range);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_LIB_FUSE_BLOCKORDER_H
