//===- VerifyImported.cpp - The model contract ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Verifies the model contract (docs/explanation/pipeline.md §1). Reports an error, with advice if
// available, for each violation:
//
//   module      more than one function; a seed that is not i64; values that fit no parameter
//   arguments   neither parameter nor batch input; dynamic shapes; equal or unprintable names
//   result      anything but one rank-0 float, the loss
//   top level   ops outside the vocabulary; tensors of complex or index elements
//   lookups     ids that may be outside the table or the classes
//   bodies      ops other than arith, math and linalg.index; captured values
//   integers    divisors that may be 0; shifts by too many bits
//
// Reports at most eight errors per op name.
//
//===----------------------------------------------------------------------===//

#include "Interface/Advice.h"
#include "Interface/Positions.h"
#include "Lookups/CheckLookups.h"
#include "Lookups/Lookups.h"
#include "Structure/Structured.h"
#include "fsdp/Analysis/AttentionTiles.h"
#include "fsdp/IR/CheckTexts.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/StopGradient.h"
#include "fsdp/Import/Passes.h"
#include "fsdp/Import/Traps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYIMPORTEDPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct VerifyImportedPass : public fsdp::impl::VerifyImportedPassBase<VerifyImportedPass> {
  using VerifyImportedPassBase::VerifyImportedPassBase;
  void runOnOperation() override;

private:
  LogicalResult verifyModule();
  LogicalResult verifyValues();
  LogicalResult verifyArguments();
  LogicalResult verifyInteger(BlockArgument arg, StringAttr name);
  LogicalResult verifyResult();
  LogicalResult verifyOp(Operation *op);
  LogicalResult verifyLookup(const RowLookup &lookup);
  LogicalResult verifyBody(linalg::LinalgOp op);

  func::FuncOp func;
  IdRanges ranges;
};
} // namespace

LogicalResult VerifyImportedPass::verifyModule() {
  ranges = {};
  for (Operation &op : *getOperation().getBody()) {
    auto candidate = dyn_cast<func::FuncOp>(&op);
    if (candidate && candidate.isExternal())
      return candidate.emitError("function '@")
             << candidate.getSymName()
             << "' has no body; define it in the module, or remove the calls";
    if (!candidate || candidate.isPrivate() || func)
      return op.emitError("expected one public function and nothing else in the module");
    func = candidate;
  }
  if (!func)
    return emitError(getOperation().getLoc(), "expected one public function in the module");
  if (!llvm::hasSingleElement(func.getBody()))
    return emitError(func.getLoc(), "expected straight-line code; ") << adviceForOp("cf.br");
  return success();
}

/// Verifies the seed and the initial values that the model carries.
LogicalResult VerifyImportedPass::verifyValues() {
  Location loc = getOperation().getLoc();
  LogicalResult result = success();
  Attribute seed = getOperation()->getAttr(FSDPDialect::seedAttr);
  if (auto number = dyn_cast_or_null<IntegerAttr>(seed);
      seed && !(number && number.getType().isInteger(64)))
    result = emitError(loc) << "expected 'fsdp.seed' of type i64, found " << seed;
  Attribute attr = getOperation()->getAttr(FSDPDialect::valuesAttr);
  auto values = dyn_cast_or_null<DictionaryAttr>(attr);
  if (attr && !values)
    return emitError(loc) << "expected a dictionary 'fsdp.values', found " << attr;
  llvm::StringMap<BlockArgument> params;
  for (BlockArgument arg : func.getArguments())
    if (auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::paramAttr))
      params[name.getValue()] = arg;
  for (NamedAttribute named : values ? values.getValue() : ArrayRef<NamedAttribute>()) {
    BlockArgument arg = params.lookup(named.getName());
    if (!arg) {
      result = emitError(loc) << "'fsdp.values' has values for " << named.getName()
                              << ", which is no parameter of '@" << func.getSymName() << "'";
      continue;
    }
    auto value = dyn_cast<ElementsAttr>(named.getValue());
    ShapedType type = value ? value.getShapedType() : ShapedType();
    Type element = getElementTypeOrSelf(arg);
    bool fits = type && (isa<FloatType>(element) ? isa<FloatType>(type.getElementType())
                                                 : type.getElementType() == element);
    if (!fits || type.getShape() != cast<ShapedType>(arg.getType()).getShape()) {
      InFlightDiagnostic diag = emitError(arg.getLoc())
                                << "parameter " << named.getName() << " expected "
                                << (isa<FloatType>(element) ? "float values of its shape, "
                                                            : "values of its type, ")
                                << arg.getType();
      if (type)
        diag << ", found " << type;
      result = diag;
    } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
      AsmResourceBlob *blob = resource.getRawHandle().getBlob();
      size_t expected = type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
      if (!blob)
        result = emitError(arg.getLoc())
                 << "the values of parameter " << named.getName()
                 << " are missing: the module was printed without its resources";
      else if (blob->getData().size() != expected)
        result = emitError(arg.getLoc())
                 << "the values of parameter " << named.getName() << " expected " << expected
                 << " bytes, found " << blob->getData().size();
    }
  }
  return result;
}

