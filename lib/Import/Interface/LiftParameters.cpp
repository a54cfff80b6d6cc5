//===- LiftParameters.cpp - Make parameters arguments -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decides which values are trained, and makes each trained value a named argument.
//
//   func @f(%ids: tensor<4xi64>)              func @f(%ids: .., %w: tensor<8x8xf32>
//     %w = constant dense_resource<h_w>   ->            {fsdp.param = "h_w"})
//
//  1. Parameters are named by an attribute of an argument (`fsdp.param`, or `train.param` of
//     another tool), by --params, or by the file of --params-file (the sidecar). The options also
//     name constants, by resource key or location. If at least one parameter is named, only named
//     values are trained.
//  2. Otherwise, the pass guesses and warns: all float arguments before the first integer argument
//     are parameters. If there are no such arguments (a frozen module), all float constants are
//     parameters, except constants that only sin and cos use (rotary frequencies). With
//     --params=auto, the pass guesses without a warning.
//  3. Each trained constant becomes an argument. This pass must run before passes that merge
//     constants, because all constants with elided values seem equal. All copies of a constant, for
//     example after a function was inlined twice, become one argument. Constants with equal
//     resources also become one argument. Integers are not trained: an integer parameter is frozen,
//     and an integer constant stays a constant.
//  4. A float constant that is not trained stays a constant, and `fsdp.constants` lists it. A
//     constant that is a large resource instead becomes a frozen parameter, which is sharded. The
//     pass emits an error if the values of the constant are elided.
//  5. The attribute gives the name of a parameter. Without the attribute, the name is the name in
//     the location, the resource key or `param.N`. The entry "rename" in the sidecar overrides this
//     name. Values of trained constants are moved to the module attribute `fsdp.values = {name =
//     dense_resource<..>}`.
//
// See also InferInit.cpp (initial values without `fsdp.values`), NameBatch.cpp (names of batch
// inputs), and GuessParameters.cpp (the guess).
//
//===----------------------------------------------------------------------===//

#include "Interface/GuessParameters.h"
#include "Interface/ParameterList.h"
#include "Interface/Positions.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/ModelConstants.h"
#include "fsdp/Import/Passes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_LIFTPARAMETERSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Largest size in bytes of a resource that stays a constant if it is not trained.
static constexpr int64_t maxConstantBytes = 1 << 20;

namespace {
/// All copies of the same constant. If the constant is trained, they become one parameter.
struct Table {
  SmallVector<Operation *> ops;
  std::string name;                ///< name in the location, else the resource key; may be empty
  std::optional<int64_t> position; ///< position of the constant in the file
  SidecarEntry *entry = nullptr;
  bool isNamed = false; ///< whether an option names the constant as a parameter

  Operation *first() const { return ops.front(); }
  Type type() const { return ops.front()->getResult(0).getType(); }
  /// Returns the name that the parameter has without "rename" in the sidecar.
  std::string getName(unsigned number, const char *fallback = "param.") const {
    return !name.empty() ? name : fallback + std::to_string(position.value_or(number));
  }
};

struct LiftParametersPass : public fsdp::impl::LiftParametersPassBase<LiftParametersPass> {
  using LiftParametersPassBase::LiftParametersPassBase;
  void runOnOperation() override;

private:
  LogicalResult markArguments();
  LogicalResult markArgument(BlockArgument arg, StringRef marker);
  void collectTables();
  LogicalResult liftTables();
  LogicalResult lift(Table &table, bool isTrained);
  LogicalResult keep(Table &table);
  LogicalResult checkAllUsed(unsigned given);
  std::string uniqueName(StringRef base);
  void setModuleAttributes();

  func::FuncOp func;
  ParameterList list;
  bool isMarked = false; ///< whether an argument has an attribute that names it as a parameter
  bool guesses = false;
  ParameterGuess guess;
  /// `numMarked` arguments and `numTables` constants are parameters. The pass cannot use its
  /// statistics for these numbers, because code cannot read statistics.
  unsigned numMarked = 0, numTables = 0;
  llvm::MapVector<Attribute, Table> tables;
  llvm::StringSet<> names;
  SmallVector<NamedAttribute> values;
  SmallVector<Attribute> constants;
};
} // namespace

