//===- ReadDropoutMarkers.cpp - Raise dropout markers -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   func.func private @fsdp.dropout.0(tensor<4x8xf32>) -> tensor<4x8xf32>
//       attributes {fsdp.dropout = 0.1 : f64}
//   %y = call @fsdp.dropout.0(%x)     ->   %f = fsdp.random bernoulli keep 0.9 seed %seed
//                                               step %step first %sample site 0 per_sample 16
//                                          %y = %x * %f
//
//  1. A marker is a function without a body that has the attribute `fsdp.dropout`, or whose name is
//     `fsdp.dropout` or begins with `fsdp.dropout.` or `fsdp.dropout_`. The attribute is the
//     probability p of a zero.
//  2. In program order, each call of a marker gets a `site`, which is a number that no other random
//     op has. A call with p = 0 is replaced by its operand. If a function that calls a marker was
//     inlined twice, the two copies of the call have different sites and thus different random
//     numbers.
//  3. The random factor has the type f32, or f64 if the tensor is f64. The product has the type of
//     the tensor.
//  4. The random numbers of a sample must not depend on the rank that processes the sample. The
//     first dimension of the tensor must therefore be the batch. If the preceding ops do not prove
//     this (BatchPlace.h), the pass warns.
//  5. Arguments with `fsdp.key` (seed, step and first sample) are added if they are missing.
//
// This pass runs after functions are inlined and parameters are marked. The time is O(ops).
//
//===----------------------------------------------------------------------===//

#include "Interface/BatchPlace.h"
#include "Interface/Positions.h"
#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/Import/Passes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_READDROPOUTMARKERSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static constexpr llvm::StringLiteral dropoutAttr = "fsdp.dropout";

/// Largest number of elements per sample that the constraint (C3) of fsdp.random allows.
static constexpr int64_t maxPerSample = int64_t(1) << 33;

namespace {
struct ReadDropoutMarkersPass
    : public fsdp::impl::ReadDropoutMarkersPassBase<ReadDropoutMarkersPass> {
  using ReadDropoutMarkersPassBase::ReadDropoutMarkersPassBase;
  void runOnOperation() override;

private:
  LogicalResult readDeclarations();
  LogicalResult readBatch();
  LogicalResult check(func::CallOp call, const BatchPlaces &places);
  LogicalResult checkPlace(func::CallOp call, const BatchPlaces &places);
  Value getKey(StringRef name);
  int64_t nextSite();
  void replace(func::CallOp call);

  /// Probability p of each marker. The key is the name of the marker.
  llvm::StringMap<double> markers;
  func::FuncOp entry;
  SmallVector<BlockArgument> inputs; ///< arguments that are batch inputs
  int64_t batch = 0;
  llvm::DenseSet<int64_t> sites; ///< sites that random ops already have
  int64_t site = 0;
};
} // namespace

static bool isMarker(func::FuncOp func) {
  StringRef name = func.getSymName();
  bool isNamed = name.consume_front(dropoutAttr) &&
                 (name.empty() || name.starts_with(".") || name.starts_with("_"));
  return isNamed || func->hasAttr(dropoutAttr);
}

LogicalResult ReadDropoutMarkersPass::readDeclarations() {
  LogicalResult result = success();
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    if (!isMarker(func))
      continue;
    auto p = func->getAttrOfType<FloatAttr>(dropoutAttr);
    if (func.isExternal() && p && p.getValueAsDouble() >= 0 && p.getValueAsDouble() < 1) {
      markers[func.getSymName()] = p.getValueAsDouble();
      continue;
    }
    InFlightDiagnostic diag = mlir::emitError(func.getLoc());
    if (!func.isExternal())
      diag << "dropout marker '@" << func.getSymName() << "' must be a declaration, found a body";
    else if (Attribute found = func->getAttr(dropoutAttr))
      diag << "expected '" << dropoutAttr << "' of '@" << func.getSymName()
           << "' to be a probability in [0, 1), found " << describeNumber(found);
    else
      diag << "dropout marker '@" << func.getSymName() << "' has no attribute '" << dropoutAttr
           << "' (a probability)";
    diag.attachNote() << "declare it as 'func.func private @" << func.getSymName()
                      << "(tensor<..>) -> tensor<..> attributes {" << dropoutAttr
                      << " = 0.1 : f64}'";
    result = diag;
  }
  return result;
}

