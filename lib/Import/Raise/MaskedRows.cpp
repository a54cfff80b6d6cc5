//===- MaskedRows.cpp - Analysis of fully masked rows -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two analyses that decide whether a mask with finite numbers may become mask_mod: whether
// score_mod may yield such numbers, and whether a constant mask table keeps a key in every row.
//
//===----------------------------------------------------------------------===//

#include "Raise/ScoreFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

// Looks for finite constants of at least 1e4 in magnitude, which may be added or subtracted, for
// constant tables with such elements or unknown values, and for float arguments that are not
// parameters. (-inf is always a mask.)
bool fsdp::mayMask(AttentionOp op) {
  auto isLow = [](const APFloat &v) {
    return v.isFinite() && std::abs(v.convertToDouble()) >= -masked;
  };
  for (auto constant : op.getScoreMod().getOps<arith::ConstantOp>())
    if (auto value = dyn_cast<FloatAttr>(constant.getValue()); value && isLow(value.getValue()))
      return true;
  return llvm::any_of(op.getCaptures(), [&](Value capture) {
    auto argument = dyn_cast<BlockArgument>(capture);
    auto func = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
    DenseFPElementsAttr table;
    if (matchPattern(capture, m_Constant(&table)))
      return llvm::any_of(table.getValues<APFloat>(), isLow);
    return isa<FloatType>(getElementTypeOrSelf(capture.getType())) &&
           (capture.getDefiningOp<arith::ConstantOp>() ||
            (func && !func.getArgAttr(argument.getArgNumber(), FSDPDialect::paramAttr)));
  });
}

/// Returns the element at `at` of a constant table of bits, through views and static slices;
/// nothing if the table is not constant.
static std::optional<bool> bitAt(Value table, SmallVector<int64_t> at) {
  for (Operation *op = table.getDefiningOp(); op; op = table.getDefiningOp()) {
    DenseIntElementsAttr bits;
    int64_t flat = 0;
    for (auto [coordinate, extent] :
         llvm::zip_equal(at, cast<RankedTensorType>(table.getType()).getShape()))
      flat = flat * extent + coordinate;
    if (matchPattern(op, m_Constant(&bits)))
      return !bits.getValues<APInt>()[flat].isZero();
    bool isView = isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
    auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
    if (!isView &&
        (!slice ||
         slice.getStaticOffsets().size() != static_cast<size_t>(slice.getSourceType().getRank()) ||
         llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic) ||
         llvm::any_of(slice.getStaticStrides(), ShapedType::isDynamic)))
      return std::nullopt;
    table = op->getOperand(0);
    ArrayRef<int64_t> shape = cast<RankedTensorType>(table.getType()).getShape();
    SmallVector<int64_t> source(shape.size());
    if (isView)
      for (unsigned d = shape.size(); d-- > 0; flat /= shape[d])
        source[d] = flat % shape[d];
    for (unsigned d = 0, next = 0; slice && d < shape.size(); ++d)
      source[d] = slice.getStaticOffsets()[d] +
                  (slice.getDroppedDims().test(d) ? 0 : at[next++] * slice.getStaticStrides()[d]);
    at = source;
  }
  return std::nullopt;
}

// Requires that the last index, and no other, is the key.
bool fsdp::isTableWithKeys(AttentionOp op) {
  Block &body = op.getMaskMod().front();
  auto extract = body.getTerminator()->getOperand(0).getDefiningOp<tensor::ExtractOp>();
  if (!extract || extract.getIndices().empty() ||
      extract.getIndices().back() != body.getArgument(3) ||
      llvm::is_contained(extract.getIndices().drop_back(), body.getArgument(3)))
    return false;
  Value table = op.getCaptures()[cast<BlockArgument>(extract.getTensor()).getArgNumber() - 4];
  ArrayRef<int64_t> shape = cast<RankedTensorType>(table.getType()).getShape();
  SmallVector<int64_t> at(shape.size(), 0);
  int64_t keys = shape.back(),
          rows = keys ? cast<RankedTensorType>(table.getType()).getNumElements() / keys : 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row;
    for (unsigned d = shape.size() - 1; d-- > 0; rest /= shape[d])
      at[d] = rest % shape[d];
    bool found = false;
    for (at.back() = 0; at.back() < keys && !found; ++at.back())
      if (std::optional<bool> bit = bitAt(table, at))
        found = *bit;
      else
        return false;
    if (!found)
      return false;
  }
  return rows > 0;
}
