//===- ApplyPrecision.cpp - Compute in a narrower type ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   before   %y = contract %x, %w : f32               %z = map(%y, %b) : f32
//   after    %t = contract %x, %w : bf16 -> f32       %z = map(%y, %b) : bf16
//            %y = truncf %t : bf16                      { extf .. f32 .. truncf }
//
//  1. Decide which values become narrow (PrecisionPlan.cpp).
//  2. Change the type of parameters, and record the old one in `fsdp.master_dtype`.
//  3. Rewrite the ops in order. A product reads narrow operands, accumulates in f32, and its result
//     is rounded. Attention reads narrow queries, keys, values and captured activations; its scores
//     and sums stay f32. A body extends narrow operands, computes in f32 as before, and rounds the
//     values that it yields. Other ops get operands of the type of their result.
//  4. Products and attention that `keep-f32` names read f32 operands, and get `fsdp.keep_f32`.
//  5. Record in `fsdp.kept_wide` of the module how many values stay f32, and their elements,
//     by reason.
//
// Values are narrow only between ops, so each is rounded once, and storage, gathers and products
// become cheaper. Masks stay finite: a number below the range of the type that is selected or added
// becomes the lowest finite number.
//
// O(ops). Not done here: f32 copies of parameters (FormUnits.cpp), the type in which gradients are
// reduced (Differentiate).
//
//===----------------------------------------------------------------------===//

#include "PrecisionPlan.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/Shard/NamePattern.h"
#include "fsdp/Shard/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_APPLYPRECISIONPASS
#include "fsdp/Shard/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// Rewrites one function.
class Narrower {
public:
  Narrower(func::FuncOp func, const PrecisionPlan &plan, FloatType narrow)
      : func(func), plan(plan), narrow(narrow), b(func.getContext()) {}

  void run();

  int64_t numValues = 0, numCasts = 0, numParams = 0;

private:
  void narrowArguments();
  void rewrite(Operation *op);
  void rewriteProduct(Operation *op);
  void rewriteGeneric(linalg::GenericOp op);
  void rewriteAttention(AttentionOp op);
  void narrowCapture(AttentionOp op, unsigned index);
  void rewriteSoftmax(linalg::SoftmaxOp op);
  void rewriteLike(Operation *op, OpOperand &source);
  void rewritePad(tensor::PadOp op);
  void widenArguments(linalg::LinalgOp op, bool clampsTables);
  void clampConstants(linalg::GenericOp op);
  Value clamp(Value v);
  void narrowYield(linalg::GenericOp op, unsigned index);
  void roundResult(OpResult result);
  void setNarrow(Value v);
  Value convert(Value v, Type element);
  void convertOperand(OpOperand &operand, bool toNarrow);
  bool isTable(Value v);

  func::FuncOp func;
  const PrecisionPlan &plan;
  FloatType narrow;
  OpBuilder b;
  DenseMap<std::pair<Value, Type>, Value> converted;
  DenseSet<Value> narrowed; ///< values that this pass has narrowed
};

struct ApplyPrecisionPass : fsdp::impl::ApplyPrecisionPassBase<ApplyPrecisionPass> {
  using ApplyPrecisionPassBase::ApplyPrecisionPassBase;
  void runOnOperation() override;

private:
  FailureOr<FloatType> readType(StringRef option, StringRef name);
  LogicalResult checkModel(func::FuncOp func, FloatType type);
  FailureOr<KeptWide> readKept(func::FuncOp func);
  void recordWide(func::FuncOp func, const PrecisionPlan &plan);
  void warnOfOutput();
};
} // namespace

static Type elementType(Value v) { return getElementTypeOrSelf(v); }

/// Returns `v` converted to `element`. Builds the conversion directly after `v`, once per type.
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

