//===- Canonicalization.cpp - Canonical forms of the ops --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   shard(unshard(%s)) of one unit         ->  %s
//   a collective in a group of one rank    ->  its operand
//   gemm with beta 0 and a value as C      ->  gemm with an empty tensor as C
//   dispatch operand that is not read      ->  erased, unless a result is written over it
//   dispatch operand that occurs twice     ->  the second occurrence is erased
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/FSDP.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult ShardOp::canonicalize(ShardOp op, PatternRewriter &rewriter) {
  if (op.getParams().empty())
    return failure();
  auto unshard = op.getParams()[0].getDefiningOp<UnshardOp>();
  if (!unshard || unshard.getUnit() != op.getUnit() ||
      ValueRange(unshard.getParams()) != ValueRange(op.getParams()) ||
      unshard.getShard().getType() != op.getShard().getType())
    return failure();
  rewriter.replaceOp(op, unshard.getShard());
  return success();
}

/// Returns the number of ranks in the group of a collective. Returns 0 if the mesh does not exist.
template <typename Op>
static int64_t groupSize(Op op) {
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, op.getMeshAttr());
  if (!mesh)
    return 0;
  int64_t ranks = 1;
  for (auto axis : op.getAxes().template getAsRange<StringAttr>())
    ranks *= mesh.getAxisSize(axis.getValue());
  return ranks;
}

template <typename Op>
static LogicalResult dropSingleRankCollective(Op op, PatternRewriter &rewriter) {
  if (groupSize(op) != 1 || op.getInput().getType() != op.getResult().getType())
    return failure();
  rewriter.replaceOp(op, op.getInput());
  return success();
}

LogicalResult AllReduceOp::canonicalize(AllReduceOp op, PatternRewriter &rewriter) {
  return dropSingleRankCollective(op, rewriter);
}

LogicalResult AllGatherOp::canonicalize(AllGatherOp op, PatternRewriter &rewriter) {
  return dropSingleRankCollective(op, rewriter);
}

LogicalResult FlatReduceScatterOp::canonicalize(FlatReduceScatterOp op, PatternRewriter &rewriter) {
  return dropSingleRankCollective(op, rewriter);
}

LogicalResult OwnPieceOp::canonicalize(OwnPieceOp op, PatternRewriter &rewriter) {
  return dropSingleRankCollective(op, rewriter);
}

LogicalResult BroadcastOp::canonicalize(BroadcastOp op, PatternRewriter &rewriter) {
  return dropSingleRankCollective(op, rewriter);
}

LogicalResult ShiftOp::canonicalize(ShiftOp op, PatternRewriter &rewriter) {
  return dropSingleRankCollective(op, rewriter);
}

LogicalResult GemmOp::canonicalize(GemmOp op, PatternRewriter &rewriter) {
  if (!op.getBeta().isZero() || op.getC().getDefiningOp<tensor::EmptyOp>())
    return failure();
  auto type = cast<RankedTensorType>(op.getC().getType());
  Value empty =
      tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(), type.getElementType());
  rewriter.modifyOpInPlace(op, [&] { op.getCMutable().assign(empty); });
  return success();
}

LogicalResult DispatchOp::canonicalize(DispatchOp op, PatternRewriter &rewriter) {
  Block &body = op.getBody().front();
  auto isInplace = [&](unsigned operand) {
    return llvm::is_contained(op.getInplace(), int64_t(operand));
  };
  for (unsigned i = 0; i < op.getNumOperands(); ++i) {
    if (isInplace(i))
      continue;
    Value value = op.getOperand(i);
    BlockArgument same; // body argument for an earlier operand, which equals operand i
    for (unsigned j = 0; j < i && !same; ++j)
      if (op.getOperand(j) == value && !isInplace(j))
        same = body.getArgument(j);
    if (!body.getArgument(i).use_empty() && !same)
      continue;
    rewriter.modifyOpInPlace(op, [&] {
      if (same)
        rewriter.replaceAllUsesWith(body.getArgument(i), same);
      body.eraseArgument(i);
      op->eraseOperand(i);
      SmallVector<int64_t> inplace(op.getInplace());
      for (int64_t &operand : inplace)
        operand -= operand > static_cast<int64_t>(i);
      op.setInplace(inplace);
    });
    return success();
  }
  return failure();
}
