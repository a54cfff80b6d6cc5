//===- CodeBuilder.h - Short names for building loops -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A builder for code on pointers: 64-bit arithmetic, scf loops, vector loads and
// stores with and without masks. Private to the stage.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_CODEBUILDER_H
#define FSDP_LIB_CODEGEN_KERNEL_CODEBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::fsdp {

/// A place in memory: `index` elements of `type` after `base`.
struct Pointer {
  Value base;
  Type type;
  Value index;
};

class CodeBuilder : public OpBuilder {
public:
  CodeBuilder(Location loc, MLIRContext *context) : OpBuilder(context), loc(loc) {}

  Value constant(int64_t value);
  /// An integer of the type of `like`.
  Value constantLike(Value like, int64_t value);
  Value boolean(bool value);
  Value add(Value a, Value b);
  Value add(Value a, int64_t b) { return add(a, constantLike(a, b)); }
  Value sub(Value a, Value b);
  Value mul(Value a, int64_t b);
  Value mul(Value a, Value b);
  Value div(Value a, int64_t b);
  Value rem(Value a, int64_t b);
  Value min(Value a, Value b);
  Value max(Value a, Value b);
  Value isLess(Value a, Value b);
  Value isEqual(Value a, int64_t b);
  Value both(Value a, Value b);
  Value select(Value condition, Value a, Value b);
  Value addf(Value a, Value b) { return createOrFold<arith::AddFOp>(loc, a, b); }
  Value subf(Value a, Value b) { return createOrFold<arith::SubFOp>(loc, a, b); }
  Value mulf(Value a, Value b) { return createOrFold<arith::MulFOp>(loc, a, b); }
  Value fma(Value a, Value b, Value c) { return LLVM::FMAOp::create(*this, loc, a, b, c); }
  /// The larger; b when one of them is NaN.
  Value larger(Value a, Value b);

  using Carried = SmallVector<Value>;
  /// for (i = from; i < to; i += step) body(i)
  void loop(Value from, Value to, int64_t step, function_ref<void(Value)> body);
  /// The same with values that go from turn to turn; those of the last.
  Carried loop(Value from, Value to, int64_t step, ValueRange first,
               function_ref<Carried(Value, ValueRange)> body);
  void when(Value condition, function_ref<void()> then, function_ref<void()> otherwise = nullptr);
  /// What one of two branches gives.
  Carried choose(Value condition, TypeRange types, function_ref<Carried()> then,
                 function_ref<Carried()> otherwise);

  Value address(const Pointer &place);
  Pointer shift(const Pointer &place, Value by) {
    return {place.base, place.type, add(place.index, by)};
  }
  /// Aligned to one element. With a mask: only its lanes, zero elsewhere.
  Value load(Type type, const Pointer &place, Value mask = nullptr);
  void store(Value value, const Pointer &place, Value mask = nullptr);
  /// Asks for the line of a place, which need not exist.
  void prefetch(const Pointer &place, bool forWriting = false);
  /// Lanes `stride` elements apart.
  Value gather(VectorType type, const Pointer &place, int64_t stride, Value mask);
  void scatter(Value value, const Pointer &place, int64_t stride, Value mask);
  /// Lanes at the places that `indices` (a vector of integers) counts from `place` on.
  Value gather(Type element, const Pointer &place, Value indices);
  /// Lanes i of `lanes` with i < count.
  Value maskBelow(int64_t lanes, Value count);
  Value splat(Value scalar, int64_t lanes);
  /// 0, 1, 2, ..
  Value iota(int64_t lanes, Type element);
  Value zero(Type type);
  Value shuffle(Value a, Value b, ArrayRef<int64_t> mask);
  /// To the same shape with another floating-point element type; f32 in between
  /// where neither holds the other.
  Value convertFloat(Value value, Type element);
  /// The body of `op` on `inputs` (one per operand, vectors or scalars alike); the values it
  /// yields. `index` gives linalg.index.
  SmallVector<Value> inlineBody(linalg::LinalgOp op, ArrayRef<Value> inputs, int64_t lanes,
                                function_ref<Value(unsigned)> index = nullptr);

  Location loc;

private:
  Value strided(const Pointer &place, int64_t lanes, int64_t stride);
};

/// The type with its element replaced: vector or scalar.
Type withElement(Type type, Type element);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_CODEBUILDER_H
