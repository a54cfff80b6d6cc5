//===- FormUnits.cpp - Group parameters into flat buffers -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   @loss(wte, h.0.w, h.0.b, h.1.w, ln_f.w)      fsdp.unit @root  wte, ln_f.w
//                                           =>   fsdp.unit @h.0   h.0.w, h.0.b
//                                                fsdp.unit @h.1   h.1.w
//
//  1. Collect the parameters of @loss and their first uses.
//  2. Assign each parameter to a layer by the wrap policy (ChooseUnits.cpp). An embedding table of
//     the root becomes a separate layer if its lookups exchange rows (TableRows.cpp).
//  3. Form drafts of units. The parameters of a draft have the same layer and the same element
//     type. All or none of them are frozen, and all or none of them are ignored. Sort the drafts:
//     first the root, then the others by first use, with unused drafts last. Merge small drafts
//     into earlier drafts.
//  4. Name the drafts, lay them out (Layout.cpp), and declare meshes and units.
//
// The time is O(parameters + uses + units log units). This pass renames @loss but does not change
// its body. InsertUnshard.cpp changes the body.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/Sizes.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Shard/Layout.h"
#include "fsdp/Shard/NamePattern.h"
#include "fsdp/Shard/Passes.h"
#include "fsdp/Shard/PlacementChoice.h"
#include "fsdp/Shard/TableRows.h"
#include "fsdp/Shard/WrapPolicy.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FORMUNITSPASS
#include "fsdp/Shard/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

struct Parameter {
  StringRef name;
  RankedTensorType type;
  InitAttr init;
  bool frozen;
  int64_t firstUse; ///< index of the first op that uses the parameter, INT64_MAX if unused
  StringRef layer;  ///< name of the layer; empty for the root
  std::optional<StringRef> unit; ///< name given by the attribute `fsdp.unit`
  /// Whether ignore-params names the parameter. If so, every rank holds the whole parameter.
  bool ignored = false;
  int64_t rowSize = 0; ///< elements per row if lookups in the parameter exchange rows, else 0
  DenseI64ArrayAttr split = {}; ///< slice that a rank of the axis `tensor` has, or null
};

/// A unit before it is declared.
struct Draft {
  StringRef layer;
  bool frozen, ignored;
  bool isSplit; ///< whether ranks of the axis `tensor` have slices of the parameters
  Type dtype;
  SmallVector<const Parameter *> params;
  bool isTable = false; ///< whether the unit is a table whose lookups exchange rows
  unsigned number = 0;  ///< number of the draft in the order in which drafts are formed
  int64_t firstUse = std::numeric_limits<int64_t>::max();
  int64_t size = 0;

  bool isRoot() const { return layer.empty(); }
  bool isKeptAsRoot() const { return isRoot() || isTable; }
  void add(const Parameter &param) {
    params.push_back(&param);
    firstUse = std::min(firstUse, param.firstUse);
    size += param.type.getNumElements();
  }
};

/// Parameters with equal keys belong to the same draft.
using DraftKey =
    std::tuple<StringRef, /*frozen=*/unsigned, /*ignored=*/unsigned, /*isSplit=*/unsigned, Type>;

struct FormUnitsPass : fsdp::impl::FormUnitsPassBase<FormUnitsPass> {
  using FormUnitsPassBase::FormUnitsPassBase;
  void runOnOperation() override;

private:
  void warnOfParameters(func::FuncOp loss);
  Type getStorageType(const Draft &draft);
  FailureOr<func::FuncOp> findLoss();
  LogicalResult collect(func::FuncOp loss);
  LogicalResult collect(func::FuncOp loss, BlockArgument arg);
  WrapOptions getWrapOptions() const { return {policy, layerPattern, wrapFile, minNumParams}; }
  LogicalResult readPatterns(func::FuncOp loss);
  LogicalResult assignLayers(func::FuncOp loss, bool gathers);
  LogicalResult findTables(func::FuncOp loss);
  SmallVector<Draft> formDrafts();
  void mergeSmall(SmallVector<Draft> &drafts);
  LogicalResult declareUnit(SymbolTable &symbols, OpBuilder &builder, Location loc, StringRef name,
                            const Draft &draft);

  SmallVector<Parameter> parameters;
  PlacementChoice choice{}; ///< parsed placement options
};

} // namespace

