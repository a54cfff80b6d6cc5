//===- AttentionContributions.cpp - Contributions of score_grad to gradients --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttentionContributions.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;

SmallVector<CapturedFloat> attention::collectCapturedFloats(AttentionGradOp op) {
  SmallVector<CapturedFloat> floats;
  for (Value capture : op.getCaptures())
    if (auto type = cast<RankedTensorType>(capture.getType());
        isa<FloatType>(type.getElementType()))
      floats.push_back({type, op.getDcaptures()[floats.size()]});
  return floats;
}

SmallVector<Contributed> attention::collectContributions(AttentionGradOp op) {
  SmallVector<Contributed> contributions;
  if (op.getScoreGrad().empty())
    return contributions;
  SmallVector<int> numbers;
  int floats = 0;
  for (Value capture : op.getCaptures())
    numbers.push_back(
        isa<FloatType>(cast<RankedTensorType>(capture.getType()).getElementType()) ? floats++ : -1);
  RegionDependence dependences(op.getScoreGrad());
  for (ContributeOp c : op.getScoreGrad().front().getOps<ContributeOp>()) {
    int number = numbers[cast<BlockArgument>(c.getCapture()).getArgNumber() - leadingOfGrad - 4];
    if (op.getDcaptures()[number].use_empty())
      continue;
    Dependence where = Dependence::None;
    for (Value index : c.getIndices())
      where = where | dependences.of(index);
    contributions.push_back({c, unsigned(number), where});
  }
  return contributions;
}