/// Verifies that an integer parameter is frozen, and that its type can represent the initial value,
/// which must be a constant.
LogicalResult VerifyImportedPass::verifyInteger(BlockArgument arg, StringAttr name) {
  auto type = cast<RankedTensorType>(arg.getType());
  auto fail = [&] {
    return emitError(arg.getLoc())
           << "parameter '" << name.getValue() << "' of " << type.getElementType() << " expected ";
  };
  if (!func.getArgAttr(arg.getArgNumber(), FSDPDialect::frozenAttr))
    return fail() << "'fsdp.frozen': integers are not trained";
  auto init = func.getArgAttrOfType<InitAttr>(arg.getArgNumber(), FSDPDialect::initAttr);
  if (!init)
    return success(); // verifyArguments(), the caller, reports that the initial value is missing
  unsigned width = type.getElementTypeBitWidth();
  llvm::APSInt value(width, /*isUnsigned=*/width == 1);
  bool isExact = false;
  if (init.getKind() == InitKind::constant)
    init.getA().convertToInteger(value, APFloat::rmTowardZero, &isExact);
  if (!isExact)
    return fail() << "one integer that it can hold in 'fsdp.init', as in #fsdp.init<constant, 1.0, "
                     "0.0>, found "
                  << init;
  return success();
}

LogicalResult VerifyImportedPass::verifyArguments() {
  llvm::StringMap<BlockArgument> names;
  LogicalResult result = success();
  for (BlockArgument arg : func.getArguments()) {
    unsigned i = arg.getArgNumber();
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type || !type.hasStaticShape()) {
      result = emitError(arg.getLoc())
               << "argument " << i << " expected a tensor of static shape, found " << arg.getType()
               << "; export with fixed batch and sequence lengths";
      continue;
    }
    auto param = func.getArgAttrOfType<StringAttr>(i, FSDPDialect::paramAttr);
    auto batch = func.getArgAttrOfType<StringAttr>(i, FSDPDialect::batchAttr);
    if (func.getArgAttr(i, FSDPDialect::keyAttr) && !param && !batch)
      continue;
    if (!param == !batch) {
      result = emitError(arg.getLoc())
               << "argument " << i << " expected either 'fsdp.param' or 'fsdp.batch'";
      continue;
    }
    if (param && !func.getArgAttrOfType<InitAttr>(i, FSDPDialect::initAttr))
      result = emitError(arg.getLoc())
               << "parameter '" << param.getValue() << "' expected 'fsdp.init'";
    if (param && isa<IntegerType>(type.getElementType()) && isStoredInteger(type.getElementType()))
      result = failed(verifyInteger(arg, param)) ? failure() : result;
    else if (param && !isStoredElement(type.getElementType()))
      result = emitError(arg.getLoc())
               << "parameter '" << param.getValue()
               << "' expected a tensor of f64, f32, f16 or bf16, or of integers of 1, 8, 16, 32 or "
                  "64 bits, found "
               << type;
    if (batch && !isStoredElement(type.getElementType()))
      result = emitError(arg.getLoc())
               << "batch input '" << batch.getValue()
               << "' expected elements of f64, f32, f16 or bf16, or integers of 1, 8, 16, 32 or 64 "
                  "bits, found "
               << type;
    if (Attribute limit = func.getArgAttr(i, FSDPDialect::limitAttr))
      if (auto number = dyn_cast<IntegerAttr>(limit); !number || number.getInt() < 1)
        result = emitError(arg.getLoc())
                 << "argument " << i << " expected 'fsdp.limit' of at least 1, found " << limit;
    if (Attribute extra = func.getArgAttr(i, FSDPDialect::extraIdsAttr))
      if (!isa<DenseI64ArrayAttr>(extra) || !func.getArgAttr(i, FSDPDialect::limitAttr))
        result = emitError(arg.getLoc())
                 << "argument " << i
                 << " expected 'fsdp.extra_ids' as array<i64: ..> beside 'fsdp.limit', found "
                 << extra;
    StringRef name = param ? param.getValue() : batch.getValue();
    auto [it, fresh] = names.try_emplace(name, arg);
    if (!fresh) {
      InFlightDiagnostic diag = emitError(arg.getLoc())
                                << "two arguments are called '" << name << "'";
      diag.attachNote(it->second.getLoc()) << "the first argument of this name is here";
      result = diag;
    }
  }
  return result;
}