/// Warns if ignore-params names all parameters, and if param-storage applies to no parameter.
/// Remarks on the storage that param-storage=auto chooses.
void FormUnitsPass::warnOfParameters(func::FuncOp loss) {
  if (choice.strategy->state > 0 &&
      llvm::all_of(parameters, [](const Parameter &p) { return p.ignored; }))
    mlir::emitWarning(loss.getLoc())
        << "ignore-params names all " << parameters.size()
        << " parameters: nothing is sharded, as with sharding-strategy 'no_shard'";
  auto isNarrow = [](const Parameter &p) {
    return !p.frozen && p.type.getElementTypeBitWidth() < 32;
  };
  bool hasNarrow = llvm::any_of(parameters, isNarrow);
  if (choice.storage != ParamStorage::Both || (choice.choosesStorage && !hasNarrow))
    return;
  if (choice.choosesStorage && remarks)
    mlir::emitRemark(loss.getLoc())
        << "param-storage 'auto' is 'both' for this target: the optimizer's kernels write "
           "parameters beside their f32 masters; 'master' needs less memory per rank";
  if (!hasNarrow)
    mlir::emitWarning(loss.getLoc())
        << "param-storage 'both' has no effect: no parameter that is trained is narrower "
           "than f32; give an f32 model with --param-dtype=bf16 or f16, or a bf16 or f16 model";
}

/// Returns the function to shard and names it @loss. Fails if the module is already sharded, or
/// does not have exactly one public function.
FailureOr<func::FuncOp> FormUnitsPass::findLoss() {
  ModuleOp module = getOperation();
  // The pass fsdp-partition-tensors declares the mesh if it has an axis `tensor` or `context`.
  auto declared = module.lookupSymbol<MeshOp>("mesh");
  bool isSplit = isPartitioned(declared), needsPartition = choice.mesh.getReaders() > 1;
  if (needsPartition != isSplit ||
      (isSplit &&
       (declared.getNumReaders() != choice.mesh.getReaders() ||
        declared.getAxes() != ArrayAttr::get(&getContext(), choice.mesh.getAxes(&getContext())))))
    return mlir::emitError(module.getLoc(), "expected a module that fsdp-partition-tensors has ")
           << (needsPartition ? "split for the same mesh; run that pass first"
                              : "not split, because the mesh has no axis 'tensor' or 'context'");
  for (Operation &op : module.getOps())
    if (isa<MeshOp, UnitOp>(op) && !(isSplit && &op == declared)) {
      InFlightDiagnostic diag = mlir::emitError(
          module.getLoc(),
          "expected a module without meshes and units: this one is sharded already");
      diag.attachNote(op.getLoc()) << "found this declaration";
      return diag;
    }
  func::FuncOp loss;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func.isPublic())
      continue;
    if (loss) {
      InFlightDiagnostic diag =
          mlir::emitError(func.getLoc(), "expected one public function (the loss), found '@")
          << loss.getSymName() << "' and '@" << func.getSymName() << "'";
      diag.attachNote(loss.getLoc()) << "'@" << loss.getSymName() << "' is here";
      return diag;
    }
    loss = func;
  }
  if (!loss)
    return mlir::emitError(
        module.getLoc(),
        "expected one public function (the loss), found none; run the Import stage first");
  if (!loss.getBody().hasOneBlock())
    return mlir::emitError(loss.getLoc(), "expected @")
           << loss.getSymName() << " to have a body of one block, found "
           << describeBody(loss.getBody());
  loss.setSymName("loss");
  return loss;
}

/// Returns the index of the first op of the function's block that uses `value`, itself or in a
/// region of the op.
static int64_t findFirstUse(Value value, Block &body,
                            const DenseMap<Operation *, int64_t> &numbers) {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (Operation *user : value.getUsers())
    first = std::min(first, numbers.lookup(body.findAncestorOpInBlock(*user)));
  return first;
}

LogicalResult FormUnitsPass::collect(func::FuncOp loss, BlockArgument arg) {
  unsigned index = arg.getArgNumber();
  auto name = loss.getArgAttrOfType<StringAttr>(index, FSDPDialect::paramAttr);
  auto fail = [&] {
    return mlir::emitError(arg.getLoc()) << "parameter '" << name.getValue() << "': ";
  };
  auto type = dyn_cast<RankedTensorType>(arg.getType());
  bool isInteger = type && isStoredInteger(type.getElementType());
  if (!type || !type.hasStaticShape() || !(isInteger || isa<FloatType>(type.getElementType())))
    return fail() << "expected a tensor of static shape whose elements are floats, or integers of "
                     "1, 8, 16, 32 or 64 bits, found "
                  << arg.getType();
  if (!fitsElements(type.getShape()))
    return fail() << "expected at most 2^48 elements, found " << type;
  auto init = loss.getArgAttrOfType<InitAttr>(index, FSDPDialect::initAttr);
  if (!init)
    return fail() << "expected '" << FSDPDialect::initAttr
                  << "' with the distribution of the initial values, as in "
                     "#fsdp.init<normal, 0.0, 0.02>, found none";
  parameters.push_back({name, type, init,
                        isInteger || loss.getArgAttr(index, FSDPDialect::frozenAttr),
                        /*firstUse=*/0, /*layer=*/{}, /*unit=*/{}});
  parameters.back().split = loss.getArgAttrOfType<DenseI64ArrayAttr>(index, tensorSplitAttr);
  if (Attribute unit = loss.getArgAttr(index, FSDPDialect::unitAttr)) {
    auto text = dyn_cast<StringAttr>(unit);
    if (!text || text.empty())
      return fail() << "expected the name of a unit in '" << FSDPDialect::unitAttr << "', found "
                    << unit;
    parameters.back().unit = text.getValue();
  }
  return success();
}

