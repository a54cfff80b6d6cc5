//===- StopGradient.cpp - Values that no gradient passes --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/StopGradient.h"

using namespace mlir;
using namespace mlir::fsdp;

#define GET_OP_CLASSES
#include "fsdp/IR/FSDPGradientOps.cpp.inc"

/// A splat is never a parameter. A constant with several values can be one until Import has named
/// the parameters.
OpFoldResult StopGradientOp::fold(FoldAdaptor adaptor) {
  bool isSplat = isa_and_nonnull<SplatElementsAttr>(adaptor.getInput());
  if (isSplat || getInput().getDefiningOp<StopGradientOp>() ||
      !isa<FloatType>(getInput().getType().getElementType()))
    return getInput();
  return {};
}

Value fsdp::skipStopGradients(Value value) {
  while (auto stop = value.getDefiningOp<StopGradientOp>())
    value = stop.getInput();
  return value;
}
