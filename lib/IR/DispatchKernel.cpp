//===- DispatchKernel.cpp - From a dispatch to a kernel ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/DispatchKernel.h"
#include "fsdp/IR/Kernels.h"

using namespace mlir;
using namespace mlir::fsdp;

func::FuncOp fsdp::buildKernel(DispatchOp dispatch) {
  Builder builder(dispatch.getContext());
  Block &body = dispatch.getBody().front();
  for (auto [result, operand] : llvm::zip_equal(dispatch.getResults(), dispatch.getInplace()))
    if (operand < 0)
      body.addArgument(result.getType(), result.getLoc());
  auto type = builder.getFunctionType(body.getArgumentTypes(), dispatch.getResultTypes());
  auto kernel = func::FuncOp::create(dispatch.getLoc(), "k", type);
  kernel.setPrivate();
  kernel->setAttr(kernelAttr, builder.getUnitAttr());
  if (Attribute kind = dispatch->getAttr(dispatchKindAttr))
    kernel->setAttr(kindAttr, kind);
  unsigned destination = dispatch.getNumOperands();
  for (auto [result, operand] : llvm::enumerate(dispatch.getInplace()))
    kernel.setArgAttr(operand < 0 ? destination++ : operand, operand < 0 ? outAttr : inoutAttr,
                      builder.getI64IntegerAttr(result));
  kernel.getBody().takeBody(dispatch.getBody());
  auto yield = cast<YieldOp>(kernel.getBody().front().getTerminator());
  OpBuilder atEnd(yield);
  func::ReturnOp::create(atEnd, yield.getLoc(), yield.getValues());
  yield.erase();
  return kernel;
}