LogicalResult FormUnitsPass::collect(func::FuncOp loss) {
  Block &body = loss.getBody().front();
  DenseMap<Operation *, int64_t> numbers;
  for (auto [number, op] : llvm::enumerate(body))
    numbers[&op] = number;
  llvm::StringMap<Location> seen;
  for (BlockArgument arg : loss.getArguments()) {
    auto name = loss.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::paramAttr);
    if (!name)
      continue;
    auto [it, isNew] = seen.try_emplace(name, arg.getLoc());
    if (!isNew) {
      InFlightDiagnostic diag = mlir::emitError(arg.getLoc())
                                << "expected one argument per parameter, found a second one for "
                                << name << "; pass tied parameters as one argument";
      diag.attachNote(it->second) << "the first one is here";
      return diag;
    }
    if (failed(collect(loss, arg)))
      return failure();
    parameters.back().firstUse = findFirstUse(arg, body, numbers);
  }
  if (parameters.empty())
    return mlir::emitError(loss.getLoc(), "expected at least one argument with '")
           << FSDPDialect::paramAttr << "', found none: there is nothing to train";
  return success();
}

/// Marks the parameters that `freeze` and `ignore` name. Fails if no parameter is trainable.
LogicalResult FormUnitsPass::readPatterns(func::FuncOp loss) {
  auto names = llvm::map_to_vector(parameters, [](const Parameter &p) { return p.name; });
  auto mark = [&](StringRef patterns, StringRef option, bool Parameter::*flag) -> LogicalResult {
    auto selected =
        selectNames(names, patterns, option, [&] { return mlir::emitError(loss.getLoc()); });
    if (failed(selected))
      return failure();
    for (unsigned index : selected->set_bits())
      parameters[index].*flag = true;
    return success();
  };
  if (failed(mark(freeze, "freeze", &Parameter::frozen)) ||
      failed(mark(ignore, "ignore-params", &Parameter::ignored)))
    return failure();
  if (!llvm::all_of(parameters, [](const Parameter &p) { return p.frozen; }))
    return success();
  return mlir::emitError(loss.getLoc())
         << "no parameter can be trained: all parameters (" << parameters.size()
         << ") are frozen or integers; remove parameters from --freeze, or remove \"frozen\" from "
            "--params-file or the attribute 'fsdp.frozen' from the model";
}

LogicalResult FormUnitsPass::assignLayers(func::FuncOp loss, bool gathers) {
  auto named = llvm::map_to_vector(parameters, [](const Parameter &p) {
    int64_t elements = p.ignored ? 0 : p.type.getNumElements();
    return NamedParam{p.name, p.type.getRank(), elements, p.ignored ? 0 : getStorageBytes(p.type),
                      p.unit};
  });
  auto units = chooseUnits(named, getWrapOptions(), gathers, loss.getLoc());
  if (failed(units))
    return failure();
  for (auto [param, unit] : llvm::zip_equal(parameters, *units))
    param.layer = unit;
  return success();
}

/// Assigns each table of the root whose lookups exchange rows to a layer of its own.
LogicalResult FormUnitsPass::findTables(func::FuncOp loss) {
  auto when = readOption<GatherRows>(getOperation().getLoc(), "gather-rows", gatherRows);
  if (failed(when))
    return failure();
  const Strategy &row = *choice.strategy;
  int64_t parts = row.state > 1 ? choice.getReplicas() : 1;
  bool any = false;
  for (BlockArgument arg : loss.getArguments()) {
    auto name = loss.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::paramAttr);
    auto param = llvm::find_if(
        parameters, [&](const Parameter &p) { return name && p.name == name.getValue(); });
    if (param == parameters.end() || !param->layer.empty() || param->ignored || row.parameters == 0)
      continue;
    param->rowSize = getRowSize(arg, *when, choice.getShards(), parts);
    if (param->rowSize)
      param->layer = param->name;
    any |= param->rowSize != 0;
  }
  if (*when == GatherRows::Always && !any)
    mlir::emitWarning(loss.getLoc())
        << "gather-rows 'always' has no effect: the root has no sharded table, of at least a few "
           "rows per rank, in which the model looks up rows";
  return success();
}

