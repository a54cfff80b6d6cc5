//===- TensorSum.cpp - Sums of the elements of one tensor -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/TensorSum.h"
#include "fsdp/IR/Widening.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns true if the body adds its first argument, extended to f32 or not, to its second one.
static bool addsInput(Block &body) {
  auto sum = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum || !sum.getType().isF32())
    return false;
  auto isInput = [&](Value v) {
    if (auto extension = v.getDefiningOp<arith::ExtFOp>())
      v = extension.getIn();
    return v == body.getArgument(0);
  };
  Value total = body.getArgument(1);
  return (sum.getLhs() == total && isInput(sum.getRhs())) ||
         (sum.getRhs() == total && isInput(sum.getLhs()));
}

std::optional<TensorSum> fsdp::matchTensorSum(Value result) {
  auto op = result.getDefiningOp<linalg::GenericOp>();
  if (!op || op.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
      op.getNumReductionLoops() == 0 || !addsInput(*op.getBody()))
    return std::nullopt;
  AffineMap in = op.getIndexingMapsArray()[0], out = op.getIndexingMapsArray()[1];
  if (!in.isPermutation() || !out.isProjectedPermutation())
    return std::nullopt;
  TensorSum sum{op, op.getInputs()[0], op.getDpsInits()[0], {}};
  AffineMap dimOfLoop = inversePermutation(in);
  for (AffineExpr loop : out.getResults())
    sum.kept.push_back(dimOfLoop.getDimPosition(cast<AffineDimExpr>(loop).getPosition()));
  auto widening = sum.source.getDefiningOp<linalg::GenericOp>();
  if (widening && isWideningInPlace(widening))
    sum.source = widening.getInputs()[0];
  return sum;
}

/// Returns true if both tensors are the same value, or equal slices of the same value.
static bool isSameTensor(Value a, Value b) {
  auto one = a.getDefiningOp<tensor::ExtractSliceOp>(),
       other = b.getDefiningOp<tensor::ExtractSliceOp>();
  return a == b || (one && other && one->getOperands() == other->getOperands() &&
                    one->getAttrDictionary() == other->getAttrDictionary() &&
                    one.getType() == other.getType());
}

std::optional<unsigned> fsdp::findSummedFactor(linalg::ContractOp contract, const TensorSum &sum) {
  SmallVector<AffineMap> maps = cast<linalg::LinalgOp>(*contract).getIndexingMapsArray();
  if (!llvm::all_of(maps, [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  for (unsigned factor : {0, 1}) {
    if (!isSameTensor(contract->getOperand(factor), sum.source))
      continue;
    bool matches = true;
    for (unsigned d = 0; d < maps[factor].getNumResults(); ++d) {
      unsigned loop = maps[factor].getDimPosition(d);
      bool isKept = llvm::is_contained(sum.kept, static_cast<int64_t>(d)),
           isInOther = maps[1 - factor].isFunctionOfDim(loop),
           isInResult = maps[2].isFunctionOfDim(loop);
      matches &= isKept ? isInResult && !isInOther : isInOther && !isInResult;
    }
    if (matches)
      return factor;
  }
  return std::nullopt;
}
