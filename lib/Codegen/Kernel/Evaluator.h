//===- Evaluator.h - The value of a tensor's element ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Private to the stage.
//
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

/// One index of an element: an expression over the loops, or, when it depends on
/// data and differs between lanes, a vector of index.
struct Subscript {
  AffineExpr expr;
  Value lanes;
};

/// A tensor that lies in memory: a flat memref and how many leading indices do
/// not count (a row buffer holds one row).
struct Stored {
  Value memory;
  unsigned skip = 0;
};

/// What the evaluators of one phase share.
struct EvaluationState {
  func::FuncOp kernel, phase;
  /// Where tensors lie (arguments, and values stored by earlier steps).
  DenseMap<Value, Stored> stored;
  /// Values of the current row that are held in registers.
  DenseMap<Value, Value> rowValues;
  /// While a body is evaluated: what arguments of it that carry results hold.
  DenseMap<Value, Value> carried;
  /// Called when a tensor is read from memory or registers.
  std::function<void(Value tensor, ArrayRef<AffineExpr> indices, bool precise)> onRead;
  /// Loads whose lanes are apart in memory, and selects between parts of a view.
  int64_t gathers = 0;
  /// Positions of the innermost loop at which a condition of a slice changes.
  SmallVector<int64_t> splits;
  /// Why the evaluation cannot be done; empty when it can.
  std::string refusal;
};

/// Emits code for elements of tensors, in scalar form (one lane) or for `lanes`
/// consecutive positions of the innermost loop. Producers are evaluated in
/// place, once per distinct element. A copy made for an inner scope may use what
/// the outer one has computed.
class Evaluator {
public:
  Evaluator(OpBuilder &builder, Location loc, EvaluationState &state, int64_t lanes);

  /// The position along the lanes, 0 to lanes - 1.
  AffineExpr lane() const { return getAffineDimExpr(0, builder.getContext()); }
  AffineExpr addDim(Value value, int64_t lo, int64_t hi);
  AffineExpr constant(int64_t value) const {
    return getAffineConstantExpr(value, builder.getContext());
  }
  Subscripts subscripts() const { return Subscripts(dims); }
  int64_t getLanes() const { return lanes; }
  /// The same loops and memory of values with another number of lanes.
  Evaluator withLanes(int64_t lanes) const;
  /// `column` = position of the innermost loop; conditions on it ask for a split.
  void setColumn(AffineExpr position) { column = position; }

  /// The element of `tensor` at `indices`: a scalar when all lanes agree.
  Value evaluate(Value tensor, ArrayRef<AffineExpr> indices);
  /// A scalar of the kernel's top level.
  Value evaluateScalar(Value value);
  /// What the body of `op` makes of its result `number` at the loop position `loops`,
  /// when that was `before`.
  Value advance(linalg::GenericOp op, unsigned number, Value before, ArrayRef<AffineExpr> loops);
  /// Writes all lanes of `value` to a flat memref, from `offset` on.
  void store(Value value, Value memory, AffineExpr offset);
  /// Reads all lanes of a flat memref, from `offset` on.
  Value load(Value memory, Type element, AffineExpr offset) {
    return loadFlat(memory, element, offset, {});
  }
  Value broadcast(Value value);
  /// The scalar value of an expression without lane.
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
  Value loadStrided(Value memory, Type storage, AffineExpr offset);
  Value gather(Value memory, Type storage, AffineExpr offset, Value laneOffset);
  Value table(arith::ConstantOp op);
  /// i1 of lo <= index < hi; null when the range of the index decides it, then
  /// `always` says how. Clamps `index` into [lo, hi).
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
  /// By memory, place of the first and distance: the columns of what lies interleaved.
  std::map<Key, SmallVector<Value>> strided;
};

/// Lane l of vector v becomes element v of group l, over all vectors in order (their
/// number and that of the lanes are powers of two). As many vectors as lanes: the
/// block is transposed.
void interleave(OpBuilder &builder, Location loc, SmallVector<Value> &vectors);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_EVALUATOR_H
