//===- ContractionAdjoint.cpp - Adjoints of products ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The cotangent of each input of a contraction is itself a contraction, with the indexing maps
// exchanged:
//
//   y[C] += a[A] · b[B]        ā[A] += ȳ[C] · b[B]        b̄[B] += a[A] · ȳ[C]
//
// No operand is transposed. The cotangent ȳ is first converted to the type of the operands, so that
// both factors of each product have the same type, such as bf16. The products accumulate in f32. If
// the input already has a cotangent and this cotangent is f32, the products accumulate into it
// (beta = 1).
//
// If a product reduces no loop (an outer product), StructuredAdjoint.cpp builds a map for it
// instead.
//
//===----------------------------------------------------------------------===//

#include "Adjoints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns `v` if it is a block argument, or the block argument whose extension (extf) is `v`.
/// Returns null for all other values.
static BlockArgument getWidenedArgument(Value v) {
  while (auto extended = v.getDefiningOp<arith::ExtFOp>())
    v = extended.getIn();
  return dyn_cast<BlockArgument>(v);
}

bool fsdp::isPlainContraction(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0)
    // Without a reduction loop, the op is a map.
    return false;
  if (!llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }) ||
      !llvm::all_of(op->getOperandTypes(), [](Type type) { return isa<RankedTensorType>(type); }))
    return false;
  Block &body = *op.getBody();
  auto sum = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum)
    return false;
  unsigned outSide = sum.getRhs() == body.getArgument(2) ? 1 : 0;
  auto product = sum->getOperand(1 - outSide).getDefiningOp<arith::MulFOp>();
  if (sum->getOperand(outSide) != body.getArgument(2) || !product)
    return false;
  BlockArgument l = getWidenedArgument(product.getLhs()), r = getWidenedArgument(product.getRhs());
  return (l == body.getArgument(0) && r == body.getArgument(1)) ||
         (l == body.getArgument(1) && r == body.getArgument(0));
}

/// Returns true if linalg.contract accepts the maps. Each loop of the output must be a loop of an
/// input. There must be a reduction loop. Each reduction loop must be a loop of both inputs.
static bool isContraction(AffineMap l, AffineMap r, AffineMap out) {
  bool reduces = false;
  for (unsigned d = 0; d < out.getNumDims(); ++d) {
    bool ofL = l.isFunctionOfDim(d), ofR = r.isFunctionOfDim(d), ofOut = out.isFunctionOfDim(d);
    if (ofOut ? !(ofL || ofR) : !(ofL && ofR))
      return false;
    reduces |= !ofOut;
  }
  return reduces;
}

bool fsdp::differentiateContraction(linalg::GenericOp op, Value g, unsigned index,
                                    Cotangents &cotangents) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap target = maps[index];
  maps[index] = maps[2];
  if (!isContraction(maps[0], maps[1], target))
    return false;
  OpBuilder &b = cotangents.b;
  Location loc = op.getLoc();
  Value operand = op.getDpsInputs()[index], other = op.getDpsInputs()[1 - index];
  auto widthOf = [](Value v) { return cast<FloatType>(getElementTypeOrSelf(v)).getWidth(); };
  Type factor = getElementTypeOrSelf(widthOf(operand) > widthOf(other) ? operand : other);
  if (widthOf(g) > factor.getIntOrFloatBitWidth())
    g = convertElements(b, loc, g, factor);

  Type work = getWorkingType(factor);
  Value previous = cotangents.take(operand);
  bool joins = previous && getElementTypeOrSelf(previous) == work;
  Value init = joins ? previous : buildZeros(b, loc, withElementType(operand.getType(), work));
  SmallVector<Value, 2> factors{other, other};
  factors[index] = g;
  ArrayAttr mapAttr = b.getAffineMapArrayAttr({maps[0], maps[1], target});
  auto product = linalg::ContractOp::create(b, loc, init.getType(), factors, init, mapAttr);
  cotangents.add(operand, product.getResult(0));
  if (previous && !joins)
    cotangents.add(operand, previous);
  return true;
}
