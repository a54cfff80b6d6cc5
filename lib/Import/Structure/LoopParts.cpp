//===- LoopParts.cpp - Loops split into parts for views ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Structure/LoopParts.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;

AffineExpr LoopParts::getLoop(unsigned loop, int64_t extent) {
  if (loops.size() <= loop)
    loops.resize(loop + 1);
  if (loops[loop].empty()) {
    loops[loop].push_back(extents.size());
    extents.push_back(extent);
  }
  AffineExpr at = getAffineConstantExpr(0, context);
  for (unsigned part : loops[loop])
    at = at * extents[part] + getAffineDimExpr(part, context);
  return at;
}

void LoopParts::split(unsigned part, int64_t inner) {
  unsigned fresh = extents.size();
  extents[part] /= inner;
  extents.push_back(inner);
  for (SmallVector<unsigned> &parts : loops)
    if (auto *at = llvm::find(parts, part); at != parts.end())
      parts.insert(at + 1, fresh);
}

/// Appends the terms of factor · expr. Returns false if `expr` is not a linear combination of
/// parts.
static bool collect(AffineExpr expr, int64_t factor, SmallVectorImpl<LoopParts::Term> &terms) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue() == 0;
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    terms.push_back({dim.getPosition(), factor});
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (expr.getKind() == AffineExprKind::Add)
    return collect(binary.getLHS(), factor, terms) && collect(binary.getRHS(), factor, terms);
  auto by = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return expr.getKind() == AffineExprKind::Mul && by &&
         collect(binary.getLHS(), factor * by.getValue(), terms);
}

std::optional<SmallVector<LoopParts::Term>> LoopParts::termsOf(AffineExpr coordinate,
                                                               int64_t extent) const {
  SmallVector<Term> terms;
  if (!coordinate || !collect(coordinate, 1, terms))
    return std::nullopt;
  llvm::erase_if(terms, [&](const Term &t) { return extents[t.part] == 1; });
  llvm::sort(terms, [](const Term &a, const Term &b) { return a.stride > b.stride; });
  int64_t covered = 1;
  for (const Term &term : llvm::reverse(terms)) {
    if (term.stride != covered)
      return std::nullopt;
    covered *= extents[term.part];
  }
  return covered == extent ? std::optional(terms) : std::nullopt;
}

std::optional<Point> LoopParts::throughReshape(const Point &point,
                                               std::optional<Split> &needed) const {
  Operation *op = point.isTensor() ? point.value.getDefiningOp() : nullptr;
  if (!isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return std::nullopt;
  Value source = op->getOperand(0);
  ArrayRef<int64_t> from = cast<RankedTensorType>(point.value.getType()).getShape();
  ArrayRef<int64_t> to = cast<RankedTensorType>(source.getType()).getShape();
  // Collect every part with its stride in elements of the flattened tensor.
  SmallVector<Term> flat;
  int64_t stride = 1;
  for (auto [coordinate, extent] : llvm::reverse(llvm::zip_equal(point.at, from))) {
    auto terms = termsOf(coordinate, extent);
    if (!terms)
      return std::nullopt;
    for (const Term &term : *terms)
      flat.push_back({term.part, term.stride * stride});
    stride *= extent;
  }
  Point moved{source, SmallVector<AffineExpr>(to.size(), getAffineConstantExpr(0, context))};
  for (const Term &term : flat) {
    // Number of elements per index of dimension d (product of the sizes of all later dimensions).
    int64_t size = 1;
    for (unsigned d = to.size(); d-- > 0; size *= to[d]) {
      int64_t end = size * to[d];
      if (term.stride < size || term.stride >= end)
        continue;
      int64_t extent = extents[term.part];
      if (term.stride % size != 0)
        return std::nullopt;
      // A part that extends from dimension d into the next outer dimension must be split.
      if (term.stride * extent > end) {
        if (end % term.stride == 0 && extent % (end / term.stride) == 0)
          needed = Split{term.part, end / term.stride};
        return std::nullopt;
      }
      moved.at[d] = moved.at[d] + getAffineDimExpr(term.part, context) * (term.stride / size);
    }
  }
  return moved;
}
