//===- AddBackward.cpp - Append the gradients to a program ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Applies reverse-mode differentiation to one block. The result is the forward, then the backward:
//
//   before   %w = unshard %s @u;  %y = f(%x, %w);  %loss = g(%y)
//   after    ...; ȳ = g'(%y, 1);  w̄ = f'(%x, ȳ);  s̄ = reduce_scatter @u avg (w̄)
//            return %loss, s̄
//
// 1. Copy the forward of the program "step" to a function @eval.
// 2. Mark as active each float value that depends on a trainable parameter (class Cotangents).
// 3. Set the cotangent of the loss to 1 or, if the loss is scaled, to a new argument that contains
//    the loss scale. Walk the ops from last to first. From the cotangents of the results of an op,
//    compute the terms that the op adds to the cotangents of its operands (Adjoints.h).
// 4. When the walk reaches the unshard of a unit, the cotangents of the parameters of the unit are
//    complete. Emit one reduce_scatter after the last op that computes one of these cotangents.
//    Emit one reduce_rows per lookup of rows in a sharded table.
// 5. Return one gradient per unit. The gradient is the result of the reduce_scatter of the unit or,
//    if the unit has no reduce_scatter, of the first reduce_rows of the unit. After that, return
//    the results of all other reduce_rows.
// 6. Erase dead ops. Replace the ops that only determine cotangents (DropMarkers.cpp).
//
// The time is O(ops).
//
// Later, CloneCheapForward.cpp adds recomputations, and RegatherParameters.cpp adds gathers.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Differentiate/Passes.h"

#include "Adjoints.h"
#include "ForwardPart.h"
#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/Reshape.h"
#include "fsdp/IR/StepBlock.h"
#include "fsdp/IR/StopGradient.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ADDBACKWARDPASS
#include "fsdp/Differentiate/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// Builds the backward of one function.
class Backward {
public:
  Backward(func::FuncOp func, Type reduceType, double predivide)
      : func(func), block(func.getBody().front()), b(block.getTerminator()), cotangents(b),
        reduceType(reduceType), predivide(predivide) {}

  /// Returns true if a parameter or a reduced gradient is f16, so that gradients may overflow.
  bool usesHalf();
  LogicalResult run(bool scaled);

  func::FuncOp func;
  Block &block;
  OpBuilder b;
  Cotangents cotangents;
  int64_t numOps = 0;

private:
  LogicalResult checkSignature();
  LogicalResult checkUnits();
  void activateParameters();
  LogicalResult seedLoss(bool scaled);
  LogicalResult differentiate(ArrayRef<Operation *> forward);
  UnitOp lookUpUnit(FlatSymbolRefAttr name) {
    return SymbolTable::lookupNearestSymbolFrom<UnitOp>(func, name);
  }
  void reduceUnit(UnshardOp op);
  void reduceRows(UnshardRowsOp op);
  Value predivideElements(Value gradient);
  Value emitReduction(UnitOp unit, BlockArgument shard, ValueRange grads, ArrayRef<int64_t> params);
  void collectGradients();
  void returnResults();
  void eraseDeadOps();

  Type reduceType;  // type of reductions of gradients; null stands for the working precision
  double predivide; // divisor of gradients before their reduction
  DenseMap<StringAttr, UnshardOp> firstUnshard;
  DenseMap<StringAttr, Value> reductions;
  SmallVector<ReduceRowsOp> rowReductions;
  SmallVector<Value> gradients;
  // Attributes of the results that return gradients, one for each gradient.
  SmallVector<NamedAttribute> owners;
};
} // namespace

LogicalResult Backward::checkSignature() {
  auto loss = func.getNumResults() ? dyn_cast<RankedTensorType>(func.getResultTypes()[0])
                                   : RankedTensorType();
  if (!loss || loss.getRank() != 0 || !isa<FloatType>(loss.getElementType())) {
    InFlightDiagnostic diag =
        func.emitError("expected the first result to be the loss, a float tensor of rank 0, ");
    if (func.getNumResults())
      return diag << "found " << func.getResultTypes()[0];
    return diag << "found no result";
  }
  if (!llvm::hasSingleElement(func.getBody()))
    return func.emitError("expected one block, found ")
           << func.getBody().getBlocks().size() << "; control flow is not differentiated";
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
    if (auto shaped = dyn_cast<ShapedType>(type); shaped && !shaped.hasStaticShape())
      return func.emitError("expected static shapes, found ") << type << " as argument " << i;
  return success();
}