LogicalResult VerifyImportedPass::verifyResult() {
  unsigned results = func.getNumResults();
  for (; results > 1 && isLookupCheck(func, results - 1); --results)
    if (func.getResultTypes()[results - 1] !=
        RankedTensorType::get({}, IntegerType::get(&getContext(), 64)))
      return emitError(func.getLoc(), "expected result ")
             << results - 1 << ", the check of a lookup, as tensor<i64>, found "
             << func.getResultTypes()[results - 1];
  if (results != 1) {
    return emitError(func.getLoc(), "expected one result, the loss; found ")
           << results << "; return the loss alone from the exported function";
  }
  auto type = dyn_cast<RankedTensorType>(func.getResultTypes()[0]);
  if (type && type.getRank() == 0 &&
      (type.getElementType().isF32() || type.getElementType().isF64()))
    return success();
  InFlightDiagnostic diag = emitError(func.getLoc(), "expected the loss as tensor<f32>, found ")
                            << func.getResultTypes()[0];
  if (type && type.getRank() >= 2 && isa<FloatType>(type.getElementType()))
    diag << "; for logits of shape [.., vocabulary] give --attach-loss=cross_entropy";
  else if (type && type.getNumElements() == 1 && type.hasStaticShape())
    diag << "; reduce it to rank 0 and f32";
  return diag;
}

/// Returns whether kernels can compute with `type`, or whether it is a tensor of static shape with
/// such elements.
static bool isPlain(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    if (!tensor.hasStaticShape())
      return false;
    type = tensor.getElementType();
  }
  return isComputedElement(type);
}

static InFlightDiagnostic refuse(Operation *op, const Twine &what) {
  InFlightDiagnostic diag = op->emitError() << "'" << op->getName() << "' " << what;
  StringRef advice = adviceForOp(op->getName().getStringRef());
  if (!advice.empty())
    diag << "; " << advice;
  return diag;
}

LogicalResult VerifyImportedPass::verifyBody(linalg::LinalgOp op) {
  LogicalResult result = success();
  op->getRegion(0).walk([&](Operation *inner) {
    bool scalar = isa_and_nonnull<arith::ArithDialect, math::MathDialect>(inner->getDialect()) &&
                  inner->getNumRegions() == 0;
    if (!scalar && !isa<linalg::IndexOp, linalg::YieldOp>(inner)) {
      result = refuse(inner, "is not supported inside a structured op");
      return;
    }
    for (Type type : inner->getResultTypes())
      if (!isComputedElement(type)) {
        result = refuse(inner, "has a result of type ")
                 << type << "; expected f64, f32, f16, bf16 or an integer of at most 64 bits";
        return;
      }
    for (Value operand : inner->getOperands()) {
      bool inside = op->getRegion(0).isAncestor(operand.getParentRegion());
      if (!inside && !matchPattern(operand, m_Constant()))
        result = inner->emitError(
            "captures a value from outside its structured op; expected an operand");
    }
    if (auto flags = dyn_cast<arith::ArithFastMathInterface>(inner))
      if (flags.getFastMathFlagsAttr() &&
          flags.getFastMathFlagsAttr().getValue() != arith::FastMathFlags::none)
        result = inner->emitError(
            "carries fast-math flags, expected none: the order of operations is part of the model");
  });
  return result;
}

