//===- Subject.cpp - Functions to be checked --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   f(args) -> tensors     becomes     f(args, weights) -> loss = Σ weights · tensors
//
// Each function f has two versions. The version in `forward` computes in f64, and is used for
// finite differences. The version in `gradient` has the types of the model. The stage Differentiate
// differentiates this version.
//
//===----------------------------------------------------------------------===//

#include "Subject.h"
#include "HoldStopped.h"
#include "fsdp/Differentiate/Passes.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/Options/Options.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gradcheck;

static constexpr llvm::StringLiteral rangeAttr = "gradcheck.range", limitAttr = "gradcheck.limit",
                                     ignoreAttr = "gradcheck.ignore",
                                     weightAttr = "gradcheck.weight";

static bool isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && isa<FloatType>(tensor.getElementType());
}

static Type widen(Type type) {
  return type.getIntOrFloatBitWidth() < 32 ? Float32Type::get(type.getContext()) : type;
}

/// Builds sum + Σ weight · x, where the sum runs over all elements of x. The result has the type of
/// `sum`.
static Value addWeighed(OpBuilder &b, Location loc, Value x, Value weight, Value sum) {
  unsigned rank = cast<RankedTensorType>(x.getType()).getRank();
  AffineMap all = b.getMultiDimIdentityMap(rank), none = AffineMap::get(rank, 0, b.getContext());
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::reduction);
  Type work = getElementTypeOrSelf(sum);
  auto wide = [&](OpBuilder &b, Location loc, Value v) -> Value {
    return v.getType() == work ? v : arith::ExtFOp::create(b, loc, work, v).getResult();
  };
  return linalg::GenericOp::create(b, loc, sum.getType(), ValueRange{x, weight}, sum,
                                   ArrayRef<AffineMap>{all, all, none}, loops,
                                   [&](OpBuilder &b, Location loc, ValueRange v) {
                                     Value term = arith::MulFOp::create(b, loc, wide(b, loc, v[0]),
                                                                        wide(b, loc, v[1]));
                                     Value total = arith::AddFOp::create(b, loc, v[2], term);
                                     linalg::YieldOp::create(b, loc, total);
                                   })
      .getResult(0);
}