/// Checks that the shard of each unshard is an argument whose attribute names the same unit.
LogicalResult Backward::checkUnits() {
  for (BlockArgument argument : block.getArguments())
    if (auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(),
                                                             FSDPDialect::unitAttr);
        name && !lookUpUnit(name))
      return func.emitError("expected ")
             << name << ", the '" << FSDPDialect::unitAttr << "' of argument "
             << argument.getArgNumber() << ", to name an 'fsdp.unit' op, found "
             << describeSymbol(name, SymbolTable::lookupNearestSymbolFrom(func, name));
  for (auto op : block.getOps<UnshardOp>()) {
    auto shard = dyn_cast<BlockArgument>(op.getShard());
    Attribute unit =
        shard ? func.getArgAttr(shard.getArgNumber(), FSDPDialect::unitAttr) : Attribute();
    if (unit == op.getUnitAttr())
      continue;
    InFlightDiagnostic diag =
        op.emitError("expected the shard to be a function argument that has '")
        << FSDPDialect::unitAttr << " = " << op.getUnitAttr()
        << "', because the gradient of the shard is returned for that "
           "argument; found ";
    if (unit)
      return diag << "an argument with '" << FSDPDialect::unitAttr << " = " << unit << "'";
    return diag << (shard ? "an argument without it" : describeValue(op.getShard()));
  }
  return success();
}

void Backward::activateParameters() {
  for (BlockArgument argument : block.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (func.getArgAttr(i, FSDPDialect::paramAttr) &&
        !func.getArgAttr(i, FSDPDialect::frozenAttr) && isFloat(argument))
      cotangents.activateParameter(argument);
  }
  for (auto op : block.getOps<UnshardOp>()) {
    firstUnshard.try_emplace(op.getUnitAttr().getAttr(), op);
    UnitOp unit = lookUpUnit(op.getUnitAttr());
    for (auto [i, result] : llvm::enumerate(op.getResults()))
      if (unit.getParam(i).getTrainable())
        cotangents.activateParameter(result);
  }
  for (auto op : block.getOps<UnshardRowsOp>())
    if (lookUpUnit(op.getUnitAttr()).getParam(0).getTrainable())
      cotangents.activateParameter(op.getRows());
  cotangents.propagateActivity(block);
}

bool Backward::usesHalf() {
  if (!func->hasAttr(FSDPDialect::programAttr))
    // Only the program "step" has a step block, which contains the loss scale.
    return false;
  auto isHalf = [](Value v) { return getElementTypeOrSelf(v).isF16(); };
  if (reduceType && reduceType.isF16())
    return true;
  for (auto op : block.getOps<UnshardOp>())
    if (llvm::any_of(op.getResults(), isHalf))
      return true;
  for (auto op : block.getOps<UnshardRowsOp>())
    if (isHalf(op.getRows()))
      return true;
  return llvm::any_of(block.getArguments(), [&](BlockArgument arg) {
    return isHalf(arg) && func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr);
  });
}

/// Sets the cotangent of the loss to 1 or, if `scaled`, to a new argument of the function.
LogicalResult Backward::seedLoss(bool scaled) {
  Value loss = block.getTerminator()->getOperand(0);
  auto type = cast<RankedTensorType>(loss.getType());
  Value seed;
  if (scaled) {
    NamedAttribute mark(b.getStringAttr(lossScaleAttr), b.getUnitAttr());
    unsigned index = func.getNumArguments();
    if (failed(func.insertArgument(index, type, b.getDictionaryAttr(mark), loss.getLoc())))
      return failure();
    seed = func.getArgument(index);
  } else if (cotangents.isActive(loss)) {
    auto one = DenseElementsAttr::get(type, b.getFloatAttr(type.getElementType(), 1).getValue());
    seed = arith::ConstantOp::create(b, loss.getLoc(), one);
  }
  if (cotangents.isActive(loss))
    cotangents.add(loss, seed);
  return success();
}

