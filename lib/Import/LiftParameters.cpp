//===- LiftParameters.cpp - Name the parameters of a model ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decides which values are trained, and makes all of them named arguments.
//
//   func @f(%ids: tensor<4xi64>)              func @f(%ids: .., %w: tensor<8x8xf32>
//     %w = constant dense_resource<h_w>   ->            {fsdp.param = "h_w"})
//
//  1. Arguments are parameters when they carry `fsdp.param` or a foreign marker
//     (`train.param`), or are listed in --params or the sidecar. When nothing
//     says so: all float arguments before the first integer one.
//  2. Float `dense_resource` constants of rank ≥ 1 become parameters, each by
//     itself, before anything could merge two whose text was elided. Where no
//     argument is a parameter (a frozen module), float tables written in place do too.
//     Integers are never trained: an argument of them that is a parameter is frozen,
//     a constant stays one. A table that only reaches sin and cos (rotary frequencies) stays a constant.
//     Copies of one constant (inlined twice) and equal resource keys stay one.
//  3. Names: the marker's value, the argument's location, the resource key, else
//     `param.N`; then the sidecar's "rename". Values that are present stay with
//     the module, as `fsdp.values = {name = dense_resource<..>}`.
//
// Not done here: initial values of the others (InferInit.cpp), names of batch
// arguments (NameBatch.cpp).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Import/Passes.h"
#include "ParameterList.h"
#include "Positions.h"
#include "fsdp/IR/Kernels.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_LIFTPARAMETERSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct LiftParametersPass : public fsdp::impl::LiftParametersPassBase<LiftParametersPass> {
  using LiftParametersPassBase::LiftParametersPassBase;
  void runOnOperation() override;

private:
  LogicalResult markArguments();
  LogicalResult markArgument(BlockArgument arg, StringRef marker);
  LogicalResult liftConstants();
  LogicalResult checkAllUsed(unsigned given);
  std::string uniqueName(StringRef base);

  func::FuncOp func;
  ParameterList list;
  llvm::StringSet<> names;
  SmallVector<NamedAttribute> values;
};
} // namespace

/// What a parameter may be: floats, or integers that nothing trains.
static bool isParameterType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && (isa<FloatType>(tensor.getElementType()) || isStoredInteger(tensor.getElementType()));
}

static bool isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

/// The marker of an argument: `fsdp.param`, `train.param`, `x.parameter`; its
/// string, or an empty one for a unit attribute. Removes foreign attributes.
static std::optional<std::string> takeMarker(func::FuncOp func, unsigned index) {
  std::optional<std::string> marker;
  for (NamedAttribute attr : llvm::to_vector(ArrayRef<NamedAttribute>(function_interface_impl::getArgAttrs(func, index)))) {
    StringRef name = attr.getName().getValue();
    if (name.ends_with(".param") || name.ends_with(".parameter")) {
      auto text = dyn_cast<StringAttr>(attr.getValue());
      marker = text ? text.getValue().str() : "";
    }
    if (!name.starts_with("fsdp."))
      func.removeArgAttr(index, attr.getName());
  }
  return marker;
}

std::string LiftParametersPass::uniqueName(StringRef base) {
  std::string name = base.str();
  for (unsigned i = 1; !names.insert(name).second; ++i)
    name = (base + "." + Twine(i)).str();
  return name;
}

