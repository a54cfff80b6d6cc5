//===- GemmMicroKernel.cpp - The register tile of a contraction --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The micro-kernel keeps its sums in mr × nv registers. In each step, it loads nv vectors of rhs.
// Then it broadcasts each of the mr values of lhs, multiplies it by the nv vectors, and adds the
// products to the sums of the row:
//
//              rhs   | b0 | b1 |
//      lhs  a0       | s  | s  |      s[r][v] = fma(a[r], b[v], s[r][v])
//           a1       | s  | s  |
//
// Each sum adds its products in the order of k, so the bits depend neither on the size of the tile
// nor on the number of lanes. The loop over steps is unrolled by two. If the number of steps is
// odd, the last step runs in a second loop. If the loop has parts (GemmPrefetch.cpp), the second
// loop also runs the steps that do not fill an iteration of each part.
//
//===----------------------------------------------------------------------===//

#include "GemmEmit.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

namespace {
class MicroKernel {
public:
  MicroKernel(CodeBuilder &b, const Plan &plan, Pointer lhs, Pointer rhs)
      : b(b), plan(plan), lhs(lhs), rhs(rhs) {
    accType = VectorType::get({plan.lanes}, plan.accType);
    stepType = VectorType::get({plan.lanes}, rhs.type);
  }
  SmallVector<Value> start(Pointer tile, Value stride, Value accumulate, TypedAttr constant);
  SmallVector<Value> loop(Value from, Value to, int64_t steps, ValueRange sums,
                          function_ref<void(Value)> beside);
  SmallVector<Value> loopOfParts(Value turns, ValueRange sums, const Beside &beside);
  void store(ValueRange sums, Pointer tile, Value stride);

private:
  void step(Value k, SmallVector<Value> &sums);
  Value multiplyAdd(Value left, Value right, Value sum);
  Pointer tileVector(Pointer tile, Value stride, int64_t r, int64_t v) {
    return b.shift(tile, b.add(b.mul(stride, r), v * plan.lanes));
  }

  CodeBuilder &b;
  const Plan &plan;
  Pointer lhs, rhs;
  VectorType accType, stepType;
};
} // namespace

