//===- BindBuffers.cpp - Bind the contents of buffers -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Replaces constants and arguments by the contents that `--buffer=NAME|INDEX=CONTENTS` gives.
//
//   constant dense_resource<__elided__> : tensor<1024x1024xi1>
//     --buffer=142=causal ->  linalg.generic { linalg.index 1 <= linalg.index 0 }
//
//  1. Find the constant or argument of each option. NAME is a resource key, the name in a location,
//     or the name of a batch input. INDEX is a position in the file. If both constants and an
//     argument have this position, an integer constant without content is chosen first, then the
//     argument, and then any other constant.
//  2. Build the contents. For the contents `causal`, build a comparison of loop indices instead of
//     a table, because a comparison can be fused with other ops. The values of a causal buffer
//     depend on its uses. A buffer that is the condition of a select is true on and below the
//     diagonal. If the select masks scores where the condition is true, the buffer is instead true
//     above the diagonal. A buffer that is added to scores is 0 on and below the diagonal, and -inf
//     above it. Any other buffer is 1 on and below the diagonal, and 0 above it.
//  3. Also replace each boolean table in the file that has causal values by a comparison of
//     indices.
//  4. For an integer constant without content, or a boolean argument without a mark, emit an error
//     that suggests a --buffer option.
//
// LiftParameters.cpp converts float constants without content to parameters.
//
//===----------------------------------------------------------------------===//

#include "Interface/BufferContents.h"
#include "Interface/Positions.h"
#include "fsdp/Import/Passes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_BINDBUFFERSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// One option `--buffer=TARGET=CONTENTS`.
struct Binding {
  std::string target, contents;
};

struct BindBuffersPass : public fsdp::impl::BindBuffersPassBase<BindBuffersPass> {
  using BindBuffersPassBase::BindBuffersPassBase;
  void runOnOperation() override;

private:
  SmallVector<Value> findTargets(StringRef target);
  LogicalResult bind(Value buffer, const Binding &binding);
  LogicalResult checkArguments();
  void refuseUnknown(Operation *constant);

  func::FuncOp func;
  SmallVector<Operation *> tables;
};
} // namespace

/// Returns whether the values of a table are missing in the file and are not floats.
static bool isUnknown(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return isElided(op) && !isa<FloatType>(type.getElementType());
}

SmallVector<Value> BindBuffersPass::findTargets(StringRef target) {
  SmallVector<Value> found;
  int64_t index;
  if (target.getAsInteger(10, index)) { // a name
    for (Operation *op : tables)
      if (resourceKey(op) == target && (target != "__elided__" || isUnknown(op)))
        found.push_back(op->getResult(0));
    for (BlockArgument arg : func.getArguments()) {
      auto batch = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::batchAttr);
      if (nameFromLocation(arg.getLoc()) == target || (batch && batch.getValue() == target))
        found.push_back(arg);
    }
    return found;
  }
  for (bool unknown : {true, false}) {
    for (Operation *op : tables)
      if (getPosition(op) == index && isUnknown(op) == unknown)
        found.push_back(op->getResult(0));
    if (!found.empty())
      break;
    for (BlockArgument arg : func.getArguments())
      if (getPosition(arg) == index)
        return {arg};
  }
  return found;
}

/// Returns whether `value` is a constant of at most -1e4. Follows bodies, fills, casts and views to
/// find the constant.
static bool isMaskedScore(Value value) {
  for (unsigned depth = 0; depth < 8; ++depth) {
    FloatAttr scalar;
    DenseFPElementsAttr splat;
    if (matchPattern(value, m_Constant(&scalar)))
      return scalar.getValueAsDouble() <= -1e4;
    if (matchPattern(value, m_Constant(&splat)))
      return splat.isSplat() && splat.getSplatValue<APFloat>().convertToDouble() <= -1e4;
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      auto generic = dyn_cast<linalg::GenericOp>(arg.getOwner()->getParentOp());
      if (!generic)
        return false;
      value = generic->getOperand(arg.getArgNumber());
    } else if (auto generic = value.getDefiningOp<linalg::GenericOp>()) {
      value =
          generic.getBody()->getTerminator()->getOperand(cast<OpResult>(value).getResultNumber());
    } else if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
      value = fill.getInputs()[0];
    } else if (Operation *op = value.getDefiningOp();
               isa_and_nonnull<arith::TruncFOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                               linalg::BroadcastOp>(op)) {
      value = op->getOperand(0);
    } else {
      return false;
    }
  }
  return false;
}

