//===- DropMarkers.cpp - Remove ops that determine cotangents ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %y = stop_gradient %x        %x
//   %p = own_piece %x            sum over j: j = %t ? %x[j] : 0
//
//  1. Replace each op that only determines a cotangent by its input.
//  2. Replace each own_piece over the axis `tensor` by a kernel (Decompositions.h).
//
// O(ops).
//
//===----------------------------------------------------------------------===//

#include "Adjoints.h"
#include "fsdp/IR/Decompositions.h"
#include "fsdp/IR/StopGradient.h"
#include "fsdp/IR/TensorSplit.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isOverTensor(ArrayAttr axes) {
  return axes.size() == 1 && cast<StringAttr>(axes[0]).getValue() == tensorAxis;
}

BlockArgument fsdp::findCoordinate(Operation *op, StringRef axis) {
  auto func = op->getParentOfType<func::FuncOp>();
  for (BlockArgument argument : func.getArguments()) {
    auto key = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), FSDPDialect::keyAttr);
    if (key && key.getValue() == axis)
      return argument;
  }
  return {};
}

static void lowerPiece(OwnPieceOp op) {
  OpBuilder b(op);
  int64_t size = op.getInput().getType().getDimSize(0);
  op.getResult().replaceAllUsesWith(buildOwnPart(b, op.getInput(), {0, {size}},
                                                 size / op.getResult().getType().getDimSize(0),
                                                 findCoordinate(op, tensorAxis)));
  op.erase();
}

void fsdp::dropMarkers(ModuleOp module) {
  module.walk([](Operation *op) {
    if (isa<StopGradientOp, ReduceCotangentOp, ShareCotangentOp>(op)) {
      op->replaceAllUsesWith(op->getOperands());
      op->erase();
    } else if (auto piece = dyn_cast<OwnPieceOp>(op); piece && isOverTensor(piece.getAxes())) {
      lowerPiece(piece);
    }
  });
}