SmallVector<Value> MicroKernel::start(Pointer tile, Value stride, Value accumulate,
                                      TypedAttr constant) {
  SmallVector<Type> types(plan.mr * plan.nv, accType);
  auto choice = scf::IfOp::create(b, b.loc, types, accumulate, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  SmallVector<Value> loaded;
  for (int64_t r = 0; r < plan.mr; ++r)
    for (int64_t v = 0; v < plan.nv; ++v)
      loaded.push_back(b.load(accType, tileVector(tile, stride, r, v)));
  scf::YieldOp::create(b, b.loc, loaded);
  b.setInsertionPointToStart(choice.elseBlock());
  Value value = arith::ConstantOp::create(b, b.loc, DenseElementsAttr::get(accType, constant));
  scf::YieldOp::create(b, b.loc, SmallVector<Value>(types.size(), value));
  return llvm::to_vector_of<Value>(choice.getResults());
}

Value MicroKernel::multiplyAdd(Value left, Value right, Value sum) {
  if (plan.arithmetic != Arithmetic::Bf16Dot)
    return LLVM::FMAOp::create(b, b.loc, left, right, sum);
  auto pairs = VectorType::get({2 * plan.lanes}, b.getBF16Type());
  left = vector::BitCastOp::create(b, b.loc, pairs, left);
  right = vector::BitCastOp::create(b, b.loc, pairs, right);
  return LLVM::CallIntrinsicOp::create(b, b.loc, accType,
                                       b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                                       ValueRange{sum, left, right})
      .getResult(0);
}

void MicroKernel::step(Value k, SmallVector<Value> &sums) {
  SmallVector<Value> right;
  for (int64_t v = 0; v < plan.nv; ++v)
    right.push_back(b.load(stepType, b.shift(rhs, b.add(b.mul(k, plan.nr), v * plan.lanes))));
  for (int64_t r = 0; r < plan.mr; ++r) {
    Value left = b.splat(b.load(lhs.type, b.shift(lhs, b.add(b.mul(k, plan.mr), r))), plan.lanes);
    for (int64_t v = 0; v < plan.nv; ++v) {
      Value &sum = sums[r * plan.nv + v];
      sum = multiplyAdd(left, right[v], sum);
    }
  }
}

SmallVector<Value> MicroKernel::loop(Value from, Value to, int64_t steps, ValueRange sums,
                                     function_ref<void(Value)> beside) {
  auto op = scf::ForOp::create(b, b.loc, from, to, b.constant(steps), sums);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  SmallVector<Value> values = llvm::to_vector_of<Value>(op.getRegionIterArgs());
  if (beside)
    beside(op.getInductionVar());
  for (int64_t i = 0; i < steps; ++i)
    step(b.add(op.getInductionVar(), i), values);
  scf::YieldOp::create(b, b.loc, values);
  return llvm::to_vector_of<Value>(op.getResults());
}

/// Emits Plan::parts loops of `turns` iterations each.
SmallVector<Value> MicroKernel::loopOfParts(Value turns, ValueRange sums, const Beside &beside) {
  Value perPart = b.mul(turns, microUnroll);
  return b.loop(b.constant(0), b.constant(plan.parts), 1, sums, [&](Value part, ValueRange sums) {
    beside.eachPart(part);
    Value first = b.mul(part, perPart);
    return loop(first, b.add(first, perPart), microUnroll, sums,
                [&](Value k) { beside.eachTurn({part, b.div(b.sub(k, first), microUnroll), k}); });
  });
}

void MicroKernel::store(ValueRange sums, Pointer tile, Value stride) {
  for (int64_t r = 0; r < plan.mr; ++r)
    for (int64_t v = 0; v < plan.nv; ++v)
      b.store(sums[r * plan.nv + v], tileVector(tile, stride, r, v));
}

void gemm::emitMicroKernel(CodeBuilder &b, const Plan &plan, Pointer lhs, Pointer rhs, Value steps,
                           Pointer tile, Value tileStride, Value accumulate, TypedAttr start,
                           const Beside &beside) {
  MicroKernel micro(b, plan, lhs, rhs);
  SmallVector<Value> sums = micro.start(tile, tileStride, accumulate, start);
  int64_t unit = plan.parts * microUnroll;
  Value turns = b.div(steps, unit), whole = b.mul(turns, unit);
  auto eachTurn = [&](Value k) { beside.eachTurn({b.constant(0), b.div(k, microUnroll), k}); };
  function_ref<void(Value)> optional = eachTurn;
  sums = plan.parts > 1 ? micro.loopOfParts(turns, sums, beside)
                        : micro.loop(b.constant(0), whole, microUnroll, sums,
                                     beside.eachTurn ? optional : nullptr);
  sums = micro.loop(whole, steps, 1, sums, nullptr);
  micro.store(sums, tile, tileStride);
}

void gemm::emitTileKernel(CodeBuilder &b, const Plan &plan, Pointer lhs, Pointer rhs, Value steps,
                          Pointer tile, Value tileStride, Value accumulate, TypedAttr start,
                          function_ref<void(Value)> beside) {
  amx::Product product;
  product.rowTiles = plan.mr / tileSize;
  product.colTiles = plan.nr / tileSize;
  product.left = lhs;
  product.leftRow = tileSize;
  product.leftTile = tileSize * tileSize;
  product.leftStep = plan.mr;
  product.leftSlice = plan.sliceSize(plan.mr);
  product.right = rhs;
  product.rightStep = plan.nr;
  product.rightSlice = plan.sliceSize(plan.nr);
  product.slices = plan.slices;
  product.sums = tile;
  product.sumRow = tileStride;
  product.streamsRight = true;
  product.emulated = plan.emulatesTiles;
  amx::emitProduct(b, product, steps, accumulate, start, beside);
}
