//===- AttentionShape.cpp - Sizes and bounds of attention kernels --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

Shape attention::getShape(RankedTensorType q, RankedTensorType k, RankedTensorType v) {
  return {q.getDimSize(0), q.getDimSize(1), k.getDimSize(1), q.getDimSize(1) / k.getDimSize(1),
          q.getDimSize(2), k.getDimSize(2), q.getDimSize(3), v.getDimSize(3)};
}

Site attention::siteOf(CodeBuilder &b, const Head &head) {
  return {head.batch, head.head, b.constant(0), b.constant(0), {}, {}, 0};
}

SmallVector<Value> attention::emitBounds(CodeBuilder &b, const TileRange &range,
                                         const ScoreFunction &mask,
                                         const ScoreFunction::Values &unit, const Head &head,
                                         Value first, Value last) {
  auto index = [&](Value v) -> Value {
    return arith::IndexCastOp::create(b, b.loc, b.getIndexType(), v);
  };
  auto scalar = [&](Value v) -> Value {
    ScoreFunction::Values values = unit;
    Value emitted = mask.emit(b, v, siteOf(b, head), values);
    if (v.getType().isIndex())
      return arith::IndexCastOp::create(b, b.loc, v.getType(), emitted);
    return emitted.getType() == v.getType()
               ? emitted
               : Value(arith::ExtSIOp::create(b, b.loc, v.getType(), emitted));
  };
  TileSymbols<Value> symbols{index(first), index(last), index(head.batch), index(head.head),
                             scalar};
  SmallVector<Value> bounds;
  for (const TileExpr &expr : {range.begin, range.fullBegin, range.fullEnd, range.end})
    bounds.push_back(
        arith::IndexCastOp::create(b, b.loc, b.getI64Type(), expr.emit(b, b.loc, symbols)));
  return bounds;
}