/// Finds the batch inputs and the batch size. The batch size is the size of the first dimension of
/// the input `tokens`. If no input has this name, all inputs must have the same first dimension.
LogicalResult ReadDropoutMarkersPass::readBatch() {
  BlockArgument deciding;
  bool agree = true;
  for (BlockArgument arg : entry.getArguments()) {
    unsigned i = arg.getArgNumber();
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (entry.getArgAttr(i, FSDPDialect::paramAttr) || entry.getArgAttr(i, FSDPDialect::keyAttr) ||
        !type || type.getRank() == 0)
      continue;
    auto name = entry.getArgAttrOfType<StringAttr>(i, FSDPDialect::batchAttr);
    if (name && name.getValue() == "tokens")
      deciding = arg;
    inputs.push_back(arg);
    agree &= type.getDimSize(0) == cast<RankedTensorType>(inputs[0].getType()).getDimSize(0);
  }
  if (!deciding && !inputs.empty() && agree)
    deciding = inputs.front();
  if (deciding) {
    batch = cast<RankedTensorType>(deciding.getType()).getDimSize(0);
    if (batch > 0)
      return success();
  }
  InFlightDiagnostic diag =
      mlir::emitError(entry.getLoc())
      << "dropout needs the number of samples, the first dimension of the batch inputs: ";
  if (deciding && batch == 0)
    diag << "expected at least 1 sample, found 0 in " << deciding.getType();
  else if (deciding)
    diag << "expected a static number, found " << deciding.getType();
  else
    diag << "found " << (inputs.empty() ? "no input" : "inputs whose first dimensions differ");
  for (BlockArgument input : inputs)
    diag.attachNote(input.getLoc())
        << "argument " << getPosition(input) << " is " << input.getType();
  if (!deciding && !inputs.empty())
    diag.attachNote(entry.getLoc()) << "the first dimension of an input named 'tokens' would be "
                                       "used: name one with --batch=INDEX=tokens";
  return diag;
}

/// Verifies that the first dimension of the operand of `call` is the batch.
LogicalResult ReadDropoutMarkersPass::checkPlace(func::CallOp call, const BatchPlaces &places) {
  auto type = cast<RankedTensorType>(call.getOperand(0).getType());
  BatchPlace place = places.get(call.getOperand(0));
  if (batch == 1 || place.isLeading())
    return success();
  if (place.kind == BatchPlace::Unknown) {
    call.emitWarning("cannot tell in which dimension of ")
        << type << " the samples lie; dropout takes them to be in dimension 0, so that its random "
        << "numbers may depend on the number of ranks";
    return success();
  }
  InFlightDiagnostic diag = call.emitError("dropout expected the ")
                            << batch << " samples of the batch in dimension 0 of " << type
                            << ", found ";
  if (place.kind == BatchPlace::None) {
    diag << "a tensor without them";
    diag.attachNote()
        << "this tensor is equal on all ranks, but each rank would drop different elements of "
           "it: apply dropout after adding it to a tensor of the samples";
  } else {
    diag << "them " << (place.outer > 1 ? "as the inner part of " : "in ") << "dimension "
         << place.dim;
    if (place.outer > 1)
      diag << ", after another dimension of size " << place.outer;
    diag.attachNote() << "the random numbers would depend on the number of ranks: transpose the "
                         "tensor before dropout, so that its first dimension is the batch";
  }
  return diag;
}

LogicalResult ReadDropoutMarkersPass::check(func::CallOp call, const BatchPlaces &places) {
  if (call->getParentOp() != entry) {
    auto caller = dyn_cast<func::FuncOp>(call->getParentOp());
    return call.emitError("a dropout marker must be called by '@")
           << entry.getSymName() << "' itself, found it in '"
           << (caller ? "@" + caller.getSymName().str()
                      : call->getParentOp()->getName().getStringRef().str())
           << "'";
  }
  auto type = call.getNumOperands() == 1 ? dyn_cast<RankedTensorType>(call.getOperand(0).getType())
                                         : RankedTensorType();
  if (!type || call.getNumResults() != 1 || call.getResult(0).getType() != type)
    return call.emitError("a dropout marker takes one ranked tensor and returns a tensor of its "
                          "type, found ")
           << call.getOperandTypes() << " -> " << call.getResultTypes();
  Type element = type.getElementType();
  if (!type.hasStaticShape() ||
      !(element.isF16() || element.isBF16() || element.isF32() || element.isF64()))
    return call.emitError("a dropout marker takes a static tensor of f16, bf16, f32 or f64, "
                          "found ")
           << type;
  if (markers[call.getCallee()] == 0)
    return success();
  int64_t first = type.getRank() == 0 ? 0 : type.getDimSize(0);
  if (first == 0 || first % batch != 0 || type.getNumElements() == 0) {
    InFlightDiagnostic diag = call.emitError("dropout expected a tensor whose first dimension is ")
                              << batch << ", the number of samples, or a multiple of it, found "
                              << type;
    diag.attachNote() << "the random numbers of a sample depend on its index in the batch; apply "
                         "dropout to a tensor of all samples whose dimension 0 is the batch";
    return diag;
  }
  if (type.getNumElements() / batch > maxPerSample)
    return call.emitError("dropout expected at most 2^33 elements per sample, found ")
           << type.getNumElements() / batch;
  return checkPlace(call, places);
}