/// Returns the form of a causal mask that the uses of `buffer` require. Also considers the uses of
/// views, copies and negations of `buffer`. `flipped` is true if `buffer` results from an odd
/// number of negations of the mask.
static CausalForm formFromUses(Value buffer, bool flipped = false, unsigned depth = 0) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(buffer.getType()));
  CausalForm unclear = flipped ? CausalForm::Masked : CausalForm::Allowed;
  if (depth > 16)
    return unclear;
  for (OpOperand &use : buffer.getUses()) {
    Operation *op = use.getOwner();
    if (auto select = dyn_cast<arith::SelectOp>(op); select && use.getOperandNumber() == 0)
      return isMaskedScore(select.getTrueValue()) != flipped ? CausalForm::Masked
                                                             : CausalForm::Allowed;
    if (isFloat && isa<arith::AddFOp>(op))
      return CausalForm::Additive;
    bool flips = flipped;
    if (isa<arith::XOrIOp>(op))
      flips = !flipped;
    if (isa<arith::CmpIOp, arith::CmpFOp, arith::MulFOp, arith::SubFOp>(op))
      continue;
    Value next;
    if (auto structured = dyn_cast<linalg::LinalgOp>(op))
      next = structured.getMatchingBlockArgument(&use);
    else if (isa<linalg::YieldOp>(op))
      next = op->getParentOp()->getResult(use.getOperandNumber());
    else if (op->getNumResults() == 1)
      next = op->getResult(0);
    if (!next || isa<FloatType>(getElementTypeOrSelf(next.getType())) != isFloat)
      continue;
    CausalForm form = formFromUses(next, flips, depth + 1);
    if (form != unclear)
      return form;
  }
  return unclear;
}

LogicalResult BindBuffersPass::bind(Value buffer, const Binding &binding) {
  auto type = dyn_cast<RankedTensorType>(buffer.getType());
  Location loc = buffer.getLoc();
  if (!type || !type.hasStaticShape())
    return emitError(loc) << "--buffer=" << binding.target
                          << ": expected a tensor of static shape, found " << buffer.getType();
  if (binding.contents == "keep") {
    Operation *op = buffer.getDefiningOp();
    if (!op || isElided(op))
      return emitError(loc) << "--buffer=" << binding.target
                            << "=keep: its content is not in the file";
    op->setDiscardableAttr(keepAttr, UnitAttr::get(&getContext()));
    return success();
  }
  OpBuilder b(&getContext());
  b.setInsertionPointToStart(&func.getBody().front());
  Value value;
  if (binding.contents == "causal") {
    if (type.getRank() < 2)
      return emitError(loc) << "--buffer=" << binding.target
                            << "=causal: expected a rank of at least 2, found " << type;
    value = buildCausal(b, loc, type, formFromUses(buffer));
  } else if (binding.contents == "zeros" || binding.contents == "ones") {
    value = buildSplat(b, loc, type, binding.contents == "ones");
  } else {
    FailureOr<Value> read = buildFromFile(b, loc, type, binding.contents);
    if (failed(read))
      return failure();
    value = *read;
    value.getDefiningOp()->setDiscardableAttr(keepAttr, b.getUnitAttr());
  }
  buffer.replaceAllUsesWith(value);
  if (auto arg = dyn_cast<BlockArgument>(buffer)) {
    if (failed(func.eraseArgument(arg.getArgNumber())))
      return failure();
  } else {
    Operation *op = buffer.getDefiningOp();
    llvm::erase(tables, op);
    op->erase();
  }
  ++numBound;
  return success();
}

/// Emits an error for each argument that is marked as a buffer (`train.buffer`) or has boolean
/// elements (a mask). Arguments that are marked as batch inputs or parameters are allowed.
LogicalResult BindBuffersPass::checkArguments() {
  for (BlockArgument arg : func.getArguments()) {
    bool marked = llvm::any_of(
        function_interface_impl::getArgAttrs(func, arg.getArgNumber()),
        [](NamedAttribute attr) { return attr.getName().getValue().ends_with(".buffer"); });
    bool isBool = getElementTypeOrSelf(arg.getType()).isInteger(1);
    if ((!isBool && !marked) || arg.use_empty() ||
        func.getArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr) ||
        func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr))
      continue;
    return emitError(arg.getLoc())
           << "the content of argument " << getPosition(arg) << ", " << arg.getType()
           << ", is not known; give it with --buffer=" << getPosition(arg)
           << "=CONTENTS, CONTENTS being causal (lower-triangular attention mask), zeros, ones, "
              "or a file (.npy or raw little-endian); or mark it {fsdp.batch = \"NAME\"} if "
              "it comes with each batch, {fsdp.param = \"NAME\"} if weights files hold it";
  }
  return success();
}

