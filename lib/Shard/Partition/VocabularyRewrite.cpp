//===- VocabularyRewrite.cpp - Own rows and classes of a rank ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %e = gather_rows %table[%ids]      %own = %ids mod R        table: R rows of the rank
//                                      %r = gather_rows %table[%own]
//                                      %p = %ids div R = %t ? %r : 0
//                                      %e = all_reduce %p sum
//   %l = cross_entropy %z, %ids        %l = cross_entropy %z, %ids classes %t over @mesh ["tensor"]
//
// Implements the parts of SplitRewrite.h that only a vocabulary needs, which the axis `tensor`
// splits. The argument %t with `fsdp.key = "tensor"` contains the rank's coordinate.
//
//  1. A lookup reads a row for each id, of which only the ids of the rank keep theirs. The modulo
//     distributes the other ids over the rows, so that their zero cotangents are not all added to
//     one row. Each element of the sum has one term that is not zero, so that it is exact.
//  2. The cross-entropy gets the coordinate. DecomposeNamedOps.cpp adds over the ranks.
//
//===----------------------------------------------------------------------===//

#include "SplitRewrite.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Builds a constant or a conversion of type i64.
static Value buildI64(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
}
static Value buildI64(OpBuilder &b, Location loc, Value value) {
  unsigned width = value.getType().getIntOrFloatBitWidth();
  if (width < 64)
    return arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
  return width > 64 ? Value(arith::TruncIOp::create(b, loc, b.getI64Type(), value)) : value;
}

/// Replaces the ids of a lookup by those of the rank's own rows, and sets the rows of ids of other
/// ranks to 0.
void SplitRewrite::maskRows(GatherRowsOp op) {
  Location loc = op.getLoc();
  Value ids = op.getIds(), found = op.getResult();
  auto type = cast<RankedTensorType>(found.getType());
  auto idsType = cast<RankedTensorType>(ids.getType());
  int64_t rows = cast<RankedTensorType>(op.getTable().getType()).getDimSize(0),
          rank = type.getRank();
  AffineMap all = b.getMultiDimIdentityMap(rank), ofIds = b.getMultiDimIdentityMap(rank - 1),
            perRow = all.dropResult(rank - 1), scalar = AffineMap::get(rank, 0, b.getContext());
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  b.setInsertionPoint(op);
  Value ownIds = tensor::EmptyOp::create(b, loc, idsType.getShape(), b.getI64Type());
  ownIds =
      linalg::GenericOp::create(b, loc, ownIds.getType(), ids, ownIds, ArrayRef{ofIds, ofIds},
                                ArrayRef(loops).drop_back(),
                                [&](OpBuilder &at, Location, ValueRange args) {
                                  Value own = arith::RemSIOp::create(
                                      at, loc, buildI64(at, loc, args[0]), buildI64(at, loc, rows));
                                  linalg::YieldOp::create(at, loc, own);
                                })
          .getResult(0);
  op.getIdsMutable().assign(ownIds);
  b.setInsertionPointAfter(op);
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  auto masked = linalg::GenericOp::create(
      b, loc, type, ValueRange{found, ids, coordinate}, empty, ArrayRef{all, perRow, scalar, all},
      loops, [&](OpBuilder &at, Location, ValueRange args) {
        Value owner =
            arith::DivSIOp::create(at, loc, buildI64(at, loc, args[1]), buildI64(at, loc, rows));
        Value isOwn = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, owner, args[2]);
        Value zero = arith::ConstantOp::create(at, loc, at.getZeroAttr(type.getElementType()));
        Value row = arith::SelectOp::create(at, loc, isOwn, args[0], zero);
        linalg::YieldOp::create(at, loc, row);
      });
  found.replaceAllUsesExcept(masked.getResult(0), masked);
}

/// Lets a cross-entropy read a slice of the classes.
void SplitRewrite::shareClasses(CrossEntropyOp op) {
  op.getCoordinateMutable().assign(coordinate);
  op.setMeshAttr(getMesh());
  op.setAxesAttr(getAxes());
}