/// Returns the argument with `fsdp.key = name`. If there is no such argument, appends one.
Value ReadDropoutMarkersPass::getKey(StringRef name) {
  for (BlockArgument arg : entry.getArguments())
    if (auto key = entry.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::keyAttr);
        key && key.getValue() == name)
      return arg;
  Builder b(&getContext());
  unsigned index = entry.getNumArguments();
  auto mark = b.getDictionaryAttr(
      b.getNamedAttr(FSDPDialect::keyAttr, StringAttr::get(&getContext(), name)));
  LogicalResult inserted =
      entry.insertArgument(index, RankedTensorType::get({}, b.getI64Type()), mark,
                           NameLoc::get(b.getStringAttr(name), entry.getLoc()));
  assert(succeeded(inserted) && "the entry is no declaration");
  (void)inserted;
  return entry.getArgument(index);
}

int64_t ReadDropoutMarkersPass::nextSite() {
  while (sites.contains(site))
    ++site;
  return site++;
}

void ReadDropoutMarkersPass::replace(func::CallOp call) {
  Value x = call.getOperand(0);
  double p = markers[call.getCallee()];
  if (p == 0) {
    call.getResult(0).replaceAllUsesWith(x);
    return call.erase();
  }
  OpBuilder b(call);
  Location loc = call.getLoc();
  auto type = cast<RankedTensorType>(x.getType());
  Type narrow = type.getElementType(), wide = narrow.isF64() ? narrow : Type(b.getF32Type());
  auto factor = RandomOp::create(
      b, loc, type.clone(wide), RandomKindAttr::get(&getContext(), RandomKind::bernoulli),
      b.getF64FloatAttr(1 - p), getKey("seed"), getKey("step"), getKey("sample"),
      b.getI64IntegerAttr(nextSite()), b.getI64IntegerAttr(type.getNumElements() / batch));
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), narrow);
  SmallVector<AffineMap> maps(3, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto product = linalg::GenericOp::create(b, loc, type, ValueRange{x, factor}, empty, maps, loops,
                                           [&](OpBuilder &b, Location loc, ValueRange args) {
                                             Value value = args[0];
                                             if (narrow != wide)
                                               value = arith::ExtFOp::create(b, loc, wide, value);
                                             value = arith::MulFOp::create(b, loc, value, args[1]);
                                             if (narrow != wide)
                                               value =
                                                   arith::TruncFOp::create(b, loc, narrow, value);
                                             linalg::YieldOp::create(b, loc, value);
                                           });
  call.getResult(0).replaceAllUsesWith(product.getResult(0));
  call.erase();
}

void ReadDropoutMarkersPass::runOnOperation() {
  // Drop the state of the previous module.
  markers.clear();
  inputs.clear();
  sites.clear();
  batch = site = 0;
  if (failed(readDeclarations()))
    return signalPassFailure();
  if (markers.empty())
    return;
  SmallVector<func::CallOp> calls;
  bool drops = false;
  getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto random = dyn_cast<RandomOp>(op))
      sites.insert(random.getSite());
    if (auto random = dyn_cast<RandomElementOp>(op))
      sites.insert(random.getSite());
    auto call = dyn_cast<func::CallOp>(op);
    if (call && markers.contains(call.getCallee())) {
      calls.push_back(call);
      drops |= markers[call.getCallee()] != 0;
    }
  });
  entry = getEntry(getOperation());
  if (!entry || (drops && failed(readBatch())))
    return entry ? signalPassFailure() : void();
  BatchPlaces places(entry, inputs, batch);
  bool failedAny = false;
  for (func::CallOp call : calls)
    failedAny |= failed(check(call, places));
  if (failedAny)
    return signalPassFailure();
  for (func::CallOp call : calls)
    replace(call);
  numMarkers += calls.size();
  for (auto func : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
    if (isMarker(func) && SymbolTable::symbolKnownUseEmpty(func, getOperation()))
      func.erase();
}
