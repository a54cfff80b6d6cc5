//===- Segments.cpp - Steps that one phase computes together ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Segments.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::fsdp;

void fsdp::eraseWithGlobals(func::FuncOp &function) {
  if (!function)
    return;
  auto module = function->getParentOfType<ModuleOp>();
  std::string prefix = function.getName().str() + ".";
  for (auto global : llvm::make_early_inc_range(module.getOps<memref::GlobalOp>()))
    if (global.getName().starts_with(prefix))
      global.erase();
  function.erase();
  function = {};
}

void fsdp::generaliseNamedOps(func::FuncOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  for (auto op : llvm::make_early_inc_range(kernel.getOps<linalg::LinalgOp>())) {
    if (isa<linalg::GenericOp, linalg::FillOp>(op) || linalg::isaContractionOpInterface(op))
      continue;
    rewriter.setInsertionPoint(op);
    (void)linalg::generalizeNamedOp(rewriter, op);
  }
}

bool fsdp::mayShareSegment(const Step &before, const Step &step) {
  if (before.kind == StepKind::Scatter || step.kind == StepKind::Scatter)
    return false;
  if (before.kind == StepKind::ColumnReduction || step.kind == StepKind::ColumnReduction)
    return before.kind == step.kind && before.op == step.op;
  return true;
}

std::optional<SmallVector<int64_t>> fsdp::getColumnShape(const Step &step, ArrayRef<int64_t> rows) {
  ArrayRef<int64_t> shape = step.getType().getShape();
  if (shape.take_front(rows.size()) != rows)
    return std::nullopt;
  if (!step.isReduction())
    return SmallVector<int64_t>(shape.drop_front(rows.size()));
  if (ShapedType::getNumElements(shape.drop_front(rows.size())) != 1)
    return std::nullopt;
  return getReducedShape(step);
}

SmallVector<AffineExpr> fsdp::valueIndices(const Step &step, ArrayRef<AffineExpr> row,
                                           ArrayRef<AffineExpr> column, AffineExpr zero) {
  SmallVector<AffineExpr> indices(row);
  if (!step.isReduction())
    llvm::append_range(indices, column);
  indices.resize(step.getType().getRank(), zero);
  return indices;
}

SmallVector<AffineExpr> fsdp::loopIndices(const Step &step, ArrayRef<AffineExpr> row,
                                          ArrayRef<AffineExpr> column, AffineExpr zero) {
  linalg::GenericOp op = step.op;
  SmallVector<AffineExpr> loops(op.getNumLoops());
  AffineMap map = op.getIndexingMapMatchingResult(op->getResult(step.result));
  for (auto [position, expr] : llvm::enumerate(map.getResults()))
    loops[cast<AffineDimExpr>(expr).getPosition()] = position < row.size() ? row[position] : zero;
  unsigned next = 0;
  for (auto [position, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      loops[position] = column[next++];
  return loops;
}

SmallVector<ArrayRef<Step>> fsdp::formGroups(ArrayRef<Step> segment, ArrayRef<int64_t> rows,
                                             ArrayRef<Step> all) {
  auto shapeOf = [&](const Step &step) { return *getColumnShape(step, rows); };
  SmallVector<ArrayRef<Step>> groups;
  size_t begin = 0;
  for (size_t i = 1; i <= segment.size(); ++i) {
    bool joins = i < segment.size() && shapeOf(segment[i]) == shapeOf(segment[begin]);
    for (size_t j = begin; joins && j < i; ++j)
      joins = !readsValue(segment[i], segment[j].value, all);
    if (joins)
      continue;
    groups.push_back(segment.slice(begin, i - begin));
    begin = i;
  }
  return groups;
}
