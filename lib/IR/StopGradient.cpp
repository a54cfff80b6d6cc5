//===- StopGradient.cpp - The op fsdp.stop_gradient -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/StopGradient.h"

using namespace mlir;
using namespace mlir::fsdp;

#define GET_OP_CLASSES
#include "fsdp/IR/FSDPGradientOps.cpp.inc"

/// Folds the op to its input if the input is a splat constant, is the result of another
/// fsdp.stop_gradient, or has no float elements. Does not fold the op if its input is another
/// constant, because Import may turn this constant into a parameter.
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
