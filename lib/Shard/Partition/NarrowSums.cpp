//===- NarrowSums.cpp - Sums over ranks in the type of operands -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %p = %x · %w          : bf16 · bf16 -> f32      %p = %x · %w       : bf16 · bf16 -> f32
//   %o = all_reduce %p    : f32                     %r = map(%p) { truncf }         : bf16
//   %s = map(%b, %o) { extf, addf, truncf }         %o = all_reduce %r              : bf16
//                                                   %s = map(%b, %o) { extf, extf, addf, truncf }
//
// A product of narrow operands accumulates in f32. If all readers of a partial sum round to the
// type of the operands, a rank rounds its term before it sends it, and readers extend the sum. The
// adjoint then gathers cotangents in this type too. O(readers).
//
//===----------------------------------------------------------------------===//

#include "NarrowSums.h"
#include "../PrecisionPlan.h"

using namespace mlir;
using namespace mlir::fsdp;

FloatType fsdp::getTermType(Operation *op, Value partial) {
  if (!isProduct(op) || !isFloat32Tensor(partial))
    return {};
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(op->getOperand(0)));
  if (!type || type.getWidth() != 16 || getElementTypeOrSelf(op->getOperand(1)) != type)
    return {};
  bool areRounded = llvm::all_of(partial.getUses(), [&](OpOperand &use) {
    auto map = dyn_cast<linalg::GenericOp>(use.getOwner());
    return map && map.getNumReductionLoops() == 0 && map.isDpsInput(&use) &&
           llvm::all_of(map.getResultTypes(),
                        [&](Type result) { return getElementTypeOrSelf(result) == type; });
  });
  return areRounded ? type : FloatType();
}

Value fsdp::roundTerm(OpBuilder &b, Value partial, FloatType type) {
  auto tensor = cast<RankedTensorType>(partial.getType());
  Location loc = partial.getLoc();
  Value empty = tensor::EmptyOp::create(b, loc, tensor.getShape(), type);
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(tensor.getRank()));
  SmallVector<utils::IteratorType> loops(tensor.getRank(), utils::IteratorType::parallel);
  auto round = [&](OpBuilder &nested, Location at, ValueRange args) {
    linalg::YieldOp::create(nested, at,
                            arith::TruncFOp::create(nested, at, type, args[0]).getResult());
  };
  return linalg::GenericOp::create(b, loc, empty.getType(), partial, empty, maps, loops, round)
      .getResult(0);
}

void fsdp::readNarrowSum(linalg::GenericOp map, Value partial, Value sum) {
  Type type = getElementTypeOrSelf(sum);
  OpBuilder b = OpBuilder::atBlockBegin(map.getBody());
  for (OpOperand *operand : map.getDpsInputOperands()) {
    if (operand->get() != partial)
      continue;
    operand->set(sum);
    BlockArgument arg = map.getMatchingBlockArgument(operand);
    arg.setType(type);
    auto wide = arith::ExtFOp::create(b, arg.getLoc(), b.getF32Type(), arg);
    arg.replaceAllUsesExcept(wide, wide);
    for (Operation *user : llvm::make_early_inc_range(wide->getUsers()))
      if (isa<arith::TruncFOp>(user) && user->getResultTypes()[0] == type) {
        user->replaceAllUsesWith(ValueRange(arg));
        user->erase();
      }
    if (wide->use_empty())
      wide.erase();
  }
}

bool fsdp::isIdentity(linalg::GenericOp map) {
  return isMove(map) && map.getBody()->without_terminator().empty() &&
         llvm::all_of(map.getIndexingMapsArray(), [](AffineMap m) { return m.isIdentity(); });
}

bool fsdp::isRounding(Operation *op) {
  auto map = dyn_cast<linalg::GenericOp>(op);
  if (!map || map.getNumDpsInputs() != 1 || map.getNumReductionLoops() != 0 ||
      !map.getMatchingIndexingMap(map.getDpsInputOperand(0)).isIdentity())
    return false;
  auto cast = map.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::TruncFOp>();
  return cast && cast.getIn() == map.getBody()->getArgument(0);
}
