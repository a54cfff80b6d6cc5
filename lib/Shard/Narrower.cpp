//===- Narrower.cpp - Computes a function in a narrower type ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rewrites the ops of a function in order, so that the values that PrecisionPlan.cpp has chosen get
// the narrow type. ApplyPrecision.cpp describes the rules with an example. The time is O(ops).
//
//===----------------------------------------------------------------------===//

#include "Narrower.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

static Type elementType(Value v) { return getElementTypeOrSelf(v); }

/// Returns `v` converted to `element`. Builds one conversion per type, directly after `v`.
Value Narrower::convert(Value v, Type element) {
  Value &known = converted[{v, element}];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(v);
  Location loc = v.getLoc();
  auto type = cast<RankedTensorType>(v.getType());
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), element);
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  bool widens = elementType(v).getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth();
  auto map = linalg::GenericOp::create(
      b, loc, empty.getType(), v, empty, maps, loops,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value x = widens ? Value(arith::ExtFOp::create(b, loc, element, args[0]))
                         : Value(arith::TruncFOp::create(b, loc, element, args[0]));
        linalg::YieldOp::create(b, loc, x);
      });
  ++numCasts;
  return known = map.getResult(0);
}

/// If `toNarrow` is set, converts an f32 operand to the narrow type. If `toNarrow` is not set, and
/// if this pass has changed the type of the operand from f32 to the narrow type, converts the
/// operand back to f32.
void Narrower::convertOperand(OpOperand &operand, bool toNarrow) {
  Value v = operand.get();
  Type element = elementType(v), wanted = toNarrow ? Type(narrow) : Type(b.getF32Type());
  if (!isa<RankedTensorType>(v.getType()) || element == wanted)
    return;
  if (!(toNarrow ? element.isF32() : narrowed.contains(v)))
    return; // keep the type that the operand has in the model
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(operand.getOwner());
  auto shape = cast<RankedTensorType>(v.getType()).getShape();
  if (v.getDefiningOp<tensor::EmptyOp>())
    return operand.set(tensor::EmptyOp::create(b, v.getLoc(), shape, wanted));
  operand.set(convert(v, wanted));
}

void Narrower::setNarrow(Value v) {
  v.setType(cast<RankedTensorType>(v.getType()).clone(narrow));
  narrowed.insert(v);
  ++numValues;
}

/// If the plan makes an f32 result narrow, rounds the result after its op. Later ops read the
/// rounded value.
void Narrower::roundResult(OpResult result) {
  if (!plan.isNarrow(result))
    return;
  Value rounded = convert(result, narrow);
  result.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
  narrowed.insert(rounded);
  ++numValues;
}

void Narrower::narrowArguments() {
  for (BlockArgument arg : func.getArguments()) {
    if (!plan.isNarrow(arg))
      continue;
    func.setArgAttr(arg.getArgNumber(), FSDPDialect::masterDtypeAttr,
                    TypeAttr::get(elementType(arg)));
    setNarrow(arg);
    ++numParams;
  }
  func.setType(FunctionType::get(func.getContext(), func.getBody().getArgumentTypes(),
                                 func.getResultTypes()));
}

/// Makes the operands of a product narrow, and its accumulator f32. Two kinds of products get f32
/// operands instead: products of statistics and tables alone, such as the angles of a rotary
/// embedding, and products that keep-f32 names.
void Narrower::rewriteProduct(Operation *op) {
  auto structured = cast<linalg::LinalgOp>(op);
  bool narrows = plan.flows(op->getResult(0)) && !plan.isKept(op);
  for (OpOperand *in : structured.getDpsInputOperands())
    convertOperand(*in, narrows);
  convertOperand(*structured.getDpsInitOperand(0), /*toNarrow=*/false);
  widenArguments(structured, /*clampsTables=*/false);
  roundResult(op->getResult(0));
}

/// Clamps a number to the finite range of the narrow type. NaN and infinity do not change.
Value Narrower::clamp(Value v) {
  Location loc = v.getLoc();
  auto constant = [&](const llvm::APFloat &value) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     b.getFloatAttr(b.getF32Type(), value.convertToDouble()));
  };
  const llvm::fltSemantics &semantics = narrow.getFloatSemantics();
  Value low = constant(llvm::APFloat::getLargest(semantics, /*Negative=*/true));
  Value high = constant(llvm::APFloat::getLargest(semantics));
  Value inside = arith::MinimumFOp::create(b, loc, arith::MaximumFOp::create(b, loc, v, low), high);
  Value isFinite =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, loc, v),
                            constant(llvm::APFloat::getInf(llvm::APFloat::IEEEsingle())));
  return arith::SelectOp::create(b, loc, isFinite, inside, v);
}