/// Returns whether a parameter may have this type: a tensor of floats or of stored integers.
static bool isParameterType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor &&
         (isa<FloatType>(tensor.getElementType()) || isStoredInteger(tensor.getElementType()));
}

/// Returns the value of an argument's attribute `fsdp.param`, `train.param` or `x.parameter`.
/// Returns an empty string for a unit attribute, and nothing if the argument has none of these
/// attributes. Removes the attributes of other tools.
static std::optional<std::string> takeMarker(func::FuncOp func, unsigned index) {
  std::optional<std::string> marker;
  for (NamedAttribute attr : llvm::to_vector(
           ArrayRef<NamedAttribute>(function_interface_impl::getArgAttrs(func, index)))) {
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

/// Makes an argument a parameter: sets its name and the attributes that the sidecar specifies.
LogicalResult LiftParametersPass::markArgument(BlockArgument arg, StringRef marker) {
  std::string fromLoc = nameFromLocation(arg.getLoc());
  StringRef name = marker.empty() ? StringRef(fromLoc) : marker;
  SidecarEntry *entry = list.findSidecar(getPosition(arg), name, "");
  if (Attribute batch = func.getArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr))
    return emitError(arg.getLoc()) << "argument " << getPosition(arg)
                                   << " is listed as a parameter, and is the batch input " << batch
                                   << "; expected one of them (see --params and --batch)";
  if (!isParameterType(arg.getType()))
    return emitError(arg.getLoc())
           << "argument " << getPosition(arg) << " is listed as a parameter but has type "
           << arg.getType() << "; parameters are tensors of floats, or of integers of 1, 8, 16, "
           << "32 or 64 bits, which are not trained (see --params)";
  Builder b(&getContext());
  if (entry && !entry->rename.empty())
    name = entry->rename;
  std::string fallback = "param." + std::to_string(getPosition(arg));
  std::string unique = uniqueName(name.empty() ? StringRef(fallback) : name);
  if (unique != name && !name.empty() && !marker.empty())
    return emitError(arg.getLoc())
           << "two parameters are called '" << name << "'; names must differ";
  func.setArgAttr(arg.getArgNumber(), FSDPDialect::paramAttr, b.getStringAttr(unique));
  if (entry && entry->init)
    func.setArgAttr(arg.getArgNumber(), FSDPDialect::initAttr, entry->init);
  if ((entry && entry->frozen) || !isFloatTensor(arg.getType()))
    func.setArgAttr(arg.getArgNumber(), FSDPDialect::frozenAttr, b.getUnitAttr());
  guess.trained.push_back(unique + " (" + describeShape(arg.getType()) + ")");
  ++numParameters;
  ++numMarked;
  return success();
}

LogicalResult LiftParametersPass::markArguments() {
  SmallVector<std::optional<std::string>> markers;
  bool adds = false;
  for (BlockArgument arg : func.getArguments()) {
    markers.push_back(takeMarker(func, arg.getArgNumber()));
    std::string name = markers.back().value_or("");
    if (name.empty())
      name = nameFromLocation(arg.getLoc());
    bool listed =
        list.lists(getPosition(arg), name) || list.findSidecar(getPosition(arg), name, "");
    isMarked |= markers.back().has_value();
    adds |= listed && !markers.back();
    if (listed && !markers.back())
      markers.back() = "";
  }
  if (isMarked && (!list.items.empty() || list.isAuto) && !adds)
    emitWarning(func.getLoc(), "--params has no effect: '@")
        << func.getSymName()
        << "' marks these parameters itself, and --params cannot remove any; --freeze excludes "
           "parameters from training";
  guesses = !isMarked && (list.isAuto || !list.namesAny());
  if (guesses) {
    FailureOr<SmallVector<BlockArgument>> guessed = guessParameters(func);
    if (failed(guessed))
      return failure();
    for (BlockArgument arg : *guessed)
      if (!markers[arg.getArgNumber()])
        markers[arg.getArgNumber()] = "";
  }
  for (BlockArgument arg : func.getArguments()) {
    if (markers[arg.getArgNumber()] && failed(markArgument(arg, *markers[arg.getArgNumber()])))
      return failure();
    std::string name = nameFromLocation(arg.getLoc());
    if (!markers[arg.getArgNumber()] && isFloatTensor(arg.getType()))
      guess.untrained.push_back(
          (name.empty() ? "argument " + std::to_string(getPosition(arg)) : name) + " (" +
          describeShape(arg.getType()) + ")");
  }
  return success();
}

/// Collects the float constants of the function in `tables`, in the order of their first copies.
void LiftParametersPass::collectTables() {
  unsigned given = func.getNumArguments();
  func.walk([&](Operation *op) {
    auto type =
        op->getNumResults() == 1 ? dyn_cast<RankedTensorType>(op->getResult(0).getType()) : nullptr;
    if (!type || !isTable(op) || !isa<FloatType>(type.getElementType()))
      return;
    Attribute key = op->getAttr(positionAttr);
    if (!resourceKey(op).empty() && !isElided(op))
      key = constantValue(op);
    tables[key ? key : Attribute(IntegerAttr::get(IndexType::get(&getContext()), tables.size()))]
        .ops.push_back(op);
  });
  for (auto &[key, table] : tables) {
    StringRef resource = resourceKey(table.first());
    std::string fromLoc = nameFromLocation(table.first()->getLoc());
    table.name = fromLoc.empty() && resource != "__elided__" ? resource.str() : fromLoc;
    table.position = getPosition(table.first());
    table.entry = list.findSidecar(std::nullopt, fromLoc, resource);
    if (!table.entry && table.position && given <= *table.position)
      table.entry = list.findSidecar(table.position, "", "");
    bool isListed = list.listsName(fromLoc);
    isListed |= resource != "__elided__" && list.listsName(resource);
    table.isNamed = isListed || table.entry;
  }
}

/// Replaces all copies of a constant by a new argument that is a parameter.
LogicalResult LiftParametersPass::lift(Table &table, bool isTrained) {
  Builder b(&getContext());
  std::string name = table.getName(numTables);
  if (table.entry && !table.entry->rename.empty())
    name = table.entry->rename;
  name = uniqueName(name);
  SmallVector<NamedAttribute> attrs{b.getNamedAttr(FSDPDialect::paramAttr, b.getStringAttr(name))};
  if (table.entry && table.entry->init)
    attrs.push_back(b.getNamedAttr(FSDPDialect::initAttr, table.entry->init));
  if (!isTrained || (table.entry && table.entry->frozen))
    attrs.push_back(b.getNamedAttr(FSDPDialect::frozenAttr, b.getUnitAttr()));
  if (!isElided(table.first()))
    values.push_back(b.getNamedAttr(name, constantValue(table.first())));
  (isTrained ? guess.trained : guess.untrained)
      .push_back(name + " (" + describeShape(table.type()) + ")");
  unsigned index = func.getNumArguments();
  if (failed(func.insertArgument(index, table.type(), b.getDictionaryAttr(attrs),
                                 table.first()->getLoc())))
    return failure();
  for (Operation *op : table.ops) {
    op->getResult(0).replaceAllUsesWith(func.getArgument(index));
    op->erase();
  }
  ++numLifted;
  ++numTables;
  return success();
}

/// Replaces a resource by inline values, which later stages can read.
static void writeInPlace(Operation *op) {
  for (NamedAttribute attr : llvm::to_vector(op->getAttrs()))
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr.getValue()))
      op->setAttr(attr.getName(),
                  DenseElementsAttr::getFromRawBuffer(
                      resource.getType(), resource.getRawHandle().getBlob()->getData()));
}

