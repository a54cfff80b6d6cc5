//===- TileExprNode.h - Node of an integer of a tile ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the node of a TileExpr, which TileExpr.cpp and EvaluateTileExpr.cpp read.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_ANALYSIS_TILEEXPRNODE_H
#define FSDP_LIB_ANALYSIS_TILEEXPRNODE_H

#include "fsdp/Analysis/TileExpr.h"

namespace mlir::fsdp {
struct TileExpr::Node {
  Kind kind;
  int64_t number = 0; // value of a constant, offset of a sum, or divisor of a FloorDiv
  Symbol symbol = Symbol::Begin;
  Value value = {};
  SmallVector<int64_t, 2> factors = {};   // factors of the terms of a sum
  SmallVector<TileExpr, 2> operands = {}; // terms of a sum, or operands of any other tree
  IntegerRange range = {-limit, limit};
  unsigned size = 1; // number of nodes of the tree, where a shared node counts at each occurrence
};
} // namespace mlir::fsdp

#endif // FSDP_LIB_ANALYSIS_TILEEXPRNODE_H
