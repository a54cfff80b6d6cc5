//===- HoldStopped.cpp - Constants for stopped gradients --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Finite differences of f(x) = x * stop_gradient(x) would vary both factors. However, the gradient
// is the gradient of x * c, where c is a constant with the value x. Therefore, c becomes an
// argument of f:
//
//   f(x) = x * stop_gradient(x)     becomes     f(x, c) = x * c     and     f.held(x) = x
//
//  1. f.held is a copy of f in which each fsdp.stop_gradient is replaced by its input. f.held
//     returns these inputs.
//  2. In f, a new argument replaces the result of each fsdp.stop_gradient. The new arguments follow
//     the other arguments.
//
// The checker calls f.held only once: at the point x at which it approximates the derivative of f.
//
//===----------------------------------------------------------------------===//

#include "HoldStopped.h"
#include "fsdp/IR/StopGradient.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gradcheck;

std::string gradcheck::getHeldName(StringRef function) { return (function + ".held").str(); }

static SmallVector<StopGradientOp> collectStops(func::FuncOp func) {
  SmallVector<StopGradientOp> stops;
  func.walk([&](StopGradientOp op) { stops.push_back(op); });
  return stops;
}

/// Adds a function that returns the inputs of all fsdp.stop_gradient ops of `func`.
static void addHeldFunction(func::FuncOp func) {
  auto held = func.clone();
  held.setSymName(getHeldName(func.getSymName()));
  func->getBlock()->getOperations().insertAfter(func->getIterator(), held);
  SmallVector<Value> inputs;
  for (StopGradientOp stop : collectStops(held)) {
    stop.getResult().replaceAllUsesWith(stop.getInput());
    inputs.push_back(stop.getInput());
    stop.erase();
  }
  Operation *terminator = held.getBody().front().getTerminator();
  terminator->setOperands(inputs);
  held.removeResAttrsAttr();
  held.setFunctionType(
      FunctionType::get(func.getContext(), held.getArgumentTypes(), terminator->getOperandTypes()));
}

LogicalResult gradcheck::holdStopped(func::FuncOp func, Function &function) {
  SmallVector<StopGradientOp> stops = collectStops(func);
  if (stops.empty())
    return success();
  addHeldFunction(func);
  for (StopGradientOp stop : stops) {
    auto type = cast<RankedTensorType>(stop.getType());
    unsigned index = func.getNumArguments();
    if (failed(func.insertArgument(index, type, {}, stop.getLoc())))
      return failure();
    stop.getResult().replaceAllUsesWith(func.getArgument(index));
    stop.erase();
    function.held.push_back(type);
  }
  return success();
}