/// Keeps an untrained constant. If the constant is a large resource, makes it a frozen parameter.
LogicalResult LiftParametersPass::keep(Table &table) {
  auto type = cast<RankedTensorType>(table.type());
  std::string name = table.getName(constants.size(), "constant.");
  if (llvm::all_of(table.ops, [](Operation *op) { return op->use_empty(); }))
    return success();
  if (isElided(table.first())) {
    InFlightDiagnostic diag =
        table.first()->emitError("the content of this ")
        << type << " is not in the file (its text was elided), and nothing names it as a parameter";
    std::string target = resourceKey(table.first()) == "__elided__"
                             ? std::to_string(table.position.value_or(0))
                             : resourceKey(table.first()).str();
    diag.attachNote(func.getLoc()) << "give its content with --buffer=" << target
                                   << "=FILE, or name it in --params-file; or let the "
                                   << "exporter write it out";
    return diag;
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(constantValue(table.first()));
  if (resource && getStorageBytes(type) > maxConstantBytes)
    return lift(table, /*isTrained=*/false);
  if (resource)
    for (Operation *op : table.ops)
      writeInPlace(op);
  guess.untrained.push_back(name + " (" + describeShape(type) + ")");
  constants.push_back(StringAttr::get(&getContext(), name));
  return success();
}

LogicalResult LiftParametersPass::liftTables() {
  bool isFrozenModule = guesses && numMarked == 0;
  for (auto &[key, table] : tables) {
    bool isKept = table.first()->hasAttr(keepAttr);
    bool isTrained =
        !isKept && (table.isNamed || (isFrozenModule && !isFrequencyTable(table.first())));
    if (failed(isTrained ? lift(table, /*isTrained=*/true) : keep(table)))
      return failure();
  }
  return success();
}

/// Emits an error if an item of --params or an entry of the sidecar matches no value.
LogicalResult LiftParametersPass::checkAllUsed(unsigned given) {
  for (const ParameterItem &item : list.items)
    if (!item.used)
      return emitError(func.getLoc(), "--params: '")
             << item.text << "' does not match the arguments of '@" << func.getSymName()
             << "', which has " << given
             << " (positions from 0; names from their attributes and locations), or the name of a "
                "constant of floats";
  for (const SidecarEntry &entry : list.sidecar)
    if (!entry.used)
      return emitError(func.getLoc(), "--params-file: the entry with ")
             << entry.describe() << " matches no argument or constant of '@" << func.getSymName()
             << "'";
  return success();
}

/// Adds `values` and `constants` to the module attributes `fsdp.values` and `fsdp.constants`.
void LiftParametersPass::setModuleAttributes() {
  ModuleOp module = getOperation();
  if (auto given = module->getAttrOfType<DictionaryAttr>(FSDPDialect::valuesAttr))
    for (NamedAttribute attr : given)
      if (llvm::none_of(values,
                        [&](NamedAttribute own) { return own.getName() == attr.getName(); }))
        values.push_back(attr);
  if (!values.empty())
    module->setAttr(FSDPDialect::valuesAttr, DictionaryAttr::get(&getContext(), values));
  if (!constants.empty() && !module->hasAttr(constantsAttr))
    module->setAttr(constantsAttr, ArrayAttr::get(&getContext(), constants));
}

void LiftParametersPass::runOnOperation() {
  func = getEntry(getOperation());
  // Drop the state of the previous module.
  isMarked = guesses = false;
  guess = {};
  numMarked = numTables = 0;
  tables.clear();
  names.clear();
  values.clear();
  constants.clear();
  if (!func)
    return;
  FailureOr<ParameterList> parsed = ParameterList::parse(params, paramsFile, func.getLoc());
  if (failed(parsed))
    return signalPassFailure();
  list = std::move(*parsed);
  unsigned given = func.getNumArguments();
  if (failed(markArguments()))
    return signalPassFailure();
  // A range of --params must end before `given`, the number of arguments in the file.
  for (ParameterItem &item : list.items)
    if (item.last >= static_cast<int64_t>(given))
      item.used = false;
  collectTables();
  if (failed(checkAllUsed(given)) || failed(liftTables()))
    return signalPassFailure();
  if (guess.trained.empty()) {
    emitError(func.getLoc(), "found no parameter in '@")
        << func.getSymName()
        << "'; mark arguments with {fsdp.param = \"name\"}, or list them: --params=0-147 or "
        << "--params-file=FILE.json";
    return signalPassFailure();
  }
  if (guesses && !list.isAuto)
    warnOfGuess(func, guess);
  setModuleAttributes();
}
