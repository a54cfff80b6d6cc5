//===- SharedHeads.cpp - Heads of attention on several ranks ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %w → contract → %k → attention %q, %k, %v       2 heads of keys, T = 4: %w is shared
//                              the heads of a rank
//
// Walks back from the operands of each split attention to the last products before them. Their
// parameters are whole on each rank if several ranks have the same head of keys and values, or if
// attention is split alone (TensorSeeds.cpp). O(ops before attention).
//
//===----------------------------------------------------------------------===//

#include "SharedHeads.h"
#include "fsdp/IR/DiagnosticText.h"

using namespace mlir;
using namespace mlir::fsdp;

void fsdp::addParams(func::FuncOp func, Operation *product, Params &params) {
  for (Value operand : product->getOperands())
    if (BlockArgument param = findParameter(func, operand))
      params.insert(param);
}

Params fsdp::findParamsBefore(func::FuncOp func, ValueRange values) {
  Params params;
  llvm::SetVector<Value> before;
  before.insert_range(values);
  for (size_t i = 0; i < before.size(); ++i) {
    Operation *def = before[i].getDefiningOp();
    if (BlockArgument param = findParameter(func, before[i]))
      params.insert(param);
    else if (addsProducts(def))
      addParams(func, def, params);
    else if (def && !isa<AttentionOp>(def))
      before.insert_range(def->getOperands());
  }
  return params;
}

bool fsdp::dividesHeads(int64_t queries, int64_t keys, int64_t ranks) {
  return queries % ranks == 0 && (keys % ranks == 0 || ranks % keys == 0);
}

/// Returns why the parameters of operand `index` of a split attention are whole, or an empty text.
static std::string explain(AttentionOp op, unsigned index, const OpSplits &splits, bool isAlone,
                           int64_t ranks) {
  int64_t heads = op.getK().getType().getDimSize(1);
  if (isAlone)
    return "each rank computes all heads, and attention reads those of the rank" +
           (heads % ranks == 0
                ? std::string()
                : "; separate weights of queries, keys and values would be split, although the "
                  "ranks do not divide " +
                      describeCount(heads, "head", "heads") + " of keys and values");
  if (index > 0 && !splits.operands[index])
    return "attention has one head of keys and values, which each rank computes";
  if (index > 0 && splits.operands[index]->copies > 1)
    return "a rank reads 1 of " + std::to_string(heads) +
           " heads of keys and values, so that each head is computed on " +
           std::to_string(splits.operands[index]->copies) + " ranks";
  return "";
}

llvm::MapVector<BlockArgument, std::string>
fsdp::findSharedHeads(func::FuncOp func, const SplitGroup &group, bool all) {
  llvm::MapVector<BlockArgument, std::string> shared;
  for (auto &[op, splits] : group.ops) {
    auto attention = dyn_cast<AttentionOp>(op);
    if (!attention)
      continue;
    bool isAlone = group.isSliced(attention.getQ());
    if (isAlone && !all)
      continue;
    for (unsigned i = 0; i < 3; ++i)
      if (std::string why = explain(attention, i, splits, isAlone, group.getAxis().ranks);
          !why.empty())
        for (BlockArgument param : findParamsBefore(func, attention->getOperand(i)))
          if (!group.find(param))
            shared.insert({param, why});
  }
  return shared;
}
