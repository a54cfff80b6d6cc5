//===- VerifyDtypes.cpp - No type narrower than asked -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   part        values                                   at least
//   gradient    values that cross ranks, and roundings   the reduce dtype
//   gradient    sums in bodies, loops and products       f32
//   loss, norm  everything                               f32
//   optimizer   arithmetic, masters                      f32
//   optimizer   state except masters and parameters      the state dtype
//
// Reports a warning if parameters are narrower than f32 and have no masters. The types inside the
// model are the user's choice and are not checked, with two exceptions. A narrow loss gets a
// warning, and the sums that compute gradients of parameters are checked. Takes O(ops) time.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/DtypeFlow.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYDTYPESPASS
#include "fsdp/Update/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Largest number of ops for which errors or warnings are reported.
static constexpr int64_t maxErrors = 8;

namespace {
/// Checks one program.
class DtypeChecker {
public:
  DtypeChecker(func::FuncOp program, FloatType asked, FloatType askedState)
      : program(program), asked(asked), askedState(askedState),
        f32(Float32Type::get(program.getContext())), parts(program) {}

  LogicalResult run();
  int64_t numChecked = 0;

private:
  void checkState();
  void checkOp(Operation *op);
  void checkBody(linalg::LinalgOp op, StepPart part);
  void checkCollective(Operation *op, StepPart part);
  void checkCotangent(Value grad, ReduceScatterOp reduce);
  void require(Operation *op, Type found, FloatType least, const Twine &what, bool warns = false);

  func::FuncOp program;
  FloatType asked, askedState, f32;
  StepParts parts;
  int64_t numFailed = 0;
};

struct VerifyDtypesPass : fsdp::impl::VerifyDtypesPassBase<VerifyDtypesPass> {
  using VerifyDtypesPassBase::VerifyDtypesPassBase;
  void runOnOperation() override;
};
} // namespace

static Type elementType(Value v) { return getElementTypeOrSelf(v.getType()); }

/// If the float type `found` cannot represent every number of the type `least`, reports an error
/// or, if `warns`, a warning.
void DtypeChecker::require(Operation *op, Type found, FloatType least, const Twine &what,
                           bool warns) {
  auto type = dyn_cast<FloatType>(found);
  if (!type)
    return;
  ++numChecked;
  if (holdsAll(type, least))
    return;
  if (!warns && numFailed++ >= maxErrors)
    return;
  InFlightDiagnostic diag =
      (warns ? mlir::emitWarning(op->getLoc()) : mlir::emitError(op->getLoc()))
      << what << ": expected " << least << " or wider, found " << type << " in '" << op->getName()
      << "' of '@" << program.getSymName() << "'";
  if (FlatSymbolRefAttr unit = parts.getUnit(op))
    if (auto def = SymbolTable::lookupNearestSymbolFrom<UnitOp>(program, unit))
      diag.attachNote(def.getLoc()) << "for unit '" << def.getSymName() << "'";
}

/// Checks that optimizer state has at least the requested type. Warns of missing masters.
void DtypeChecker::checkState() {
  llvm::SmallDenseSet<Attribute> mastered;
  for (bool masters : {true, false})
    for (BlockArgument arg : program.getArguments()) {
      unsigned i = arg.getArgNumber();
      auto role = program.getArgAttrOfType<StringAttr>(i, FSDPDialect::stateAttr);
      auto unit = program.getArgAttrOfType<FlatSymbolRefAttr>(i, FSDPDialect::unitAttr);
      auto type = dyn_cast<FloatType>(elementType(arg));
      if (!role || !unit || !type)
        continue;
      if (masters && role.getValue() == "master")
        mastered.insert(unit);
      bool isState = role.getValue() != "parameter";
      FloatType least = isState && role.getValue() != "master" ? askedState : f32;
      if (masters || holdsAll(type, least))
        continue;
      bool trained = llvm::any_of(llvm::seq<unsigned>(0, program.getNumResults()), [&](unsigned r) {
        auto updates = program.getResultAttrOfType<IntegerAttr>(r, FSDPDialect::updatesAttr);
        return updates && updates.getInt() == i;
      });
      if (isState) {
        ++numFailed;
        mlir::emitError(arg.getLoc())
            << "optimizer state '" << role.getValue() << "' of unit '" << unit.getValue()
            << "': expected " << least << " or wider, found " << type;
      } else if (trained && !mastered.contains(unit)) {
        mlir::emitWarning(arg.getLoc())
            << "unit '" << unit.getValue() << "': parameters are updated in " << type
            << " without f32 masters: steps smaller than their last digit are lost, and weight "
               "decay with them; "
               "keep masters (--param-storage=master or both), or export the model in f32 and give "
               "--param-dtype";
      }
    }
}