/// Returns whether `v` is computed from constants and integers alone. Additive masks and the angles
/// of a rotary embedding are examples.
bool Narrower::isTable(Value v) {
  SmallVector<Value> worklist{v};
  DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    bool isFloat = isa<FloatType>(elementType(next));
    if (isFloat && (plan.flows(next) || plan.isNarrow(next) || isa<BlockArgument>(next)))
      return false;
    if (Operation *def = next.getDefiningOp())
      llvm::append_range(worklist, def->getOperands());
  }
  return true;
}

/// Inside the body of `op`, extends the elements of narrow operands to f32. `clampsTables` is set
/// if a softmax reads the narrow result. If it is set, also clamps the elements of tables to the
/// finite range of the narrow type, so that a mask remains finite.
void Narrower::widenArguments(linalg::LinalgOp op, bool clampsTables) {
  Block &body = *op.getBlock();
  OpBuilder::InsertionGuard guard(b);
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument arg = op.getMatchingBlockArgument(&operand);
    b.setInsertionPointToStart(&body);
    Type type = elementType(operand.get());
    if (arg.getType() == type) {
      if (clampsTables && type.isF32() && !arg.use_empty() && op.isDpsInput(&operand) &&
          cast<RankedTensorType>(operand.get().getType()).getRank() > 0 && isTable(operand.get())) {
        Value bounded = clamp(arg);
        llvm::SmallPtrSet<Operation *, 8> own;
        SmallVector<Value> worklist{bounded};
        while (!worklist.empty())
          if (Operation *def = worklist.pop_back_val().getDefiningOp();
              def && own.insert(def).second)
            llvm::append_range(worklist, def->getOperands());
        arg.replaceAllUsesExcept(bounded, own);
      }
      continue;
    }
    arg.setType(type);
    if (arg.use_empty())
      continue;
    auto wide = arith::ExtFOp::create(b, arg.getLoc(), b.getF32Type(), arg);
    arg.replaceAllUsesExcept(wide, wide);
  }
}

/// Clamps f32 constants in a body to the finite range of the narrow type.
void Narrower::clampConstants(linalg::GenericOp op) {
  for (Operation &inner : *op.getBody())
    for (OpOperand &operand : inner.getOpOperands()) {
      llvm::APFloat value(0.0f);
      if (!operand.get().getType().isF32() || !matchPattern(operand.get(), m_ConstantFloat(&value)))
        continue;
      llvm::APFloat clamped = clampToRange(value, narrow);
      if (clamped.bitwiseIsEqual(value))
        continue;
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(&inner);
      operand.set(
          arith::ConstantOp::create(b, inner.getLoc(), b.getFloatAttr(b.getF32Type(), clamped)));
    }
}

void Narrower::narrowYield(linalg::GenericOp op, unsigned index) {
  OpOperand &yielded = op.getBody()->getTerminator()->getOpOperand(index);
  auto extended = yielded.get().getDefiningOp<arith::ExtFOp>();
  if (extended && extended.getIn().getType() == narrow) {
    // The yielded value is the extension of a narrow element, so yield this element itself.
    yielded.set(extended.getIn());
  } else {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(yielded.getOwner());
    yielded.set(arith::TruncFOp::create(b, op.getLoc(), narrow, yielded.get()));
  }
}

/// Returns whether a softmax reads `v` or a view of it.
static bool feedsSoftmax(Value v) {
  return llvm::any_of(v.getUsers(), [](Operation *user) {
    return isa<linalg::SoftmaxOp>(user) ||
           (isViewOfOperand(user) && feedsSoftmax(user->getResult(0)));
  });
}

void Narrower::rewriteGeneric(linalg::GenericOp op) {
  bool anyNarrow = false, masks = false;
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    bool isNarrow = plan.isNarrow(result);
    if (isFloat32Tensor(result))
      convertOperand(*op.getDpsInitOperand(i), isNarrow);
    if (!isNarrow)
      continue;
    anyNarrow = true;
    masks |= feedsSoftmax(result);
    setNarrow(result);
  }
  if (anyNarrow)
    clampConstants(op);
  widenArguments(op, masks);
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    if (plan.isNarrow(result))
      narrowYield(op, i);
  for (Operation &inner :
       llvm::make_early_inc_range(llvm::reverse(op.getBody()->without_terminator())))
    if (isOpTriviallyDead(&inner))
      inner.erase();
}