/// Replaces the results of a function by one loss, which is the weighted sum of the elements of all
/// float results.
static LogicalResult makeLoss(func::FuncOp func) {
  Operation *terminator = func.getBody().front().getTerminator();
  SmallVector<Value> results;
  Type work;
  for (Value result : terminator->getOperands())
    if (isFloatTensor(result.getType())) {
      results.push_back(result);
      Type element = widen(getElementTypeOrSelf(result));
      if (!work || work.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
        work = element;
    }
  if (results.empty())
    return func.emitError("expected a float tensor of static shape among the results");
  OpBuilder b(terminator);
  Value loss = results.front();
  if (results.size() > 1 || cast<RankedTensorType>(loss.getType()).getRank() != 0) {
    Value zero = arith::ConstantOp::create(b, func.getLoc(), b.getFloatAttr(work, 0));
    Value empty = tensor::EmptyOp::create(b, func.getLoc(), ArrayRef<int64_t>{}, work);
    loss = linalg::FillOp::create(b, func.getLoc(), zero, empty).getResult(0);
    for (Value result : results) {
      unsigned index = func.getNumArguments();
      DictionaryAttr attributes = b.getDictionaryAttr(b.getNamedAttr(weightAttr, b.getUnitAttr()));
      if (failed(func.insertArgument(index, result.getType(), attributes, func.getLoc())))
        return failure();
      loss = addWeighed(b, func.getLoc(), result, func.getArgument(index), loss);
    }
  }
  terminator->setOperands(loss);
  func.removeResAttrsAttr();
  func.setFunctionType(b.getFunctionType(func.getArgumentTypes(), loss.getType()));
  return success();
}

static void setRange(func::FuncOp func, unsigned i, Argument &argument) {
  if (auto init = func.getArgAttrOfType<InitAttr>(i, FSDPDialect::initAttr)) {
    double a = init.getA().convertToDouble();
    double half = init.getKind() == InitKind::constant || argument.type.getRank() < 2
                      ? 0.5
                      : std::sqrt(3.0 / argument.type.getDimSize(0));
    argument.low = a - half;
    argument.high = a + half;
  }
  if (auto range = func.getArgAttrOfType<ArrayAttr>(i, rangeAttr); range && range.size() == 2) {
    argument.low = cast<FloatAttr>(range[0]).getValueAsDouble();
    argument.high = cast<FloatAttr>(range[1]).getValueAsDouble();
  }
  bool isLimited = false;
  for (StringRef name : {StringRef(limitAttr), StringRef(FSDPDialect::limitAttr)})
    if (auto limit = func.getArgAttrOfType<IntegerAttr>(i, name))
      argument.limit =
          isLimited ? std::min<int64_t>(argument.limit, limit.getInt()) : limit.getInt(),
      isLimited = true;
  if (auto extra = func.getArgAttrOfType<DenseI64ArrayAttr>(i, FSDPDialect::extraIdsAttr);
      extra && !extra.empty())
    argument.ignore = extra[0];
  if (auto ignore = func.getArgAttrOfType<IntegerAttr>(i, ignoreAttr))
    argument.ignore = ignore.getInt();
}

/// Describes the arguments. If some arguments are marked as parameters, the checked arguments are
/// those parameters that are float and trainable. If no argument is marked, all float arguments are
/// checked.
static LogicalResult describe(func::FuncOp func, Function &function) {
  function.name = func.getName().str();
  bool marked = llvm::any_of(llvm::seq<unsigned>(0, func.getNumArguments()), [&](unsigned i) {
    return func.getArgAttr(i, FSDPDialect::paramAttr);
  });
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
      return func.emitError("expected tensors of static shape as arguments, found ")
             << type << " as argument " << i;
    Argument argument;
    argument.type = tensor;
    auto name = func.getArgAttrOfType<StringAttr>(i, FSDPDialect::paramAttr);
    argument.name = name ? name.str() : "#" + std::to_string(i);
    bool weight = static_cast<bool>(func.getArgAttr(i, weightAttr));
    if (!marked && !weight && isFloatTensor(type))
      func.setArgAttr(i, FSDPDialect::paramAttr, StringAttr::get(func.getContext(), argument.name));
    argument.isChecked = isFloatTensor(type) && !weight && (!marked || name) &&
                         !func.getArgAttr(i, FSDPDialect::frozenAttr);
    setRange(func, i, argument);
    function.arguments.push_back(argument);
  }
  func.walk([&](Operation *op) {
    function.numOps += isa<linalg::LinalgOp>(op) || isa_and_nonnull<FSDPDialect>(op->getDialect());
    for (Value result : op->getResults())
      if (auto f = dyn_cast<FloatType>(getElementTypeOrSelf(result.getType())))
        function.precision = std::min(function.precision, f.getFPMantissaWidth());
  });
  for (const Argument &argument : function.arguments)
    if (auto f = dyn_cast<FloatType>(argument.type.getElementType()))
      function.precision = std::min(function.precision, f.getFPMantissaWidth());
  return success();
}