SmallVector<Draft> FormUnitsPass::formDrafts() {
  llvm::MapVector<DraftKey, Draft> byKey;
  for (const Parameter &param : parameters) {
    Type dtype = param.type.getElementType();
    auto [it, isNew] =
        byKey.try_emplace({param.layer, param.frozen, param.ignored, !!param.split, dtype});
    if (isNew) {
      it->second.layer = param.layer;
      it->second.frozen = param.frozen;
      it->second.ignored = param.ignored;
      it->second.isSplit = !!param.split;
      it->second.dtype = dtype;
      it->second.number = byKey.size();
      it->second.isTable = param.rowSize != 0;
    }
    it->second.add(param);
  }
  auto drafts = llvm::map_to_vector(byKey, [](auto &entry) { return std::move(entry.second); });
  llvm::sort(drafts, [](const Draft &a, const Draft &b) {
    return std::tuple(!a.isRoot(), a.firstUse, a.number) <
           std::tuple(!b.isRoot(), b.firstUse, b.number);
  });
  return drafts;
}

/// Merges each draft into the last earlier draft of the same kind (frozen, ignored, element type)
/// that has less than minNumParams elements.
void FormUnitsPass::mergeSmall(SmallVector<Draft> &drafts) {
  SmallVector<Draft> merged;
  for (Draft &draft : drafts) {
    // Find the last draft of the same kind in `merged`.
    auto open = llvm::find_if(llvm::reverse(merged), [&](const Draft &d) {
      return !d.isKeptAsRoot() && d.frozen == draft.frozen && d.ignored == draft.ignored &&
             d.dtype == draft.dtype && d.isSplit == draft.isSplit;
    });
    if (draft.isKeptAsRoot() || open == merged.rend() || policy != "transformer" ||
        open->size >= minNumParams) {
      merged.push_back(std::move(draft));
      continue;
    }
    for (const Parameter *param : draft.params)
      open->add(*param);
  }
  drafts = std::move(merged);
}

/// Returns the name of a unit, such as `h.0` or `root.frozen`. If a larger unit has the same name
/// and a different element type, appends the element type (`h.0.bf16`).
static std::string nameOf(const Draft &draft, ArrayRef<Draft> drafts) {
  std::string name = draft.isRoot() ? "root" : draft.layer.str();
  if (draft.frozen)
    name += ".frozen";
  if (draft.ignored)
    name += ".ignored";
  if (draft.isSplit)
    name += ".tensor";
  for (const Draft &other : drafts) {
    if (&other == &draft || other.layer != draft.layer || other.frozen != draft.frozen ||
        other.ignored != draft.ignored || other.isSplit != draft.isSplit)
      continue;
    if (std::tuple(other.size, &draft) > std::tuple(draft.size, &other)) {
      llvm::raw_string_ostream(name) << "." << draft.dtype;
      break;
    }
  }
  return name;
}

static int64_t getByteWidth(Type element) {
  return getStorageBytes(RankedTensorType::get({1}, element));
}

/// Returns the type in which a unit is stored. The stored type of narrow trained parameters is f32
/// if param-storage is 'master'. In all other cases, the stored type is the type of the
/// computation, and the stage Update adds f32 masters for narrow trained parameters.
Type FormUnitsPass::getStorageType(const Draft &draft) {
  bool narrow = isa<FloatType>(draft.dtype) && draft.dtype.getIntOrFloatBitWidth() < 32;
  return narrow && !draft.frozen && choice.storage == ParamStorage::Master
             ? Type(Float32Type::get(&getContext()))
             : draft.dtype;
}

