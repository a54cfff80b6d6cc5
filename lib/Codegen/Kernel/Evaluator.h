//===- Evaluator.h - Code for single elements of tensors --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_EVALUATOR_H
#define FSDP_LIB_CODEGEN_KERNEL_EVALUATOR_H

#include "Subscripts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include <map>

namespace mlir::fsdp {

/// One index of an element: the expression `expr` over the loops, or the vector `lanes` if the
/// index depends on data and differs between lanes.
struct Subscript {
  AffineExpr expr;
  Value lanes;
};

/// Location of a tensor in memory: a flat memref (`memory`), and the number of leading indices that
/// do not affect the position in the memref (`skip`). For example, a buffer that holds only one row
/// ignores the indices of the row.
struct Stored {
  Value memory;
  unsigned skip = 0;
};

/// State that the evaluators of one phase share.
struct EvaluationState {
  func::FuncOp kernel, phase;
  /// Locations of the tensors in memory: the arguments, and the values that earlier steps stored.
  DenseMap<Value, Stored> stored;
  /// Values of the current row that are held in registers.
  DenseMap<Value, Value> rowValues;
  /// Values of the output arguments (results so far) of the body that is being evaluated.
  DenseMap<Value, Value> carried;
  /// Called when an element of a tensor in memory or in registers is read. `precise` is false if
  /// `indices` does not determine the element, because an index differs between lanes and depends
  /// on data.
  std::function<void(Value tensor, ArrayRef<AffineExpr> indices, bool precise)> onRead;
  /// Number of loads whose lanes are not contiguous, plus number of selects between inputs of
  /// views.
  int64_t gathers = 0;
  /// Distance in bytes between a load of consecutive elements and the lines that are prefetched
  /// with the load, or 0 for no prefetches.
  int64_t prefetchDistance = 0;
  /// Positions of the innermost loop at which the condition of a select between inputs changes.
  SmallVector<int64_t> splits;
  /// Reason why the evaluation is not possible; empty if it is possible.
  std::string refusal;
};

/// Emits code that computes elements of tensors: one element as a scalar (one lane), or the
/// elements at `lanes` consecutive positions of the innermost loop as a vector. If another op
/// produces an operand, the code of that op is emitted where the operand is used, once for each
/// distinct element. The evaluator may be copied to emit code in an inner scope. The copy may use
/// values that the original has computed.
class Evaluator {
public:
  Evaluator(OpBuilder &builder, Location loc, EvaluationState &state, int64_t lanes);

  /// Returns the expression that stands for the number of the lane. Its values are 0 to lanes - 1.
  AffineExpr lane() const { return getAffineDimExpr(0, builder.getContext()); }
  /// Adds a loop variable with the inclusive range lo to hi.
  AffineExpr addDim(Value value, int64_t lo, int64_t hi);
  AffineExpr constant(int64_t value) const {
    return getAffineConstantExpr(value, builder.getContext());
  }
  Subscripts subscripts() const { return Subscripts(dims); }
  int64_t getLanes() const { return lanes; }
  /// Returns an evaluator for the same loops and memory with `lanes` lanes.
  Evaluator withLanes(int64_t lanes) const;
  /// Sets the expression of the position in the innermost loop. If a select depends on a condition
  /// on this position, a split of the loop is recorded in EvaluationState::splits.
  void setColumn(AffineExpr position) { column = position; }

