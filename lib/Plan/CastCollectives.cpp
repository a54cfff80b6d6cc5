//===- CastCollectives.cpp - Conversions beside collectives -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives move bytes without changing their type. A collective that converts is therefore
// replaced by a collective without conversion, and a kernel that converts the shard.
//
//   %w = fsdp.unshard %p : f32 -> bf16         %h = fsdp.dispatch (%p) truncf
//                                        =>    %w = fsdp.unshard %h : bf16 -> bf16
//
//   %s = fsdp.reduce_scatter %g : bf16 -> f32  %h = fsdp.reduce_scatter %g : bf16 -> bf16
//                                        =>    %s = fsdp.dispatch (%h) extf
//
// Takes O(collectives) time. The conversion is a separate kernel, and not fused with the kernel
// that computes the shard.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Plan/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_CASTCOLLECTIVESPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static Value convertScalar(OpBuilder &builder, Location loc, Value value, Type to) {
  if (value.getType().getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(builder, loc, to, value);
  if (value.getType().getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth())
    return arith::TruncFOp::create(builder, loc, to, value);
  // f16 and bf16 are converted through f32, which represents both exactly.
  Value wide = arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
  return arith::TruncFOp::create(builder, loc, to, wide);
}

/// Builds a dispatch that converts the 1-D `value` to elements of type `to`.
static Value convert(OpBuilder &builder, Location loc, Value value, Type to) {
  auto from = cast<RankedTensorType>(value.getType());
  auto type = RankedTensorType::get(from.getShape(), to);
  auto dispatch = DispatchOp::create(builder, loc, TypeRange(type), value, ArrayRef<int64_t>{-1});
  dispatch->setAttr("kind", builder.getStringAttr("map"));
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&dispatch.getBody(), {}, TypeRange(from), {loc});
  Value init = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  AffineMap identity = builder.getMultiDimIdentityMap(1);
  auto generic =
      linalg::GenericOp::create(builder, loc, TypeRange(type), body->getArgument(0), init,
                                ArrayRef<AffineMap>{identity, identity},
                                ArrayRef<utils::IteratorType>{utils::IteratorType::parallel},
                                [&](OpBuilder &b, Location l, ValueRange args) {
                                  linalg::YieldOp::create(b, l, convertScalar(b, l, args[0], to));
                                });
  YieldOp::create(builder, loc, generic.getResults());
  return dispatch.getResult(0);
}

namespace {

class CastCollectivesPass : public fsdp::impl::CastCollectivesPassBase<CastCollectivesPass> {
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (auto unshard = dyn_cast<UnshardOp>(op))
        castSource(unshard);
      else if (auto reduce = dyn_cast<ReduceScatterOp>(op))
        castTarget(reduce);
    });
  }

  void castSource(UnshardOp op) {
    if (op.getNumResults() == 0)
      return;
    Type to = cast<RankedTensorType>(op.getResult(0).getType()).getElementType();
    if (cast<RankedTensorType>(op.getShard().getType()).getElementType() == to)
      return;
    OpBuilder builder(op);
    op.getShardMutable().assign(convert(builder, op.getLoc(), op.getShard(), to));
    ++numCasts;
  }

  void castTarget(ReduceScatterOp op) {
    auto result = cast<RankedTensorType>(op.getShard().getType());
    if (op.getGrads().empty())
      return;
    Type from = cast<RankedTensorType>(op.getGrads()[0].getType()).getElementType();
    if (from == result.getElementType())
      return;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Value shard = op.getShard();
    shard.setType(RankedTensorType::get(result.getShape(), from));
    Value converted = convert(builder, op.getLoc(), shard, result.getElementType());
    shard.replaceAllUsesExcept(converted, converted.getDefiningOp());
    ++numCasts;
  }
};

} // namespace