LogicalResult Backward::differentiate(ArrayRef<Operation *> forward) {
  for (Operation *op : llvm::reverse(forward)) {
    if (auto unshard = dyn_cast<UnshardOp>(op)) {
      reduceUnit(unshard);
      continue;
    }
    if (auto lookup = dyn_cast<UnshardRowsOp>(op)) {
      reduceRows(lookup);
      continue;
    }
    if (llvm::none_of(op->getResults(), [&](Value r) { return isFloat(r) && cotangents.get(r); }))
      continue;
    if (failed(differentiateOp(op, cotangents)))
      return failure();
    ++numOps;
  }
  return success();
}

/// If `op` is the first gather of a unit, reduces the cotangents of the results of `op`. Otherwise
/// adds these cotangents to the cotangents of the results of the first gather.
void Backward::reduceUnit(UnshardOp op) {
  UnshardOp first = firstUnshard.lookup(op.getUnitAttr().getAttr());
  SmallVector<Value> grads;
  SmallVector<int64_t> params;
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    Value g = cotangents.get(result);
    if (!g)
      continue;
    if (op != first) {
      cotangents.activateParameter(first.getResult(i));
      cotangents.add(first.getResult(i), g);
      continue;
    }
    // The conversion directly follows the op that computes the gradient, so that both can become
    // one kernel.
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(g);
    g = predivideElements(g);
    grads.push_back(
        convertElements(b, g.getLoc(), g, reduceType ? reduceType : getElementTypeOrSelf(g)));
    params.push_back(i);
  }
  if (op != first || params.empty())
    // collectGradients() creates a zero gradient for a unit without cotangents.
    return;
  auto shard = cast<BlockArgument>(op.getShard());
  reductions[op.getUnitAttr().getAttr()] =
      emitReduction(lookUpUnit(op.getUnitAttr()), shard, grads, params);
}

/// Reduces the cotangents of the rows that `op` looks up. Before the reduction, each rank adds the
/// rows that have equal ids, and converts the sums to the type of the reduction.
void Backward::reduceRows(UnshardRowsOp op) {
  Value gradient = cotangents.get(op.getRows());
  if (!gradient)
    return;
  auto shard = cast<RankedTensorType>(op.getShard().getType());
  int64_t count = cast<RankedTensorType>(op.getIds().getType()).getNumElements();
  Location loc = op.getLoc();
  Value ids = buildReshape(b, loc, op.getIds(), count);
  Value sums = addEqualRows(b, loc, gradient, ids);
  sums.getDefiningOp()->setAttr(FSDPDialect::rowsAttr, op.getUnitAttr());
  Value rows = predivideElements(sums);
  Type element = reduceType ? reduceType : getElementTypeOrSelf(rows);
  rows = convertElements(b, loc, rows, element);
  rowReductions.push_back(ReduceRowsOp::create(
      b, loc, shard.clone(reduceType ? reduceType : getWorkingType(shard.getElementType())), rows,
      ids, op.getUnit(), ReductionKind::avg));
}

/// Returns `gradient` times 1 / `predivide`, in the type of `gradient`.
Value Backward::predivideElements(Value gradient) {
  if (predivide == 1)
    return gradient;
  Type element = getElementTypeOrSelf(gradient);
  return buildElementwise(b, gradient.getLoc(), gradient, element,
                          [&](OpBuilder &b, Location loc, ValueRange in) -> Value {
                            Value factor = arith::ConstantOp::create(
                                b, loc, b.getFloatAttr(element, 1 / predivide));
                            return arith::MulFOp::create(b, loc, in.front(), factor);
                          });
}

/// Emits a reduce_scatter of `grads` after the last op that computes one of these gradients.
Value Backward::emitReduction(UnitOp unit, BlockArgument shard, ValueRange grads,
                              ArrayRef<int64_t> params) {
  OpBuilder::InsertionGuard guard(b);
  llvm::SmallPtrSet<Operation *, 8> sources;
  for (Value g : grads)
    sources.insert(g.getDefiningOp());
  // The sources are among the newest ops. Operation::isBeforeInBlock would number all ops of the
  // block again for each unit.
  auto older = llvm::reverse(llvm::make_range(block.begin(), b.getInsertionPoint()));
  auto found = grads.empty()
                   ? older.end()
                   : llvm::find_if(older, [&](Operation &op) { return sources.contains(&op); });
  Operation *last = found == older.end() ? nullptr : &*found;
  if (last)
    b.setInsertionPointAfter(last);
  auto type = cast<RankedTensorType>(shard.getType());
  return ReduceScatterOp::create(
      b, last ? last->getLoc() : shard.getLoc(),
      type.clone(reduceType ? reduceType : getWorkingType(type.getElementType())), grads,
      unit.getSymName(), params, ReductionKind::avg);
}