/// Checks the ops of a body, except conversions.
void DtypeChecker::checkBody(linalg::LinalgOp op, StepPart part) {
  std::string what = (stringifyStepPart(part) + " arithmetic").str();
  bool warns = part == StepPart::loss; // the type of the loss is the model's choice
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(inner.getDialect()) ||
        inner.getNumResults() != 1 || isa<arith::ExtFOp, arith::ConstantOp>(inner))
      continue;
    auto type = inner.getResult(0).getType();
    if (isa<arith::TruncFOp>(inner)) {
      // Roundings are allowed for new parameters, which are rounded masters, and for gradients
      // before collectives.
      if (part == StepPart::gradient)
        require(op, type, asked, "gradient rounded");
      else if (part != StepPart::optimizer)
        require(op, type, f32, what, warns);
      continue;
    }
    if (!isa<arith::SelectOp>(inner))
      require(op, type, f32, what, warns);
  }
  for (Value out : op.getDpsInits())
    if (op.getNumReductionLoops() != 0)
      require(op, elementType(out), f32, (stringifyStepPart(part) + " accumulation").str(), warns);
}

/// Returns true if `op` adds over the axis `tensor` or `context`.
static bool addsTensors(Operation *op) {
  auto sum = dyn_cast<AllReduceOp>(op);
  if (!sum || sum.getAxes().size() != 1)
    return false;
  StringRef axis = cast<StringAttr>(sum.getAxes()[0]).getValue();
  return axis == tensorAxis || axis == contextAxis;
}

void DtypeChecker::checkCollective(Operation *op, StepPart part) {
  // Ranks add activations and their cotangents in the model's type.
  if (part == StepPart::model && addsTensors(op))
    return;
  Type found = elementType(op->getOperand(0));
  if (part == StepPart::gradient)
    require(op, found, asked, "gradient reduction over ranks");
  else
    require(op, found, f32, (stringifyStepPart(part) + " reduction over ranks").str());
}

/// `grad` is a cotangent of a parameter. Checks the type of `grad`. Also checks the type of the sum
/// that computes `grad`, before any rounding.
void DtypeChecker::checkCotangent(Value grad, ReduceScatterOp reduce) {
  require(reduce, elementType(grad), asked, "gradient reduction over ranks");
  Operation *def = grad.getDefiningOp();
  while (def && (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(def) ||
                 (isa<linalg::GenericOp>(def) && parts[def] == StepPart::gradient)))
    def = def->getOperand(0).getDefiningOp();
  auto structured = dyn_cast_or_null<linalg::LinalgOp>(def);
  if (isa_and_nonnull<ScatterAddRowsOp>(def) ||
      (structured && structured.getNumReductionLoops() != 0))
    require(def, elementType(def->getResult(0)), f32, "gradient accumulation");
}

void DtypeChecker::checkOp(Operation *op) {
  StepPart part = parts[op];
  if (auto reduce = dyn_cast<ReduceScatterOp>(op)) {
    for (Value grad : reduce.getGrads())
      checkCotangent(grad, reduce);
    return;
  }
  // Do not check the exchange of looked-up rows, which has the type of the model. But check
  // gathers, which exchange the gradients of these rows.
  bool gathersRows = isa<AllGatherOp>(op) && part == StepPart::gradient;
  if (isa<AllReduceOp>(op) || (isa<FlatReduceScatterOp>(op) && part != StepPart::model) ||
      gathersRows)
    return checkCollective(op, part);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (Value sum : loop.getRegionIterArgs())
      require(op, elementType(sum), f32, "accumulation over micro-batches");
    return;
  }
  bool roundsForReduction =
      op->getNumResults() != 0 && llvm::all_of(op->getUsers(), llvm::IsaPred<ReduceScatterOp>);
  if (part == StepPart::model || (part == StepPart::gradient && roundsForReduction))
    return; // the operand of a reduction is checked together with the reduction
  if (auto entropy = dyn_cast<CrossEntropyOp>(op))
    return require(op, elementType(entropy.getLoss()), f32, "loss", /*warns=*/true);
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    checkBody(structured, part);
}

LogicalResult DtypeChecker::run() {
  checkState();
  program.walk([&](Operation *op) {
    if (!isa<linalg::LinalgOp>(op->getParentOp()))
      checkOp(op);
  });
  if (numFailed > maxErrors)
    mlir::emitError(program.getLoc())
        << numFailed - maxErrors << " more places are narrower than asked";
  return success(numFailed == 0);
}

void VerifyDtypesPass::runOnOperation() {
  auto asked = llvm::StringSwitch<FloatType>(reduceDtype)
                   .Cases({"f32", ""}, Float32Type::get(&getContext()))
                   .Case("f64", Float64Type::get(&getContext()))
                   .Case("bf16", BFloat16Type::get(&getContext()))
                   .Case("f16", Float16Type::get(&getContext()))
                   .Default({});
  if (!asked) {
    getOperation().emitError("reduce-dtype: expected f32, f64, bf16 or f16, found '")
        << reduceDtype << "'";
    return signalPassFailure();
  }
  auto askedState = llvm::StringSwitch<FloatType>(stateDtype)
                        .Cases({"f32", ""}, Float32Type::get(&getContext()))
                        .Case("bf16", BFloat16Type::get(&getContext()))
                        .Default({});
  if (!askedState) {
    getOperation().emitError("state-dtype: expected f32 or bf16, found '") << stateDtype << "'";
    return signalPassFailure();
  }
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    auto program = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
    if (!program || program.getValue() != "step" || func.isExternal())
      continue;
    DtypeChecker checker(func, asked, askedState);
    if (failed(checker.run()))
      signalPassFailure();
    numChecked += checker.numChecked;
  }
}