static void widenModule(ModuleOp module) {
  AttrTypeReplacer replacer;
  Type f64 = Float64Type::get(module.getContext());
  auto convert = [](APFloat v) {
    bool lost;
    v.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    return v;
  };
  replacer.addReplacement([=](FloatType) { return f64; });
  replacer.addReplacement([=](FloatAttr attr) {
    return std::make_pair(FloatAttr::get(f64, convert(attr.getValue())), WalkResult::skip());
  });
  replacer.addReplacement([=](DenseFPElementsAttr attr) {
    auto bits = [&](const APFloat &v) { return convert(v).bitcastToAPInt(); };
    return std::make_pair(
        cast<DenseFPElementsAttr>(cast<DenseElementsAttr>(attr).mapValues(f64, bits)),
        WalkResult::skip());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  module.walk([](Operation *op) {
    if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
  });
}

/// Makes the gradients wrong: in each backward computation, multiplies the result of op number `n`
/// by 1.0001.
static void spoil(ModuleOp module, unsigned n) {
  for (auto func : module.getOps<func::FuncOp>()) {
    SmallVector<linalg::GenericOp> backward;
    llvm::DenseSet<Operation *> forward;
    SmallVector<Value> worklist{func.getBody().front().getTerminator()->getOperand(0)};
    while (!worklist.empty())
      if (Operation *def = worklist.pop_back_val().getDefiningOp();
          def && forward.insert(def).second)
        llvm::append_range(worklist, def->getOperands());
    func.walk([&](linalg::GenericOp op) {
      if (!forward.contains(op) && isa<FloatType>(getElementTypeOrSelf(op.getResult(0))))
        backward.push_back(op);
    });
    if (n > backward.size())
      continue;
    Operation *yield = backward[n - 1].getBody()->getTerminator();
    OpBuilder b(yield);
    Value v = yield->getOperand(0);
    Value factor =
        arith::ConstantOp::create(b, yield->getLoc(), b.getFloatAttr(v.getType(), 1.0001));
    yield->setOperand(0, arith::MulFOp::create(b, yield->getLoc(), v, factor));
  }
}

LogicalResult gradcheck::checkSizes(ModuleOp module) {
  constexpr uint64_t limit = 1 << 24;
  for (auto func : module.getOps<func::FuncOp>()) {
    uint64_t total = 0, most = 0;
    Value largest;
    auto count = [&](Value v) {
      auto type = dyn_cast<RankedTensorType>(v.getType());
      if (!type || !type.hasStaticShape())
        return;
      uint64_t elements = 1;
      for (int64_t dim : type.getShape())
        elements = llvm::SaturatingMultiply<uint64_t>(elements, dim);
      total = llvm::SaturatingAdd(total, elements);
      if (elements > most)
        most = elements, largest = v;
    };
    llvm::for_each(func.getArguments(), count);
    func.walk([&](Operation *op) { llvm::for_each(op->getResults(), count); });
    if (total <= limit)
      continue;
    InFlightDiagnostic diag =
        emitError(func.getLoc(), "expected at most 2^24 elements in all tensors of '@")
        << func.getName() << "', found more; check a smaller model of its kind";
    diag.attachNote(largest.getLoc()) << "the largest is " << largest.getType();
    return diag;
  }
  return success();
}

static LogicalResult normalize(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  pm.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  pm.addPass(createCanonicalizerPass());
  return pm.run(module);
}

FailureOr<Subject> gradcheck::prepare(OwningOpRef<ModuleOp> module, StringRef onlyFunction,
                                      bool widen, unsigned sabotage) {
  Subject subject;
  if (widen)
    widenModule(*module);
  if (failed(normalize(*module)) || failed(checkSizes(*module)))
    return failure();
  for (auto func : llvm::to_vector(module->getOps<func::FuncOp>())) {
    if (func.isPrivate() || (!onlyFunction.empty() && func.getName() != onlyFunction)) {
      func.erase();
      continue;
    }
    if (failed(makeLoss(func)) || failed(describe(func, subject.functions.emplace_back())))
      return failure();
  }
  subject.forward = cast<ModuleOp>(module->clone());
  widenModule(*subject.forward);
  for (Function &function : subject.functions)
    if (failed(holdStopped(subject.forward->lookupSymbol<func::FuncOp>(function.name), function)))
      return failure();
  PassManager pm(module->getContext());
  buildDifferentiatePipeline(pm, StepOptions());
  if (failed(pm.run(*module)))
    return failure();
  for (Function &function : subject.functions) {
    auto func = module->lookupSymbol<func::FuncOp>(function.name);
    function.loss = cast<RankedTensorType>(func.getResultTypes()[0]);
    for (unsigned i = 1; i < func.getNumResults(); ++i) {
      function.gradients.push_back(
          func.getResultAttrOfType<IntegerAttr>(i, FSDPDialect::gradientAttr).getInt());
      function.types.push_back(cast<RankedTensorType>(func.getResultTypes()[i]));
    }
  }
  if (sabotage)
    spoil(*module, sabotage);
  subject.gradient = std::move(module);
  return subject;
}
