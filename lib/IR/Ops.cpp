//===- Ops.cpp - Methods of the fsdp ops ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/FSDP.h"

using namespace mlir;
using namespace mlir::fsdp;

#define GET_OP_CLASSES
#include "fsdp/IR/FSDPOps.cpp.inc"

int64_t MeshOp::getAxisSize(StringRef name) {
  for (auto axis : getAxes().getAsRange<AxisAttr>())
    if (axis.getName() == name)
      return axis.getSize();
  return 1;
}

int64_t MeshOp::getNumRanks() {
  int64_t ranks = 1;
  for (auto axis : getAxes().getAsRange<AxisAttr>())
    ranks *= axis.getSize();
  return ranks;
}