/// In the regions of attention, changes the type of a captured tensor to the narrow type, and
/// extends the elements that the regions read.
void Narrower::narrowCapture(AttentionOp op, unsigned index) {
  OpBuilder::InsertionGuard guard(b);
  for (Region *region : {&op.getScoreMod(), &op.getMaskMod(), &op.getWeightMod()}) {
    if (region->empty())
      continue;
    Block &body = region->front();
    BlockArgument arg = body.getArgument(body.getNumArguments() - op.getCaptures().size() + index);
    arg.setType(op.getCaptures()[index].getType());
    for (Operation *user : arg.getUsers()) {
      Value element = cast<tensor::ExtractOp>(user).getResult();
      element.setType(narrow);
      b.setInsertionPointAfter(user);
      auto wide = arith::ExtFOp::create(b, user->getLoc(), b.getF32Type(), element);
      element.replaceAllUsesExcept(wide, wide);
    }
  }
}

/// Makes the queries, keys, values and captured activations of attention narrow. A captured table
/// or statistic keeps its type. Scores and sums are always f32.
void Narrower::rewriteAttention(AttentionOp op) {
  bool narrows = plan.flows(op.getO()) && !plan.isKept(op);
  for (OpOperand *operand : {&op.getQMutable(), &op.getKMutable(), &op.getVMutable()})
    convertOperand(*operand, narrows);
  for (auto [i, capture] : llvm::enumerate(op.getCapturesMutable())) {
    if (!narrows || !plan.isNarrow(capture.get()))
      convertOperand(capture, /*toNarrow=*/false);
    if (elementType(capture.get()) == narrow)
      narrowCapture(op, i);
  }
  auto o = cast<OpResult>(op.getO());
  if (!narrows)
    return roundResult(o);
  setNarrow(o);
  if (plan.isNarrow(o))
    return;
  Value wide = convert(o, b.getF32Type());
  o.replaceAllUsesExcept(wide, wide.getDefiningOp());
}

void Narrower::rewriteSoftmax(linalg::SoftmaxOp op) {
  bool narrows = plan.isNarrow(op->getResult(0));
  convertOperand(op.getInputMutable(), narrows);
  convertOperand(op.getOutputMutable(), narrows);
  if (narrows)
    setNarrow(op->getResult(0));
}

/// Changes the element type of the op's result to the element type of `source`. If the plan
/// requires a different type for the result, converts the result after the op.
void Narrower::rewriteLike(Operation *op, OpOperand &source) {
  OpResult result = op->getResult(0);
  if (elementType(source.get()) == elementType(result))
    return roundResult(result);
  setNarrow(result);
  if (plan.isNarrow(result))
    return;
  Value wide = convert(result, b.getF32Type());
  result.replaceAllUsesExcept(wide, wide.getDefiningOp());
}

void Narrower::rewritePad(tensor::PadOp op) {
  rewriteLike(op, op.getSourceMutable());
  Operation *yield = op.getBody()->getTerminator();
  Value value = yield->getOperand(0);
  Type element = op.getResultType().getElementType();
  if (value.getType() == element)
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  llvm::APFloat number(0.0f);
  if (matchPattern(value, m_ConstantFloat(&number)))
    value = arith::ConstantOp::create(b, op.getLoc(),
                                      b.getFloatAttr(element, number.convertToDouble()));
  else
    value = arith::TruncFOp::create(b, op.getLoc(), element, value);
  yield->setOperand(0, value);
}

void Narrower::rewrite(Operation *op) {
  if (plan.isKept(op))
    op->setAttr(FSDPDialect::keepF32Attr, b.getUnitAttr());
  if (auto attention = dyn_cast<AttentionOp>(op))
    return rewriteAttention(attention);
  if (isProduct(op))
    return rewriteProduct(op);
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return rewriteGeneric(generic);
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op))
    return rewriteSoftmax(softmax);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return rewritePad(pad);
  if (isViewOfOperand(op) || isa<GatherRowsOp>(op))
    return rewriteLike(op, op->getOpOperand(0));
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    Type element = elementType(extract.getTensor());
    if (element == extract.getType())
      return;
    extract.getResult().setType(element);
    b.setInsertionPointAfter(op);
    auto wide = arith::ExtFOp::create(b, op->getLoc(), b.getF32Type(), extract.getResult());
    extract.getResult().replaceAllUsesExcept(wide, wide);
    return;
  }
  if (isa<CrossEntropyOp>(op))
    // The kernel reads logits of any type and computes in f32.
    return;
  // All operands of a concatenation or an insertion must have the same type. All other ops get f32
  // operands.
  bool joins = isa<tensor::ConcatOp, tensor::InsertSliceOp>(op) && plan.isNarrow(op->getResult(0));
  for (OpOperand &operand : op->getOpOperands())
    convertOperand(operand, joins);
  if (joins)
    setNarrow(op->getResult(0));
}

void Narrower::run() {
  narrowArguments();
  SmallVector<Operation *> ops;
  for (Operation &op : func.getBody().front())
    ops.push_back(&op);
  for (Operation *op : ops)
    rewrite(op);
}
