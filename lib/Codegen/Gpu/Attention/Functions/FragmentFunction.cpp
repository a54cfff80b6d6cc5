//===- FragmentFunction.cpp - Score functions on fragments ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A lane holds a few rows and many columns of a tile. LLVM does not move loads over barriers, and
// cannot tell which values are equal for all elements of a row. Therefore this class decides where
// a value is computed. The place depends on the arguments of which the value is a function:
//
//   head     once, before all loops            slope[h]
//   row      for each row, before the loop     length[q]
//   column   for each column of a tile         document[k]
//   both     for each element
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Attention/Sm80Attention.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static SmallVector<Captured> collect(const GpuBuilder &b, ValueRange captures) {
  return llvm::map_to_vector(captures, [&](Value capture) {
    return Captured{b.binding(capture), cast<RankedTensorType>(capture.getType())};
  });
}

bool attention::readsTensors(Region &function) {
  return function.walk([](tensor::ExtractOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

bool attention::isFinite(Value value) { return value.getDefiningOp<RandomElementOp>() != nullptr; }

FragmentFunction::FragmentFunction(GpuBuilder &b, Region &region, unsigned scores,
                                   const Shape &shape, ValueRange captures, const Head &head)
    : function(region, scores, shape.extents(), collect(b, captures)), b(b), head(head) {
  if (!empty())
    function.emitUnit(b, siteOf(b, head), unit);
}

FragmentFunction::Values FragmentFunction::ofRow(Value row) const {
  Values values = unit;
  if (empty())
    return values;
  Site site = siteOf(b, head);
  site.q = b.to64(row);
  for (Value value : function.staged(Dependence::Row))
    function.emit(b, value, site, values);
  return values;
}

FragmentFunction::Values FragmentFunction::ofColumn(Value column) const {
  Values values = unit;
  if (empty())
    return values;
  Site site = siteOf(b, head);
  site.column = b.to64(column);
  for (Value value : function.staged(Dependence::Column))
    function.emit(b, value, site, values);
  return values;
}

Value FragmentFunction::emit(const Values &row, const Values &column, Value q, Value k,
                             ArrayRef<Value> scores) const {
  Values values = row;
  values.insert(column.begin(), column.end());
  return function.emit(b, function.result(), siteAt(q, k, scores), values);
}

Site FragmentFunction::siteAt(Value q, Value k, ArrayRef<Value> scores) const {
  return {head.batch, head.head, b.to64(q), b.to64(k), {}, llvm::to_vector(scores), 0};
}