LogicalResult FormUnitsPass::declareUnit(SymbolTable &symbols, OpBuilder &builder, Location loc,
                                         StringRef name, const Draft &draft) {
  if (draft.size > kMaxUnitSize)
    return mlir::emitError(loc) << "unit '" << name << "': expected at most 2^48 elements, found "
                                << draft.size;
  auto decays = [](const Parameter *p) { return p->type.getRank() >= 2; };
  const Strategy &row = draft.ignored ? getStrategy(ShardingStrategy::NoShard) : *choice.strategy;
  int64_t shards = choice.getShards();
  Type storage = getStorageType(draft);
  UnitLayout layout = layOutUnit(
      llvm::map_to_vector(
          draft.params,
          [&](const Parameter *p) { return ParamExtent{p->type.getNumElements(), decays(p)}; }),
      shards, row.state > 1 ? choice.getReplicas() : 1, getOffsetAlignment(getByteWidth(storage)),
      draft.isTable ? draft.params.front()->rowSize : 1);
  SmallVector<Attribute> params;
  for (auto [index, offset] : llvm::zip_equal(layout.order, layout.offsets)) {
    const Parameter *p = draft.params[index];
    params.push_back(ParamAttr::get(&getContext(), p->name,
                                    RankedTensorType::get(p->type.getShape(), storage), offset,
                                    !p->frozen, decays(p), p->init));
  }
  // If the backward does not gather a unit again, the unit is hoisted, which means that it is
  // gathered once for all micro-batches. The option reshard-root determines whether the root is
  // hoisted.
  bool again = draft.isKeptAsRoot() ? choice.root == ReshardRoot::Forward
                                    : choice.gathersAgain && row.reshard;
  bool hoisted = draft.isKeptAsRoot() ? choice.root == ReshardRoot::Step ||
                                            (choice.root == ReshardRoot::Backward && !row.reshard)
                                      : !again;
  auto unit = UnitOp::create(
      builder, loc, name, shards, layout.shardSize, storage, again && row.parameters > 0,
      builder.getArrayAttr(params), row.getPlacement(&getContext()), hoisted && row.parameters > 0,
      again && row.parameters > 0 && choice.within ? builder.getI64IntegerAttr(choice.within)
                                                   : IntegerAttr(),
      draft.isTable);
  SmallVector<NamedAttribute> splits;
  for (const Parameter *p : draft.params)
    if (p->split)
      splits.push_back(builder.getNamedAttr(p->name, p->split));
  if (!splits.empty())
    unit->setAttr(tensorSplitAttr, builder.getDictionaryAttr(splits));
  symbols.insert(unit); // insert() has made the name unique
  numUnits += 1;
  numParams += params.size();
  numPadding += layout.padding * getByteWidth(storage);
  if (remarks)
    mlir::emitRemark(loc) << "unit '" << name << "': " << params.size() << " parameters, " << shards
                          << " x " << layout.shardSize << " elements of " << storage << ", "
                          << layout.padding << " of them padding";
  return success();
}

/// Declares `@mesh`, unless it exists already, and `@solo`.
static void declareMeshes(OpBuilder &builder, ModuleOp module, Location loc, const MeshSpec &mesh) {
  MLIRContext *context = builder.getContext();
  if (!module.lookupSymbol("mesh"))
    mesh.declare(builder, loc);
  MeshOp::create(builder, loc, "solo", builder.getArrayAttr({AxisAttr::get(context, "shard", {1})}),
                 IntegerAttr());
}

void FormUnitsPass::runOnOperation() {
  parameters.clear();
  Location place = getOperation().getLoc();
  FailureOr<PlacementChoice> read = readPlacement(
      {mesh, strategy, reshard, rootReshard, paramStorage, autoStorage, ignore}, place);
  if (failed(read) || failed(checkWrapOptions(getWrapOptions(), place)))
    return signalPassFailure();
  choice = *read;
  FailureOr<func::FuncOp> loss = findLoss();
  bool gathers = choice.strategy->parameters > 0 && choice.getShards() > 1;
  if (failed(loss) || failed(collect(*loss)) || failed(readPatterns(*loss)) ||
      failed(assignLayers(*loss, gathers)) || failed(findTables(*loss)))
    return signalPassFailure();
  warnOfParameters(*loss);
  SmallVector<Draft> drafts = formDrafts();
  mergeSmall(drafts);

  auto builder = OpBuilder(*loss);
  Location loc = loss->getLoc();
  declareMeshes(builder, getOperation(), loc, choice.mesh);
  SymbolTable symbols(getOperation());
  for (const Draft &draft : drafts)
    if (failed(declareUnit(symbols, builder, loc, nameOf(draft, drafts), draft)))
      return signalPassFailure();
  if (choice.within &&
      llvm::none_of(getOperation().getOps<UnitOp>(), [](UnitOp unit) { return unit.getWithin(); }))
    mlir::emitWarning(loc) << "reshard-after-forward=" << choice.within
                           << " has no effect: only the root unit is gathered, which is kept until "
                              "the backward unless reshard-root is 'forward'";
}
