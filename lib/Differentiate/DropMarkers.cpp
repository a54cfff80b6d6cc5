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
//  2. Replace each own_piece over the axis `tensor` by a kernel. A slice of a buffer in an artifact
//     depends on the axes `shard` and `replicate` only.
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
  RankedTensorType piece = op.getResult().getType();
  int64_t size = piece.getDimSize(0), count = op.getInput().getType().getDimSize(0) / size;
  Value parts =
      tensor::ExpandShapeOp::create(b, op.getLoc(), piece.clone({count, size}), op.getInput(),
                                    ArrayRef<ReassociationIndices>{{0, 1}});
  op.getResult().replaceAllUsesWith(
      buildPick(b, parts, piece, /*loop=*/0, /*copies=*/1, findCoordinate(op, tensorAxis)));
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
