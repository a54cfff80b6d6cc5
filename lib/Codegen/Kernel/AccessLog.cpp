//===- AccessLog.cpp - Reads and writes of a phase --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AccessLog.h"

using namespace mlir;
using namespace mlir::fsdp;

void AccessLog::begin() {
  accesses.clear();
  stage = body = 0;
}

void AccessLog::finish(ArrayRef<Step> written) {
  for (const Step &step : written)
    for (BlockArgument destination : step.destinations)
      overwritten.insert(destination.getAsOpaquePointer());
}

void AccessLog::watch(EvaluationState &state) {
  state.onRead = [this](Value tensor, ArrayRef<AffineExpr> indices, bool precise) {
    if (isa<BlockArgument>(tensor))
      accesses.push_back(
          {tensor, SmallVector<AffineExpr>(indices), false, precise, false, stage, body});
  };
}

void AccessLog::watchRow(EvaluationState &state, ArrayRef<Step> segment,
                         SmallVector<AffineExpr> rowIndices) {
  llvm::SmallPtrSet<void *, 8> own;
  for (const Step &step : segment)
    if (!isa<BlockArgument>(step.value))
      own.insert(step.value.getAsOpaquePointer());
  state.onRead = [this, &state, own, rowIndices](Value tensor, ArrayRef<AffineExpr> indices,
                                                 bool precise) {
    bool sameRow = precise && indices.size() >= rowIndices.size();
    for (size_t i = 0; sameRow && i < rowIndices.size(); ++i)
      sameRow = indices[i] == rowIndices[i];
    if (own.contains(tensor.getAsOpaquePointer())) {
      if (!sameRow && state.refusal.empty())
        state.refusal = "a value of another row";
    } else if (isa<BlockArgument>(tensor)) {
      accesses.push_back(
          {tensor, SmallVector<AffineExpr>(indices), false, precise, sameRow, stage, body});
    }
  };
}

void AccessLog::store(const Step &step, ArrayRef<AffineExpr> indices) {
  for (BlockArgument destination : step.destinations)
    accesses.push_back(
        {destination, SmallVector<AffineExpr>(indices), true, true, true, stage, body});
}

bool AccessLog::isSafeInPlace() const {
  for (const Access &read : accesses) {
    if (read.isStore)
      continue;
    if (overwritten.contains(read.tensor.getAsOpaquePointer()))
      return false;
    bool written = false, same = false;
    int64_t first = std::numeric_limits<int64_t>::max();
    for (const Access &store : accesses)
      if (store.isStore && store.tensor == read.tensor) {
        written = true;
        first = std::min(first, store.stage);
        same |= store.body == read.body && read.precise && store.indices == read.indices;
      }
    if (written && !same && !(read.sameRow && read.stage < first))
      return false;
  }
  return true;
}
