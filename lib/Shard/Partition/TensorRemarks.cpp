//===- TensorRemarks.cpp - Reports of what axis tensor splits ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A parameter is whole because the group of a product that reads it is whole. If the product
// computes queries, keys or values, or reads the result of attention, the reason is that of the
// attention: from the product alone, the split spreads to other ops first.
//
//     %y = contract %x, %w     %q = extract_slice %y     %o = attention %q, %k, %v
//                              reason of the product     reason of the attention
//
//===----------------------------------------------------------------------===//

#include "TensorRemarks.h"
#include "SharedHeads.h"
#include "fsdp/IR/DiagnosticText.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the parameters of the products before and after attention, and of the ops in between.
static Params findParamsAround(func::FuncOp func, AttentionOp attention) {
  Params params = findParamsBefore(func, attention->getOperands().take_front(3));
  llvm::SetVector<Value> after;
  after.insert(attention.getO());
  for (size_t i = 0; i < after.size(); ++i)
    for (Operation *user : after[i].getUsers()) {
      if (addsProducts(user))
        addParams(func, user, params);
      else if (!isa<AttentionOp>(user))
        after.insert_range(user->getResults());
    }
  return params;
}

void fsdp::remarkSplits(func::FuncOp func, const SplitGroup &group, ArrayRef<WholeGroup> whole,
                        int64_t ranks) {
  llvm::MapVector<BlockArgument, std::string> reasons = findSharedHeads(func, group, /*all=*/true);
  for (const WholeGroup &some : whole)
    if (auto attention = dyn_cast<AttentionOp>(some.op))
      for (BlockArgument param : findParamsAround(func, attention))
        reasons.insert({param, some.why});
  for (const WholeGroup &some : whole) {
    Params params;
    addParams(func, some.op, params);
    for (BlockArgument param : params)
      reasons.insert({param, some.why});
  }
  for (BlockArgument arg : func.getArguments()) {
    if (!func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr))
      continue;
    InFlightDiagnostic diag = emitRemark(arg.getLoc()) << describeSplitValue(func, arg)
                                                       << " of type " << arg.getType() << ": ";
    if (const TensorSplit *split = group.find(arg)) {
      diag << "dimension " << split->dim << " is split over axis 'tensor' of " << ranks << " ranks";
      if (split->blocks.size() > 1)
        diag << ", in " << split->blocks.size() << " blocks";
      continue;
    }
    diag << "whole on each rank of axis 'tensor'";
    if (auto reason = reasons.find(arg); reason != reasons.end())
      diag << ": " << reason->second;
  }
}

void fsdp::warnOfWholeAttention(ArrayRef<WholeGroup> whole, int64_t ranks) {
  auto attentions = llvm::to_vector(llvm::make_filter_range(
      whole, [](const WholeGroup &some) { return isa<AttentionOp>(some.op); }));
  if (attentions.empty())
    return;
  const WholeGroup &first = attentions.front();
  InFlightDiagnostic diag = emitWarning(first.op->getLoc())
                            << "axis 'tensor' of " << ranks << " ranks does not split "
                            << describeCount(attentions.size(), "attention", "attentions")
                            << ", so that each rank computes all heads";
  diag.attachNote(first.op->getLoc()) << "not split: " << first.why;
  diag.attachNote() << "to accept this, select the other parameters by "
                       "--tensor-parallel=FILE.json";
}