LogicalResult VerifyImportedPass::verifyLookup(const RowLookup &lookup) {
  if (!lookup.admits(ranges.getSet(lookup.ids)))
    return refuse(lookup.op, "has ids that may be outside ")
           << "the " << lookup.what << "; expected them in [0, " << lookup.extent << ")";
  llvm::SmallPtrSet<void *, 16> seen;
  SmallVector<BlockArgument> arguments;
  IdRanges::collectIdArguments(lookup.ids, seen, arguments);
  for (BlockArgument arg : arguments) {
    auto extra =
        func.getArgAttrOfType<DenseI64ArrayAttr>(arg.getArgNumber(), FSDPDialect::extraIdsAttr);
    for (int64_t id : extra ? extra.asArrayRef() : ArrayRef<int64_t>()) {
      IdRanges alone;
      alone.assume(arg, IntegerRange::of(id));
      if (!lookup.admits(alone.getSet(lookup.ids)))
        return refuse(lookup.op, "looks up ")
               << "the extra id " << id << " of argument " << arg.getArgNumber()
               << ", which is not one of the " << lookup.what;
    }
  }
  return success();
}

LogicalResult VerifyImportedPass::verifyOp(Operation *op) {
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (!isPlain(type)) {
      refuse(op, "") << "has the type " << type
                     << "; expected tensors of static shape of f64, f32, f16, bf16 or integers of "
                        "at most 64 bits";
      return failure();
    }
  if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    if (!isa<linalg::GenericOp, linalg::ContractOp, linalg::FillOp>(op))
      return refuse(op, "was not normalised");
    return verifyBody(structured);
  }
  if (std::optional<RowLookup> lookup = getRowLookup(op))
    return verifyLookup(*lookup);
  if (auto attention = dyn_cast<AttentionOp>(op);
      attention && AttentionTiles(attention).isFullyMasked())
    emitWarning(op->getLoc(),
                "the mask of this attention keeps no key in any row: the result is zero");
  if (isa<linalg::SoftmaxOp, AttentionOp, RandomOp, StopGradientOp, func::ReturnOp>(op))
    return success();
  if (isa<tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
          tensor::InsertSliceOp, tensor::ConcatOp, tensor::ExtractOp, tensor::FromElementsOp,
          tensor::SplatOp, tensor::CastOp, tensor::InsertOp>(op)) {
    bool dynamic = false; // whether an offset, a size or a stride is an operand and not a constant
    if (auto slice = dyn_cast<OffsetSizeAndStrideOpInterface>(op))
      dynamic =
          !slice.getOffsets().empty() || !slice.getSizes().empty() || !slice.getStrides().empty();
    return dynamic ? LogicalResult(refuse(op, "has offsets or sizes that are not constant"))
                   : success();
  }
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    if (!pad.getConstantPaddingValue())
      return refuse(op, "pads with a value that is not one scalar");
    return success();
  }
  if (isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
      op->getNumRegions() == 0)
    return success();
  return refuse(op, "is not supported");
}

void VerifyImportedPass::runOnOperation() {
  if (failed(verifyModule()) || failed(checkTexts(getOperation())))
    return signalPassFailure();
  bool failedAny = failed(verifyArguments()) || failed(verifyValues());
  failedAny |= failed(verifyResult());
  llvm::StringMap<unsigned> reported;
  for (Operation &op : func.getBody().front()) {
    ++numOps;
    if (reported.lookup(op.getName().getStringRef()) < 8 && failed(verifyOp(&op))) {
      ++reported[op.getName().getStringRef()];
      failedAny = true;
    }
  }
  func.walk([&](Operation *op) { failedAny |= failed(refuseTraps(op)); });
  if (failedAny)
    signalPassFailure();
}