  /// Returns the element of `tensor` at `indices`. The result is a scalar if the element is the
  /// same in all lanes, otherwise a vector.
  Value evaluate(Value tensor, ArrayRef<AffineExpr> indices);
  /// Evaluates `value`, which must be a scalar that is computed at the top level of the kernel.
  Value evaluateScalar(Value value);
  /// Evaluates result `number` of the body of `op` at the loop position `loops`, where `before` is
  /// the result so far. Returns the updated result.
  Value advance(linalg::GenericOp op, unsigned number, Value before, ArrayRef<AffineExpr> loops);
  /// Stores the lanes of `value` contiguously to a flat memref, beginning at `offset`.
  void store(Value value, Value memory, AffineExpr offset);
  /// Loads contiguous lanes from a flat memref, beginning at `offset`.
  Value load(Value memory, Type element, AffineExpr offset) {
    return loadFlat(memory, element, offset, {});
  }
  Value broadcast(Value value);
  /// Returns the scalar value of an expression that does not contain the lane.
  Value materialise(AffineExpr expr);

private:
  using Key = std::pair<const void *, SmallVector<const void *>>;
  Value evaluate(Value tensor, ArrayRef<Subscript> indices);
  Value evaluateOp(Value tensor, ArrayRef<Subscript> indices);
  Value evaluateGeneric(linalg::GenericOp op, unsigned result, ArrayRef<Subscript> indices);
  Value evaluateBody(linalg::GenericOp op, Value value, ArrayRef<Subscript> loops);
  Value evaluateOperand(linalg::GenericOp op, BlockArgument argument, ArrayRef<Subscript> loops);
  Value evaluateInner(linalg::GenericOp op, Value value, ArrayRef<Subscript> loops);
  Value evaluateReshape(Value source, RankedTensorType type, ArrayRef<Subscript> indices);
  Value evaluateSlice(tensor::ExtractSliceOp op, ArrayRef<Subscript> indices);
  Value evaluateInsert(tensor::InsertSliceOp op, ArrayRef<Subscript> indices);
  Value evaluateInsert(tensor::InsertOp op, ArrayRef<Subscript> indices);
  Value evaluateConcat(tensor::ConcatOp op, ArrayRef<Subscript> indices);
  Value evaluatePad(tensor::PadOp op, ArrayRef<Subscript> indices);
  Value evaluateElements(tensor::FromElementsOp op, ArrayRef<Subscript> indices);
  Value clone(Operation *op, ValueRange operands);
  Value refuse(const Twine &reason, Type element);
  Value zero(Type element);
  std::optional<Subscript> positionOf(Value value, ArrayRef<Subscript> loops);

  // ElementAddress.cpp
  Value load(Stored source, RankedTensorType type, ArrayRef<Subscript> indices);
  Value loadFlat(Value memory, Type element, AffineExpr offset, Value laneOffset);
  void prefetchAhead(Value memory, AffineExpr offset);
  Value loadStrided(Value memory, Type storage, AffineExpr offset);
  Value gather(Value memory, Type storage, AffineExpr offset, Value laneOffset);
  Value table(arith::ConstantOp op);
  /// Emits the comparison lo <= index < hi and returns its result, an i1. Clamps `index` to [lo,
  /// hi). If the range of the index decides the comparison, returns null and sets `always` to the
  /// result of the comparison.
  Value inside(Subscript &index, int64_t lo, int64_t hi, bool &always);
  Subscript toSubscript(Value index);
  Subscript toIndex(Value id);
  Value toValue(const Subscript &index);
  Value materialiseLanes(AffineExpr expr);
  bool hasLane(AffineExpr expr) const { return expr.isFunctionOfDim(0); }
  Subscript add(const Subscript &index, int64_t value);
  Subscript scale(const Subscript &index, int64_t factor);
  Subscript sum(const Subscript &a, const Subscript &b);
  AffineExpr simplify(AffineExpr expr) const { return subscripts().simplify(expr); }

  OpBuilder &builder;
  Location loc;
  EvaluationState &state;
  int64_t lanes;
  SmallVector<LoopDim> dims;
  AffineExpr column;
  std::map<Key, Value> known;
  /// The vectors of columns into which loadStrided() has separated loaded vectors. The key contains
  /// the memory, the position of the first element, and the stride.
  std::map<Key, SmallVector<Value>> strided;
};

/// Interleaves vectors. The results consist of groups of consecutive elements, and lane l of vector
/// v becomes element v of group l. The number of vectors and the number of lanes must be powers of
/// two. If the two numbers are equal, the result is the transposed matrix.
void interleave(OpBuilder &builder, Location loc, SmallVector<Value> &vectors);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_EVALUATOR_H