void BindBuffersPass::refuseUnknown(Operation *op) {
  std::string target = std::to_string(getPosition(op).value_or(0));
  InFlightDiagnostic diag = op->emitError("the content of this ")
                            << op->getResult(0).getType()
                            << " is not in the file (its text was elided); give it with --buffer="
                            << target << "=CONTENTS";
  if (resourceKey(op) != "__elided__")
    diag << " or --buffer=" << resourceKey(op) << "=CONTENTS";
  diag << ", CONTENTS being causal (lower-triangular attention mask), zeros, ones, or a file (.npy "
          "or raw little-endian)";
}

/// If a table is boolean and causal, builds a comparison of indices with equal values. Else returns
/// null.
static Value recogniseTable(OpBuilder &b, Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto value = constantValue(op);
  Type element = type.getElementType();
  if (!element.isInteger(1) || type.getRank() < 2)
    return nullptr;
  SmallVector<bool> bits;
  if (auto dense = dyn_cast<DenseIntElementsAttr>(value))
    bits = llvm::to_vector(dense.getValues<bool>());
  else if (auto resource = dyn_cast<DenseResourceElementsAttr>(value); resource && !isElided(op)) {
    ArrayRef<char> data = resource.getRawHandle().getBlob()->getData();
    if (static_cast<int64_t>(data.size()) != type.getNumElements())
      return nullptr;
    bits = llvm::to_vector(llvm::map_range(data, [](char c) { return c != 0; }));
  }
  int64_t columns = type.getDimSize(type.getRank() - 1), rows = type.getDimSize(type.getRank() - 2);
  bool allowed = !bits.empty(), masked = allowed;
  for (auto [i, bit] : llvm::enumerate(bits)) {
    bool below = static_cast<int64_t>(i % columns) <= static_cast<int64_t>(i / columns % rows);
    allowed &= bit == below;
    masked &= bit != below;
  }
  if (!allowed && !masked)
    return nullptr;
  return buildCausal(b, op->getLoc(), type, allowed ? CausalForm::Allowed : CausalForm::Masked);
}

/// Replaces a resource by inline values if it has integer elements or the mark `keep`.
static void readResource(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  auto resource = constant ? dyn_cast<DenseResourceElementsAttr>(constant.getValue()) : nullptr;
  if (!resource || isElided(op) ||
      (isa<FloatType>(resource.getType().getElementType()) && !op->hasAttr(keepAttr)))
    return;
  ArrayRef<char> data = resource.getRawHandle().getBlob()->getData();
  ShapedType type = resource.getType();
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> bits(llvm::map_range(data, [](char c) { return c != 0; }));
    constant.setValueAttr(DenseElementsAttr::get(type, ArrayRef<bool>(bits)));
  } else {
    constant.setValueAttr(DenseElementsAttr::getFromRawBuffer(type, data));
  }
}

void BindBuffersPass::runOnOperation() {
  func = getEntry(getOperation());
  if (!func)
    return;
  // Drop the tables of the previous module.
  tables.clear();
  func.walk([&](Operation *op) {
    if (isTable(op))
      tables.push_back(op);
  });
  // Find all targets first, because replacing an argument changes the indices of later arguments.
  SmallVector<std::pair<Value, Binding>> bindings;
  for (StringRef text : buffers) {
    Binding binding;
    std::tie(binding.target, binding.contents) =
        std::pair<std::string, std::string>(text.split('='));
    SmallVector<Value> targets = findTargets(binding.target);
    if (binding.contents.empty() || targets.empty()) {
      if (binding.contents.empty())
        emitError(func.getLoc(),
                  "--buffer expected NAME|INDEX=causal|zeros|ones|keep|FILE, found '")
            << text << "'";
      else
        emitError(func.getLoc(), "--buffer=")
            << text << ": '@" << func.getSymName() << "' has no constant or argument '"
            << binding.target << "'";
      return signalPassFailure();
    }
    for (Value target : targets) {
      auto arg = dyn_cast<BlockArgument>(target);
      if (auto param =
              arg ? func.getArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr) : Attribute()) {
        emitError(arg.getLoc()) << "--buffer=" << text << ": argument " << getPosition(arg)
                                << " is the parameter " << param
                                << "; a buffer is not trained: remove its 'fsdp.param'";
        return signalPassFailure();
      }
      bindings.emplace_back(target, binding);
    }
  }
  for (auto &[target, binding] : bindings)
    if (failed(bind(target, binding)))
      return signalPassFailure();
  if (failed(checkArguments()))
    return signalPassFailure();
  OpBuilder b(&getContext());
  for (Operation *op : tables) {
    b.setInsertionPoint(op);
    if (Value value = recogniseTable(b, op)) {
      op->getResult(0).replaceAllUsesWith(value);
      op->erase();
      ++numRecognised;
    } else if (isUnknown(op)) {
      refuseUnknown(op);
      signalPassFailure();
    } else {
      readResource(op);
    }
  }
}