/// Gives an argument its name and what the sidecar says about it.
LogicalResult LiftParametersPass::markArgument(BlockArgument arg, StringRef marker) {
  std::string fromLoc = nameFromLocation(arg.getLoc());
  StringRef name = marker.empty() ? StringRef(fromLoc) : marker;
  SidecarEntry *entry = list.findSidecar(getPosition(arg), name, "");
  if (!isParameterType(arg.getType()))
    return emitError(arg.getLoc()) << "argument " << getPosition(arg) << " is listed as a parameter but has type "
                                   << arg.getType() << "; parameters are tensors of floats, or of integers of 1, 8, 16, "
                                   << "32 or 64 bits, which are not trained (see --params)";
  Builder b(&getContext());
  if (entry && !entry->rename.empty())
    name = entry->rename;
  std::string fallback = "param." + std::to_string(getPosition(arg));
  std::string unique = uniqueName(name.empty() ? StringRef(fallback) : name);
  if (unique != name && !name.empty() && !marker.empty())
    return emitError(arg.getLoc()) << "two parameters are called '" << name << "'; names must differ";
  func.setArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr, b.getStringAttr(unique));
  if (entry && entry->init)
    func.setArgAttr(arg.getArgNumber(), FSDPDialect::initAttr, entry->init);
  if ((entry && entry->frozen) || !isFloatTensor(arg.getType()))
    func.setArgAttr(arg.getArgNumber(), FSDPDialect::frozenAttr, b.getUnitAttr());
  ++numParameters;
  return success();
}

LogicalResult LiftParametersPass::markArguments() {
  SmallVector<std::optional<std::string>> markers;
  bool any = !list.items.empty(), marked = false, adds = false;
  for (BlockArgument arg : func.getArguments()) {
    markers.push_back(takeMarker(func, arg.getArgNumber()));
    std::string name = markers.back().value_or("");
    if (name.empty())
      name = nameFromLocation(arg.getLoc());
    bool listed = list.lists(getPosition(arg), name) || list.findSidecar(getPosition(arg), name, "");
    marked |= markers.back().has_value();
    adds |= listed && !markers.back();
    if (listed && !markers.back())
      markers.back() = "";
    any |= markers.back().has_value();
  }
  if (marked && !list.items.empty() && !adds)
    emitWarning(func.getLoc(), "--params has no effect: '@")
        << func.getSymName() << "' marks these parameters itself, and --params takes none away (--freeze does not train some)";
  for (BlockArgument arg : func.getArguments())
    if (marked && !markers[arg.getArgNumber()] && isFloatTensor(arg.getType()) &&
        !func.getArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr))
      emitWarning(arg.getLoc()) << "argument " << getPosition(arg)
                                << " carries neither 'fsdp.param' nor 'fsdp.batch'; it becomes a batch input";
  // The default needs an integer argument: without one, which float is the batch?
  if (!any && !llvm::all_of(func.getArgumentTypes(), isFloatTensor))
    for (BlockArgument arg : func.getArguments()) {
      if (!isFloatTensor(arg.getType()))
        break;
      if (!func.getArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr))
        markers[arg.getArgNumber()] = "";
    }
  for (BlockArgument arg : func.getArguments())
    if (markers[arg.getArgNumber()] && failed(markArgument(arg, *markers[arg.getArgNumber()])))
      return failure();
  return success();
}

/// All uses lead into sin and cos: a table of rotary frequencies.
static bool isFrequencyTable(Operation *constant) {
  SmallVector<Operation *> work(constant->getUsers().begin(), constant->getUsers().end());
  llvm::SmallPtrSet<Operation *, 16> seen;
  bool reaches = false;
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!seen.insert(op).second)
      continue;
    bool periodic = isa<math::SinOp, math::CosOp>(op);
    op->walk([&](Operation *inner) { periodic |= isa<math::SinOp, math::CosOp>(inner); });
    reaches |= periodic;
    if (periodic)
      continue;
    if (seen.size() > 64 || op->hasTrait<OpTrait::IsTerminator>())
      return false;
    work.append(op->getUsers().begin(), op->getUsers().end());
  }
  return reaches;
}