void Backward::collectGradients() {
  for (BlockArgument argument : block.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(i, FSDPDialect::unitAttr)) {
      UnitOp unit = lookUpUnit(name);
      if (llvm::none_of(unit.getParams().getAsRange<ParamAttr>(),
                        [](ParamAttr p) { return p.getTrainable(); }))
        continue;
      Value &reduced = reductions[name.getAttr()];
      auto rows =
          llvm::find_if(rowReductions, [&](ReduceRowsOp op) { return op.getUnitAttr() == name; });
      if (!reduced && rows != rowReductions.end()) {
        reduced = rows->getShard();
        rowReductions.erase(rows);
      }
      if (!reduced)
        reduced = emitReduction(unit, argument, {}, {});
      gradients.push_back(reduced);
      owners.push_back(b.getNamedAttr(FSDPDialect::unitAttr, name));
    } else if (func.getArgAttr(i, FSDPDialect::paramAttr)) {
      if (Value g = cotangents.isActive(argument) ? cotangents.get(argument) : Value()) {
        gradients.push_back(g);
        owners.push_back(b.getNamedAttr(FSDPDialect::gradientAttr, b.getI64IntegerAttr(i)));
      }
    }
  }
  for (ReduceRowsOp op : rowReductions) {
    gradients.push_back(op.getShard());
    owners.push_back(b.getNamedAttr(FSDPDialect::rowsAttr, op.getUnitAttr()));
  }
}

void Backward::returnResults() {
  SmallVector<DictionaryAttr> attributes;
  func.getAllResultAttrs(attributes);
  attributes.resize(func.getNumResults(), b.getDictionaryAttr({}));
  // The results are, in this order: the loss, gradients of units, checks of lookups, and gradients
  // of rows.
  Operation *terminator = block.getTerminator();
  unsigned numRows = rowReductions.size(), numUnits = gradients.size() - numRows, at = 1;
  auto insert = [&](unsigned first, unsigned count) {
    terminator->insertOperands(at, ArrayRef(gradients).slice(first, count));
    for (unsigned i = 0; i < count; ++i)
      attributes.insert(attributes.begin() + at + i, b.getDictionaryAttr(owners[first + i]));
  };
  insert(0, numUnits);
  at = terminator->getNumOperands();
  insert(numUnits, numRows);
  func.removeResAttrsAttr();
  func.setFunctionType(b.getFunctionType(func.getArgumentTypes(), terminator->getOperandTypes()));
  func.setAllResultAttrs(attributes);
}

void Backward::eraseDeadOps() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

LogicalResult Backward::run(bool scaled) {
  if (failed(checkSignature()) || failed(checkUnits()))
    return failure();
  SmallVector<Operation *> forward;
  for (Operation &op : block.without_terminator())
    forward.push_back(&op);
  activateParameters();
  if (failed(seedLoss(scaled)) || failed(differentiate(forward)))
    return failure();
  collectGradients();
  returnResults();
  eraseDeadOps();
  return success();
}

namespace {
struct AddBackwardPass : fsdp::impl::AddBackwardPassBase<AddBackwardPass> {
  using AddBackwardPassBase::AddBackwardPassBase;

  void runOnOperation() override;
  LogicalResult splitProgram(func::FuncOp func);
};
} // namespace

static bool isToDifferentiate(func::FuncOp func) {
  if (func.isExternal() || hasGradients(func))
    return false;
  if (auto program = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr))
    return program.getValue() != "eval";
  return llvm::any_of(llvm::seq<unsigned>(0, func.getNumArguments()),
                      [&](unsigned i) { return func.getArgAttr(i, FSDPDialect::paramAttr); });
}