/// Converts an operand from f32 to the narrow type (`toNarrow`), or a narrowed operand to f32.
void Narrower::convertOperand(OpOperand &operand, bool toNarrow) {
  Value v = operand.get();
  Type element = elementType(v), wanted = toNarrow ? Type(narrow) : Type(b.getF32Type());
  if (!isa<RankedTensorType>(v.getType()) || element == wanted)
    return;
  if (!(toNarrow ? element.isF32() : narrowed.contains(v)))
    return; // the model has this type
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

/// Rounds an f32 result that becomes narrow after its op. Later ops read the rounded value.
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

/// Gives a product narrow operands and an f32 accumulator. A product of statistics or tables alone
/// (angles of a rotary embedding), and one that keep-f32 names, gets f32 operands.
void Narrower::rewriteProduct(Operation *op) {
  auto structured = cast<linalg::LinalgOp>(op);
  bool narrows = plan.flows(op->getResult(0)) && !plan.isKept(op);
  for (OpOperand *in : structured.getDpsInputOperands())
    convertOperand(*in, narrows);
  convertOperand(*structured.getDpsInitOperand(0), /*toNarrow=*/false);
  widenArguments(structured, /*clampsTables=*/false);
  roundResult(op->getResult(0));
}

/// Builds the nearest number in the finite range of the narrow type; NaN and infinity unchanged.
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

/// Returns whether `v` is computed from constants and integers alone: an additive mask, angles.
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

/// Extends narrow operands to f32 in a body. `clampsTables` clamps tables to the finite range of
/// the narrow type, because the result is narrow and a softmax reads it: a mask must stay finite.
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
    yielded.set(extended.getIn()); // the body only moves the element
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

/// Gives the regions of attention a captured tensor of the narrow type, and extends its elements.
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

/// Gives attention narrow queries, keys, values and captured activations. A captured table or
/// statistic keeps its type. Scores and sums are f32 for any operands.
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

/// Gives the result the element type of `source`. Converts it after the op if the plan requires the
/// other type.
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
    return; // reads logits of any type and computes in f32
  // Concatenations and insertions are of one type; all other ops get f32 operands.
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

/// Returns the type that an option names; null if it is empty.
FailureOr<FloatType> ApplyPrecisionPass::readType(StringRef option, StringRef name) {
  MLIRContext *context = &getContext();
  if (name.empty())
    return FloatType();
  auto type = llvm::StringSwitch<FloatType>(name)
                  .Case("f32", Float32Type::get(context))
                  .Case("bf16", BFloat16Type::get(context))
                  .Case("f16", Float16Type::get(context))
                  .Default({});
  if (!type)
    return mlir::emitError(getOperation().getLoc())
           << option << ": expected f32, bf16 or f16, found '" << name << "'";
  return type;
}

/// Reports a model that cannot be computed in `type`: no parameter is f32 or has that type.
LogicalResult ApplyPrecisionPass::checkModel(func::FuncOp func, FloatType type) {
  BlockArgument other;
  for (BlockArgument arg : func.getArguments()) {
    if (!func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr))
      continue;
    if (elementType(arg) == type || elementType(arg).isF32())
      return success();
    other = arg;
  }
  if (!other)
    return success(); // FormUnits.cpp reports that there is no parameter
  Type found = elementType(other);
  InFlightDiagnostic diag =
      mlir::emitError(func.getLoc())
      << "param-dtype: expected the type of the model's parameters, " << found << ", found " << type
      << "; only models in f32 can be computed in another type: "
      << (found.getIntOrFloatBitWidth() < 32 ? "leave param-dtype out, or " : "")
      << "export the model in f32";
  diag.attachNote(other.getLoc()) << "a parameter of " << found << " is here";
  return diag;
}

/// Reads keep-f32: patterns of parameters' names, and the word `attention`.
FailureOr<KeptWide> ApplyPrecisionPass::readKept(func::FuncOp func) {
  KeptWide kept;
  SmallVector<StringRef> names, patterns;
  SmallVector<BlockArgument> parameters;
  for (BlockArgument arg : func.getArguments())
    if (auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::paramAttr)) {
      names.push_back(name);
      parameters.push_back(arg);
    }
  StringRef(keepF32).split(patterns, ',', -1, /*KeepEmpty=*/!keepF32.empty());
  llvm::erase_if(patterns, [&](StringRef pattern) {
    bool isAttention = pattern.trim() == "attention";
    kept.attention |= isAttention;
    return isAttention;
  });
  FailureOr<llvm::BitVector> selected = selectNames(names, llvm::join(patterns, ","), "keep-f32",
                                                    [&] { return mlir::emitError(func.getLoc()); });
  if (failed(selected))
    return failure();
  for (unsigned index : selected->set_bits())
    kept.parameters.insert(parameters[index]);
  if (kept.attention && llvm::none_of(func.getOps<AttentionOp>(), [](auto) { return true; }))
    mlir::emitWarning(func.getLoc())
        << "keep-f32=attention has no effect: the model has no attention op";
  return kept;
}

/// Adds the counts of a function to `fsdp.kept_wide` of the module.
void ApplyPrecisionPass::recordWide(func::FuncOp func, const PrecisionPlan &plan) {
  Builder b(&getContext());
  SmallVector<NamedAttribute> counts;
  for (auto [reason, values] : plan.countWide(func))
    counts.push_back(
        b.getNamedAttr(reason, b.getDenseI64ArrayAttr({values.count, values.elements})));
  getOperation()->setAttr(FSDPDialect::keptWideAttr, b.getDictionaryAttr(counts));
}

/// Warns that output-dtype has no effect on models without f32 parameters.
void ApplyPrecisionPass::warnOfOutput() {
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    Type found;
    for (BlockArgument arg : func.getArguments()) {
      if (!func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr) ||
          !isa<FloatType>(elementType(arg)))
        continue;
      found = elementType(arg);
      if (found.isF32())
        break;
    }
    if (found && !found.isF32())
      mlir::emitWarning(func.getLoc()) << "output-dtype has no effect: the model is in " << found
                                       << " already and determines the type of its outputs itself";
  }
}

void ApplyPrecisionPass::runOnOperation() {
  FailureOr<FloatType> param = readType("param-dtype", paramDtype),
                       output = readType("output-dtype", outputDtype);
  if (failed(param) || failed(output))
    return signalPassFailure();
  if (*output && !output->isF32() && *output != *param) {
    mlir::emitError(getOperation().getLoc()) << "output-dtype: expected f32 or the param-dtype"
                                             << ", found '" << outputDtype << "'";
    return signalPassFailure();
  }
  if (*output)
    warnOfOutput();
  if (!*param)
    return;
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    if (!func.isPublic() || !func.getBody().hasOneBlock())
      continue; // FormUnits.cpp reports the error
    if (failed(checkModel(func, *param)))
      return signalPassFailure();
    if (param->isF32())
      continue;
    FailureOr<KeptWide> kept = readKept(func);
    if (failed(kept))
      return signalPassFailure();
    PrecisionPlan plan(func, *param, /*wideOutputs=*/!*output || output->isF32(), *kept);
    recordWide(func, plan);
    Narrower narrower(func, plan, *param);
    narrower.run();
    numValues += narrower.numValues;
    numCasts += narrower.numCasts;
    numParams += narrower.numParams;
    numOutputs += plan.getNumOutputs();
  }
}