LogicalResult LiftParametersPass::liftConstants() {
  bool frozen = numParameters == 0; // no argument is a parameter
  llvm::MapVector<Attribute, SmallVector<Operation *>> groups;
  func.walk([&](Operation *op) {
    auto type = op->getNumResults() == 1 ? dyn_cast<RankedTensorType>(op->getResult(0).getType()) : nullptr;
    if (!type || !isTable(op) || !isa<FloatType>(type.getElementType()) || op->hasAttr(keepAttr))
      return;
    if ((resourceKey(op).empty() && !frozen) || isFrequencyTable(op))
      return;
    Attribute key = op->getAttr(positionAttr);
    if (!resourceKey(op).empty() && !isElided(op))
      key = constantValue(op);
    groups[key ? key : Attribute(IntegerAttr::get(IndexType::get(&getContext()), groups.size()))].push_back(op);
  });
  for (auto &[key, ops] : groups) {
    Operation *first = ops.front();
    StringRef resource = resourceKey(first);
    std::string fromLoc = nameFromLocation(first->getLoc());
    StringRef name = fromLoc.empty() && resource != "__elided__" ? resource : StringRef(fromLoc);
    std::optional<int64_t> position = getPosition(first);
    SidecarEntry *entry = list.findSidecar(std::nullopt, fromLoc, resource);
    if (!entry && position && func.getNumArguments() <= *position)
      entry = list.findSidecar(position, "", "");
    if (entry && !entry->rename.empty())
      name = entry->rename;
    std::string fallback = "param." + std::to_string(position.value_or(numLifted));
    Builder b(&getContext());
    SmallVector<NamedAttribute> attrs{
        b.getNamedAttr(FSDPDialect::paramAttr, b.getStringAttr(uniqueName(name.empty() ? StringRef(fallback) : name)))};
    if (entry && entry->init)
      attrs.push_back(b.getNamedAttr(FSDPDialect::initAttr, entry->init));
    if (entry && entry->frozen)
      attrs.push_back(b.getNamedAttr(FSDPDialect::frozenAttr, b.getUnitAttr()));
    if (!isElided(first))
      values.push_back(b.getNamedAttr(cast<StringAttr>(attrs[0].getValue()), constantValue(first)));
    unsigned index = func.getNumArguments();
    if (failed(func.insertArgument(index, first->getResult(0).getType(), b.getDictionaryAttr(attrs), first->getLoc())))
      return failure();
    for (Operation *op : ops) {
      op->getResult(0).replaceAllUsesWith(func.getArgument(index));
      op->erase();
    }
    ++numLifted;
  }
  return success();
}

/// Everything the user listed must have meant something.
LogicalResult LiftParametersPass::checkAllUsed(unsigned given) {
  for (const ParameterItem &item : list.items)
    if (!item.used)
      return emitError(func.getLoc(), "--params: '") << item.text << "' does not match the arguments of '@" << func.getSymName()
                                           << "', which has " << given
                                           << " (positions from 0; names from their attributes and locations)";
  for (const SidecarEntry &entry : list.sidecar)
    if (!entry.used)
      return emitError(func.getLoc(), "--params-file: the entry with ")
             << entry.describe() << " matches no argument or constant of '@" << func.getSymName() << "'";
  return success();
}

void LiftParametersPass::runOnOperation() {
  func = getEntry(getOperation());
  if (!func)
    return;
  FailureOr<ParameterList> parsed = ParameterList::parse(params, paramsFile, func.getLoc());
  if (failed(parsed))
    return signalPassFailure();
  list = std::move(*parsed);
  unsigned given = func.getNumArguments();
  if (failed(markArguments()))
    return signalPassFailure();
  // Ranges are checked against the arguments of the file, before lifting adds more.
  for (ParameterItem &item : list.items)
    if (item.last >= static_cast<int64_t>(given))
      item.used = false;
  if (failed(liftConstants()) || failed(checkAllUsed(given)))
    return signalPassFailure();
  if (numParameters + numLifted == 0) {
    emitError(func.getLoc(), "found no parameter in '@")
        << func.getSymName() << "'; mark arguments with {fsdp.param = \"name\"}, or list them: --params=0-147 or "
        << "--params-file=FILE.json";
    return signalPassFailure();
  }
  if (auto given = getOperation()->getAttrOfType<DictionaryAttr>(FSDPDialect::valuesAttr))
    for (NamedAttribute attr : given)
      if (llvm::none_of(values, [&](NamedAttribute own) { return own.getName() == attr.getName(); }))
        values.push_back(attr);
  if (!values.empty())
    getOperation()->setAttr(FSDPDialect::valuesAttr, DictionaryAttr::get(&getContext(), values));
}
