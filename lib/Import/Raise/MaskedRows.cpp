//===- MaskedRows.cpp - Scores and tables that mask -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Determines whether score_mod may yield finite numbers that act as a mask, and whether a constant
// table that is added to the scores is a mask. MaskEvaluator.cpp determines whether each row keeps
// a key.
//
//===----------------------------------------------------------------------===//

#include "Raise/ConstantElements.h"
#include "Raise/ScoreFunctions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

// Looks in score_mod for three kinds of values. The first kind is a finite constant of at least 1e4
// in magnitude. The second kind is a constant table whose elements are unknown or include a
// constant of the first kind. The third kind is a float argument of the function that is not a
// parameter. (-inf is always a mask.)
bool fsdp::mayMask(AttentionOp op) {
  auto isLow = [](const APFloat &v) {
    return v.isFinite() && std::abs(v.convertToDouble()) >= -masked;
  };
  for (auto constant : op.getScoreMod().getOps<arith::ConstantOp>())
    if (auto value = dyn_cast<FloatAttr>(constant.getValue()); value && isLow(value.getValue()))
      return true;
  return llvm::any_of(llvm::enumerate(op.getCaptures()), [&](auto numbered) {
    Value capture = numbered.value();
    if (op.getScoreMod().getArgument(5 + numbered.index()).use_empty())
      // score_mod does not read this captured tensor; only mask_mod or weight_mod may read it.
      return false;
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

MaskTable fsdp::classifyTable(Value table, double factor) {
  SmallVector<int64_t> first(cast<RankedTensorType>(table.getType()).getRank(), 0);
  if (!isa_and_nonnull<FloatAttr>(elementAt(table, first)))
    return MaskTable::None;
  while (!matchPattern(table, m_Constant()))
    table = table.getDefiningOp()->getOperand(0); // go back through a view or a slice
  DenseFPElementsAttr elements;
  if (!matchPattern(table, m_Constant(&elements)))
    return MaskTable::None;
  bool masksAny = false, isFinite = false;
  for (const APFloat &element : elements.getValues<APFloat>()) {
    if (element.isZero())
      continue;
    if (!(element.convertToDouble() * factor <= masked))
      return MaskTable::None;
    masksAny = true;
    isFinite |= element.isFinite();
  }
  return !masksAny ? MaskTable::None : isFinite ? MaskTable::Finite : MaskTable::Infinite;
}

DenseElementsAttr fsdp::keptElements(Value table) {
  auto type = cast<RankedTensorType>(table.getType());
  SmallVector<bool> kept(type.getNumElements());
  for (int64_t flat = 0, e = type.getNumElements(); flat < e; ++flat) {
    SmallVector<int64_t> at(type.getRank());
    int64_t rest = flat;
    for (int64_t d = type.getRank(); d-- > 0; rest /= type.getDimSize(d))
      at[d] = rest % type.getDimSize(d);
    kept[flat] = cast<FloatAttr>(elementAt(table, at)).getValue().isZero();
  }
  auto bit = IntegerType::get(table.getContext(), 1);
  return DenseElementsAttr::get(RankedTensorType::get(type.getShape(), bit), ArrayRef<bool>(kept));
}
