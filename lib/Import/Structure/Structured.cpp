//===- Structured.cpp - Classification of structured ops --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Structure/Structured.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

bool fsdp::isParallel(linalg::LinalgOp op) { return op.getNumParallelLoops() == op.getNumLoops(); }

bool fsdp::isCopy(linalg::GenericOp op) {
  return op.getNumDpsInputs() == 1 && op.getNumDpsInits() == 1 && isParallel(op) &&
         op->getNumResults() == 1 &&
         op.getBody()->getTerminator()->getOperand(0) == op.getBody()->getArgument(0) &&
         op.getIndexingMapsArray()[1].isPermutation();
}

bool fsdp::isContraction(linalg::LinalgOp op) {
  if (isa<linalg::ContractOp>(op.getOperation()))
    return true;
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || op->getNumResults() != 1 ||
      !linalg::isaContractionOpInterface(op))
    return false;
  FailureOr<linalg::ContractionDimensions> dims = linalg::inferContractionDims(op);
  if (failed(dims) || dims->m.empty() || dims->n.empty() || dims->k.empty())
    return false;
  for (Value operand : op->getOperands())
    if (!isa<FloatType>(getElementTypeOrSelf(operand.getType())))
      return false;
  // linalg.contract treats every loop that does not occur in the output map as a reduction.
  for (auto [d, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
    if ((iterator == utils::IteratorType::reduction) ==
        op.getIndexingMapsArray()[2].isFunctionOfDim(d))
      return false;
  return true;
}

bool fsdp::boundsAllLoops(ArrayRef<AffineMap> maps, MLIRContext *context) {
  return maps.front().getNumDims() == 0 ||
         inversePermutation(concatAffineMaps(maps, context)) != AffineMap();
}

TypedAttr fsdp::uniformConstant(Value tensor) {
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    tensor = fill.getInputs()[0];
  Attribute value;
  if (!matchPattern(tensor, m_Constant(&value)))
    return nullptr;
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    return dense.isSplat() ? dyn_cast<TypedAttr>(dense.getSplatValue<Attribute>()) : nullptr;
  return isa<FloatAttr, IntegerAttr>(value) ? cast<TypedAttr>(value) : nullptr;
}
