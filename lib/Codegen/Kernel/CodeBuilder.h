//===- CodeBuilder.h - Builder for loops, vectors and memory accesses --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds code on pointers: 64-bit arithmetic, scf loops, and loads and stores of vectors.
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

/// A memory location: `index` elements of `type` after `base`.
struct Pointer {
  Value base;
  Type type;
  Value index;
};

class CodeBuilder : public OpBuilder {
public:
  CodeBuilder(Location loc, MLIRContext *context) : OpBuilder(context), loc(loc) {}

  Value constant(int64_t value);
  /// Creates an integer constant of the type of `like`.
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
  /// Returns the larger of a and b, or b if either is NaN.
  Value larger(Value a, Value b);

  using Carried = SmallVector<Value>;
  /// Emits the loop `for (i = from; i < to; i += step) body(i)`.
  void loop(Value from, Value to, int64_t step, function_ref<void(Value)> body);
  /// Emits the loop `for (i = from; i < to; i += step) carried = body(i, carried)`. The initial
  /// values of the carried values are `first`. Returns the carried values after the last iteration.
  Carried loop(Value from, Value to, int64_t step, ValueRange first,
               function_ref<Carried(Value, ValueRange)> body);
  void when(Value condition, function_ref<void()> then, function_ref<void()> otherwise = nullptr);
  /// Emits an scf.if with both branches. Returns the results of the scf.if, which are the values of
  /// the branch that runs.
  Carried choose(Value condition, TypeRange types, function_ref<Carried()> then,
                 function_ref<Carried()> otherwise);

  Value address(const Pointer &place);
  Pointer shift(const Pointer &place, Value by) {
    return {place.base, place.type, add(place.index, by)};
  }
  /// Loads with the alignment of an element. Lanes with a clear mask bit are not read and become 0.
  Value load(Type type, const Pointer &place, Value mask = nullptr);
  void store(Value value, const Pointer &place, Value mask = nullptr);
  /// Stores a vector without reading its cache lines first. The address is a multiple of the
  /// vector's size or of a cache line. Other threads see the value after storeFence() and a
  /// synchronisation.
  void storeStreaming(Value value, const Pointer &place);
  /// Emits the fence that completes streaming stores (x86 only).
  void storeFence();
  /// Prefetches the cache line of `place`. `place` may be outside the buffer.
  void prefetch(const Pointer &place, bool forWriting = false);
  /// Loads a vector whose lanes are `stride` elements apart in memory. Lane 0 is the element at
  /// `place`. Lanes with a clear mask bit are not read and become 0.
  Value gather(VectorType type, const Pointer &place, int64_t stride, Value mask);
  void scatter(Value value, const Pointer &place, int64_t stride, Value mask);
  /// Loads a vector whose lane i is the element `indices`[i] elements after `place`. `indices` is a
  /// vector of integers.
  Value gather(Type element, const Pointer &place, Value indices);
  /// Returns a mask of `lanes` bits in which lane i is set if i < count.
  Value maskBelow(int64_t lanes, Value count);
  Value splat(Value scalar, int64_t lanes);
  /// Returns the vector 0, 1, 2, ..
  Value iota(int64_t lanes, Type element);
  Value zero(Type type);
  Value shuffle(Value a, Value b, ArrayRef<int64_t> mask);
  /// Returns the columns of a square matrix, as vectors. Each vector of `rows` is a row. The number
  /// of rows equals the number of lanes of a vector, a power of two.
  SmallVector<Value> transpose(ArrayRef<Value> rows);
  /// Converts a scalar or vector to the floating-point element type `element`. Converts between
  /// bf16 and f16 through f32.
  Value convertFloat(Value value, Type element);
  /// Clones the body of `op` and returns the yielded values. The `inputs`, one value per operand,
  /// replace the arguments of the body. If `lanes` > 0, all values are vectors with `lanes`
  /// elements; otherwise all values are scalars. `index(d)` returns the value that replaces the op
  /// linalg.index of dimension d.
  SmallVector<Value> inlineBody(linalg::LinalgOp op, ArrayRef<Value> inputs, int64_t lanes,
                                function_ref<Value(unsigned)> index = nullptr);

  Location loc;

private:
  Value strided(const Pointer &place, int64_t lanes, int64_t stride);
};

/// Returns `type` (a vector or a scalar) with its element type replaced.
Type withElement(Type type, Type element);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_CODEBUILDER_H
