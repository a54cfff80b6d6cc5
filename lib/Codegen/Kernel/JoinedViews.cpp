//===- JoinedViews.cpp - Elements of views of several inputs ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The result of tensor.insert_slice, tensor.insert, tensor.concat or tensor.pad consists of
// elements of several inputs. The evaluator compares the indices of an element with the borders of
// the inputs, and selects the input that contains the element. Where a comparison has the same
// result for all lanes and positions, only the selected input is evaluated.
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
#include "KernelSteps.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fsdp;

static Value conjunction(OpBuilder &b, Location loc, Evaluator &evaluator, Value a, Value c) {
  if (!a || !c)
    return a ? a : c;
  if (isa<VectorType>(a.getType()) || isa<VectorType>(c.getType())) {
    a = evaluator.broadcast(a);
    c = evaluator.broadcast(c);
  }
  return arith::AndIOp::create(b, loc, a, c);
}

static Value choose(OpBuilder &b, Location loc, Evaluator &evaluator, Value condition, Value yes,
                    Value no) {
  bool wide = llvm::any_of(ArrayRef<Value>{condition, yes, no},
                           [](Value v) { return isa<VectorType>(v.getType()); });
  if (wide) {
    yes = evaluator.broadcast(yes);
    no = evaluator.broadcast(no);
    condition = evaluator.broadcast(condition);
  }
  return arith::SelectOp::create(b, loc, condition, yes, no);
}

Value Evaluator::evaluateInsert(tensor::InsertSliceOp op, ArrayRef<Subscript> indices) {
  Type element = op.getType().getElementType();
  if (!ShapedType::isStaticShape(op.getStaticOffsets()) ||
      !ShapedType::isStaticShape(op.getStaticSizes()) ||
      llvm::any_of(op.getStaticStrides(), [](int64_t s) { return s != 1; }))
    return refuse("an insertion that is not a static box", element);
  Value condition;
  SmallVector<Subscript> source;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (auto [i, given] : llvm::enumerate(indices)) {
    Subscript index = given;
    int64_t lo = op.getStaticOffsets()[i], hi = lo + op.getStaticSizes()[i];
    bool always = false;
    Value here = inside(index, lo, hi, always);
    if (!here && !always)
      return evaluate(op.getDest(), indices);
    condition = conjunction(builder, loc, *this, condition, here);
    if (!dropped.test(i))
      source.push_back(add(index, -lo));
  }
  Value inner = evaluate(op.getSource(), source);
  if (!condition)
    return inner;
  return choose(builder, loc, *this, condition, inner, evaluate(op.getDest(), indices));
}

Value Evaluator::evaluateInsert(tensor::InsertOp op, ArrayRef<Subscript> indices) {
  Value condition;
  for (auto [given, value] : llvm::zip_equal(indices, op.getIndices())) {
    Value here;
    if (std::optional<int64_t> fixed = getConstantIntValue(value)) {
      Subscript index = given;
      bool always = false;
      here = inside(index, *fixed, *fixed + 1, always);
      if (!here && !always)
        return evaluate(op.getDest(), indices);
    } else {
      Value at = toValue(given), position = evaluateScalar(value);
      if (isa<VectorType>(at.getType()))
        position = broadcast(position);
      here = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, at, position);
    }
    condition = conjunction(builder, loc, *this, condition, here);
  }
  Value scalar = evaluateScalar(op.getScalar());
  return condition ? choose(builder, loc, *this, condition, scalar, evaluate(op.getDest(), indices))
                   : scalar;
}

Value Evaluator::evaluateConcat(tensor::ConcatOp op, ArrayRef<Subscript> indices) {
  int64_t dim = op.getDim(), offset = 0;
  Value result;
  // Visits the inputs from the last to the first. Each select chooses between the visited input and
  // the value that was computed from the later inputs.
  SmallVector<std::pair<Value, int64_t>> parts;
  for (Value part : op.getInputs()) {
    parts.push_back({part, offset});
    offset += cast<RankedTensorType>(part.getType()).getDimSize(dim);
  }
  for (auto [part, begin] : llvm::reverse(parts)) {
    SmallVector<Subscript> at(indices);
    bool always = false;
    Value here = inside(at[dim], begin,
                        begin + cast<RankedTensorType>(part.getType()).getDimSize(dim), always);
    if (!here && !always)
      continue;
    at[dim] = add(at[dim], -begin);
    Value value = evaluate(part, at);
    result = !result || !here ? value : choose(builder, loc, *this, here, value, result);
  }
  return result;
}

Value Evaluator::evaluatePad(tensor::PadOp op, ArrayRef<Subscript> indices) {
  Type element = op.getType().getElementType();
  Value padding = op.getConstantPaddingValue();
  if (!padding || !ShapedType::isStaticShape(op.getStaticLow()) ||
      !ShapedType::isStaticShape(op.getStaticHigh()))
    return refuse("padding that is not constant", element);
  Value condition;
  SmallVector<Subscript> source;
  for (auto [i, given] : llvm::enumerate(indices)) {
    Subscript index = given;
    int64_t lo = op.getStaticLow()[i], hi = lo + op.getSourceType().getDimSize(i);
    bool always = false;
    Value here = inside(index, lo, hi, always);
    Value outside = padding.getParentRegion() == &op.getRegion()
                        ? clone(padding.getDefiningOp(), {})
                        : evaluateScalar(padding);
    if (!here && !always)
      return outside;
    condition = conjunction(builder, loc, *this, condition, here);
    source.push_back(add(index, -lo));
  }
  Value inner = evaluate(op.getSource(), source);
  if (!condition)
    return inner;
  Value outside = padding.getParentRegion() == &op.getRegion() ? clone(padding.getDefiningOp(), {})
                                                               : evaluateScalar(padding);
  return choose(builder, loc, *this, condition, inner, outside);
}