/// Replaces each dropout mask of the evaluation by its mean. The mean is 1, because the elements
/// that the mask keeps are divided by the probability of keeping them.
static void useMeans(func::FuncOp eval) {
  eval.walk([](RandomOp op) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    if (op.getKind() != RandomKind::bernoulli || !isa<FloatType>(type.getElementType()))
      return;
    OpBuilder b(op);
    Value ones = arith::ConstantOp::create(
        b, op.getLoc(), DenseElementsAttr::get(type, b.getOneAttr(type.getElementType())));
    op.getResult().replaceAllUsesWith(ones);
    op.erase();
  });
  eval.walk([](RandomElementOp op) {
    auto type = dyn_cast<FloatType>(op.getResult().getType());
    if (op.getKind() != RandomKind::bernoulli || !type)
      return;
    OpBuilder b(op);
    op.getResult().replaceAllUsesWith(
        arith::ConstantOp::create(b, op.getLoc(), b.getFloatAttr(type, 1)));
    op.erase();
  });
}

/// Renames the function of the program "step" to @step, and adds @eval, a copy of its forward.
LogicalResult AddBackwardPass::splitProgram(func::FuncOp func) {
  auto program = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
  if (!program || program.getValue() != "step")
    return success();
  SymbolTable symbols(getOperation());
  for (StringRef name : {"step", "eval"})
    if (Operation *other = symbols.lookup(name); other && other != func) {
      InFlightDiagnostic diag = func.emitError("this pass needs the name '@")
                                << name << "' for a program, found another op of this name";
      diag.attachNote(other->getLoc()) << "it is defined here; rename it";
      return diag;
    }
  auto eval = func.clone();
  eval.setSymName("eval");
  eval->setAttr(FSDPDialect::programAttr, StringAttr::get(&getContext(), "eval"));
  eval->removeAttr(FSDPDialect::microBatchesAttr);
  useMeans(eval);
  func->getBlock()->getOperations().insertAfter(func->getIterator(), eval);
  return symbols.rename(func, "step");
}

void AddBackwardPass::runOnOperation() {
  Type reduceType;
  if (!reduceDtype.empty()) {
    reduceType = llvm::StringSwitch<Type>(reduceDtype)
                     .Case("f64", Float64Type::get(&getContext()))
                     .Case("f32", Float32Type::get(&getContext()))
                     .Case("bf16", BFloat16Type::get(&getContext()))
                     .Case("f16", Float16Type::get(&getContext()))
                     .Default(Type());
    if (!reduceType) {
      getOperation().emitError("reduce-dtype: expected f32, f64, bf16 or f16, found '")
          << reduceDtype << "'";
      return signalPassFailure();
    }
  }
  if (!(gradPredivide >= 0x1p-100 && gradPredivide <= 0x1p100)) {
    getOperation().emitError("grad-predivide: expected a number in [2^-100, 2^100], found ")
        << gradPredivide.getValue();
    return signalPassFailure();
  }
  for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
    if (!isToDifferentiate(func))
      continue;
    if (failed(splitProgram(func)))
      return signalPassFailure();
    Backward backward(func, reduceType, gradPredivide);
    bool usesHalf = backward.usesHalf(),
         scaled = lossScale.empty() ? usesHalf : lossScale != "none";
    if (usesHalf && !scaled &&
        func->getAttrOfType<StringAttr>(FSDPDialect::programAttr).getValue() == "step")
      emitWarning(func.getLoc(),
                  "gradients in f16 without a loss scale: those below 6e-8 become 0; give "
                  "--loss-scale=dynamic");
    if (scaled && !usesHalf &&
        func->getAttrOfType<StringAttr>(FSDPDialect::programAttr).getValue() == "step")
      emitWarning(
          func.getLoc(),
          "loss-scale: no parameter or gradient of a parameter is of type f16, so the scale has no "
          "use; remove --loss-scale, or give --param-dtype=f16");
    backward.cotangents.useResults = useResults;
    if (failed(backward.run(scaled)))
      return signalPassFailure();
    numDifferentiated += backward.numOps;
    numFree += backward.cotangents.numFree;
    int64_t bytes = ForwardPart(func).countSavedBytes();
    savedBytes += bytes;
    if (remarks)
      func.emitRemark() << backward.numOps << " ops differentiated, " << backward.cotangents.numFree
                        << " cotangents at no cost, " << bytes
                        << " bytes of the forward read by the backward";
  }
  dropMarkers(getOperation());
}
