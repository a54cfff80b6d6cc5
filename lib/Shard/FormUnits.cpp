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
//  1. Read the parameters of @loss and the place of their first use.
//  2. Ask the wrap policy for the unit of each (ChooseUnits.cpp).
//  3. A draft per (layer, frozen, element type); drafts of the root first, then
//     by first use, unused ones last. Merge neighbours that are too small.
//  4. Name them, lay them out (Layout.cpp), declare meshes and units.
//
// O(parameters + uses + units log units). @loss is not changed:
// InsertUnshard.cpp.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/Sizes.h"
#include "fsdp/Shard/Layout.h"
#include "fsdp/Shard/MeshSpec.h"
#include "fsdp/Shard/NamePattern.h"
#include "fsdp/Shard/Passes.h"
#include "fsdp/Shard/TableRows.h"
#include "fsdp/Shard/WrapPolicy.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FORMUNITSPASS
#include "fsdp/Shard/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// One row of the table of sharding strategies: the axes over which parameters,
/// accumulated gradients and optimizer state are in pieces. On the others they
/// are replicated.
struct Strategy {
  StringLiteral name;
  int parameters, gradients, state; ///< how many of kAxes
  bool reshard;                     ///< gathered parameters are dropped behind the forward
  bool needsGroups;                 ///< makes sense with replicas only
};
constexpr StringLiteral kAxes[] = {"shard", "replicate"};
constexpr Strategy kStrategies[] = {
    {"no_shard", 0, 0, 0, false, false}, // first: of ignored parameters, too
    {"zero1", 0, 0, 1, false, false},         {"zero2", 0, 1, 1, false, false},
    {"shard_grad_op", 1, 1, 1, false, false}, {"full_shard", 1, 1, 1, true, false},
    {"hybrid_shard", 1, 1, 1, true, true},    {"hybrid_shard_zero2", 1, 1, 1, false, true},
    {"hfsdp", 1, 1, 2, true, true},
};

struct Parameter {
  StringRef name;
  RankedTensorType type;
  InitAttr init;
  bool frozen;
  int64_t firstUse;              ///< number of the op; the maximum when there is none
  StringRef layer;               ///< empty: root
  std::optional<StringRef> unit; ///< that the IR asks for
  bool ignored = false;          ///< by the strategy: whole on every rank
  int64_t rowSize = 0;           ///< of a table whose lookups take rows from other ranks; else 0
};

/// A unit that is about to be.
struct Draft {
  StringRef layer;
  bool frozen, ignored;
  Type dtype;
  SmallVector<const Parameter *> params;
  bool isTable = false; ///< one parameter, whose lookups take rows; kept as the root is
  unsigned number = 0;  ///< in the order of the arguments
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

/// What distinguishes units; empty parts are left out of the name.
using DraftKey = std::tuple<StringRef, /*frozen=*/unsigned, /*ignored=*/unsigned, Type>;

struct FormUnitsPass : fsdp::impl::FormUnitsPassBase<FormUnitsPass> {
  using FormUnitsPassBase::FormUnitsPassBase;
  void runOnOperation() override;

private:
  FailureOr<const Strategy *> readOptions(MeshSpec &spec);
  void warnOfPlaces(const Strategy &row, const MeshSpec &spec);
  void warnOfParameters(func::FuncOp loss);
  LogicalResult readReshard(const Strategy &row, int64_t shards);
  PlacementAttr getPlacement(const Strategy &row);
  Type getStorageType(const Draft &draft);
  FailureOr<func::FuncOp> findLoss();
  LogicalResult collect(func::FuncOp loss);
  LogicalResult collect(func::FuncOp loss, BlockArgument arg);
  WrapOptions getWrapOptions() const { return {policy, layerPattern, wrapFile, minNumParams}; }
  LogicalResult readPatterns(func::FuncOp loss);
  LogicalResult assignLayers(func::FuncOp loss, bool gathers);
  LogicalResult findTables(func::FuncOp loss, const MeshSpec &spec);
  SmallVector<Draft> formDrafts();
  void mergeSmall(SmallVector<Draft> &drafts);
  LogicalResult declareUnit(SymbolTable &symbols, OpBuilder &builder, Location loc, StringRef name,
                            const Draft &draft, const MeshSpec &spec);

  SmallVector<Parameter> parameters;
  const Strategy *row = nullptr;
  /// What `reshard-after-forward` says: whether layers are gathered again, and among how many
  /// neighbours (0: all).
  bool gathersAgain = true;
  int64_t within = 0;
};

} // namespace

/// Checks the options that are words; the row of the strategy.
FailureOr<const Strategy *> FormUnitsPass::readOptions(MeshSpec &spec) {
  auto emitError = [&] { return mlir::emitError(getOperation().getLoc()); };
  auto parsed = parseMeshSpec(mesh, emitError);
  if (failed(parsed))
    return failure();
  spec = *parsed;
  if (failed(checkWrapOptions(getWrapOptions(), getOperation().getLoc())))
    return failure();
  StringRef name = llvm::StringSwitch<StringRef>(strategy) // as others call them
                       .Case("ddp", "no_shard")
                       .Case("zero3", "full_shard")
                       .Default(strategy);
  const Strategy *row =
      llvm::find_if(kStrategies, [&](const Strategy &s) { return s.name == name; });
  if (row == std::end(kStrategies)) {
    InFlightDiagnostic diag = emitError() << "sharding-strategy: expected ";
    llvm::interleave(
        kStrategies, [&](const Strategy &s) { diag << "'" << s.name << "'"; },
        [&] { diag << " or "; });
    return diag << ", found '" << strategy << "'";
  }
  if (row->needsGroups && llvm::product_of(spec.replicate) == 1) {
    emitError() << "sharding-strategy '" << strategy
                << "' needs groups of ranks, as in --mesh=replicate=2,shard=4; found mesh '" << mesh
                << "'";
    return failure();
  }
  if (paramStorage != "master" && paramStorage != "both") {
    emitError() << "param-storage: expected 'master' (f32, cast where they are gathered) or 'both' "
                   "(as they are gathered, "
                   "beside f32 masters), found '"
                << paramStorage
                << "'; masters are f32, since steps smaller than the last digit of a narrower one "
                   "would be lost";
    return failure();
  }
  if (rootReshard != "backward" && rootReshard != "forward" && rootReshard != "step") {
    emitError() << "reshard-root: expected 'forward' (gather the root again in the backward), "
                   "'backward' (keep it "
                   "until then) or 'step' (gather it once per step), found '"
                << rootReshard << "'";
    return failure();
  }
  if (failed(readReshard(*row, llvm::product_of(spec.shard))))
    return failure();
  warnOfPlaces(*row, spec);
  return row;
}

/// Options that say where parameters are, and change nothing on this mesh. One rank has everything,
/// whatever is said.
void FormUnitsPass::warnOfPlaces(const Strategy &row, const MeshSpec &spec) {
  Location loc = getOperation().getLoc();
  int64_t shards = llvm::product_of(spec.shard);
  if (shards * llvm::product_of(spec.replicate) == 1)
    return;
  if (shards == 1 && row.state > 0 && row.state < 2)
    mlir::emitWarning(loc) << "sharding-strategy '" << strategy << "' shards nothing on mesh '"
                           << mesh << "': axis 'shard' has one rank; this is no_shard";
  if (row.parameters == 0 && rootReshard != "backward")
    mlir::emitWarning(loc) << "reshard-root '" << rootReshard
                           << "' has no effect: with sharding-strategy '" << strategy
                           << "' nothing is gathered for the root";
  if (row.state == 0 && !ignore.empty())
    mlir::emitWarning(loc) << "ignore-params has no effect: with sharding-strategy '" << strategy
                           << "' every rank keeps all parameters whole";
}

/// Options that say something of parameters of which there are none.
void FormUnitsPass::warnOfParameters(func::FuncOp loss) {
  if (row->state > 0 && llvm::all_of(parameters, [](const Parameter &p) { return p.ignored; }))
    mlir::emitWarning(loss.getLoc())
        << "ignore-params names all " << parameters.size()
        << " parameters: nothing is sharded, as with sharding-strategy 'no_shard'";
  auto isNarrow = [](const Parameter &p) {
    return !p.frozen && p.type.getElementTypeBitWidth() < 32;
  };
  if (paramStorage == "both" && llvm::none_of(parameters, isNarrow))
    mlir::emitWarning(loss.getLoc())
        << "param-storage 'both' has no effect: no parameter that is trained is narrower "
           "than f32; param-dtype makes those of an f32 model so";
}

/// `reshard-after-forward`: true, false or a number of neighbours.
LogicalResult FormUnitsPass::readReshard(const Strategy &row, int64_t shards) {
  gathersAgain = reshard != "false";
  within = 0;
  if (reshard == "true" || reshard == "false")
    return success();
  int64_t ranks;
  if (StringRef(reshard).getAsInteger(10, ranks) || ranks < 1 || shards % ranks != 0) {
    InFlightDiagnostic diag =
        mlir::emitError(getOperation().getLoc())
        << "reshard-after-forward: expected 'true', 'false' or a number of neighbouring ranks that "
           "divides shard="
        << shards << " of the mesh:";
    for (int64_t divisor = 1; divisor <= shards; ++divisor)
      if (shards % divisor == 0)
        diag << " " << divisor;
    return diag << "; found '" << reshard << "'";
  }
  gathersAgain = ranks > 1 || shards == 1;
  within = ranks > 1 && ranks < shards ? ranks : 0;
  if (!within || row.reshard)
    return success();
  return mlir::emitError(getOperation().getLoc())
         << "reshard-after-forward: groups of " << within
         << " ranks need a strategy that gathers parameters again in the backward: full_shard, "
            "hybrid_shard or hfsdp; "
            "found '"
         << strategy << "'";
}

PlacementAttr FormUnitsPass::getPlacement(const Strategy &row) {
  Builder builder(&getContext());
  auto axes = [&](int count) {
    return builder.getStrArrayAttr(
        SmallVector<StringRef>(std::begin(kAxes), std::begin(kAxes) + count));
  };
  return PlacementAttr::get(&getContext(), axes(row.parameters), axes(row.gradients),
                            axes(row.state));
}

/// The function to shard, in a module that is not sharded yet.
FailureOr<func::FuncOp> FormUnitsPass::findLoss() {
  ModuleOp module = getOperation();
  for (Operation &op : module.getOps())
    if (isa<MeshOp, UnitOp>(op)) {
      InFlightDiagnostic diag =
          mlir::emitError(module.getLoc(), "expected a module that is not sharded yet");
      diag.attachNote(op.getLoc()) << "found this declaration";
      return diag;
    }
  func::FuncOp loss;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func.isPublic())
      continue;
    if (loss) {
      InFlightDiagnostic diag =
          mlir::emitError(func.getLoc(), "expected one public function, the loss, found '@")
          << func.getSymName() << "' beside it";
      diag.attachNote(loss.getLoc()) << "the other one is here";
      return diag;
    }
    loss = func;
  }
  if (!loss)
    return mlir::emitError(module.getLoc(),
                           "expected one public function, the loss, as Import leaves it");
  if (!loss.getBody().hasOneBlock())
    return mlir::emitError(loss.getLoc(), "expected a body of one block");
  loss.setSymName("loss");
  return loss;
}

/// Number of the first op of the function's block that uses `value`, itself or
/// in a region.
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
    return fail() << "expected a tensor of static shape and of floats, or of integers of 1, 8, 16, "
                     "32 or 64 bits, found "
                  << arg.getType();
  if (!fitsElements(type.getShape()))
    return fail() << "expected at most 2^48 elements, found " << type;
  auto init = loss.getArgAttrOfType<InitAttr>(index, FSDPDialect::initAttr);
  if (!init)
    return fail() << "expected initial values in '" << FSDPDialect::initAttr
                  << "', as in #fsdp.init<normal, 0.0, 0.02>";
  parameters.push_back({name, type, init,
                        isInteger || loss.getArgAttr(index, FSDPDialect::frozenAttr),
                        /*firstUse=*/0, /*layer=*/{}, /*unit=*/{}});
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
                                << name << "; tied parameters are one argument used twice";
      diag.attachNote(it->second) << "the first one is here";
      return diag;
    }
    if (failed(collect(loss, arg)))
      return failure();
    parameters.back().firstUse = findFirstUse(arg, body, numbers);
  }
  if (parameters.empty())
    return mlir::emitError(loss.getLoc(), "expected at least one argument with '")
           << FSDPDialect::paramAttr << "': there is nothing to train";
  return success();
}

/// What `freeze` names is not trained, what `ignore` names is not sharded;
/// something has to be trained.
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
         << "all " << parameters.size()
         << " parameters are frozen: there is nothing to train; narrow what "
            "freeze, the sidecar or 'fsdp.frozen' says";
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

/// Tables of the root that are looked up by rows become units of their own.
LogicalResult FormUnitsPass::findTables(func::FuncOp loss, const MeshSpec &spec) {
  std::optional<RowsPolicy> policy = parseRowsPolicy(gatherRows);
  if (!policy)
    return mlir::emitError(getOperation().getLoc())
           << "gather-rows: expected 'auto' (lookups take the rows they need where that moves at "
              "most half of a "
              "table that is not small), 'always' or 'never', found '"
           << gatherRows << "'";
  int64_t parts = row->state > 1 ? llvm::product_of(spec.replicate) : 1;
  bool any = false;
  for (BlockArgument arg : loss.getArguments()) {
    auto name = loss.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::paramAttr);
    auto param = llvm::find_if(
        parameters, [&](const Parameter &p) { return name && p.name == name.getValue(); });
    if (param == parameters.end() || !param->layer.empty() || param->ignored ||
        row->parameters == 0)
      continue;
    param->rowSize = getRowSize(arg, *policy, llvm::product_of(spec.shard), parts);
    if (param->rowSize)
      param->layer = param->name;
    any |= param->rowSize != 0;
  }
  if (*policy == RowsPolicy::Always && !any)
    mlir::emitWarning(loss.getLoc())
        << "gather-rows 'always' has no effect: the root has no table in pieces, of at "
           "least a few rows per rank, that the model looks rows up in";
  return success();
}

SmallVector<Draft> FormUnitsPass::formDrafts() {
  llvm::MapVector<DraftKey, Draft> byKey;
  for (const Parameter &param : parameters) {
    Type dtype = param.type.getElementType();
    auto [it, isNew] = byKey.try_emplace({param.layer, param.frozen, param.ignored, dtype});
    if (isNew) {
      it->second.layer = param.layer;
      it->second.frozen = param.frozen;
      it->second.ignored = param.ignored;
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

/// Adds each layer to the one before it while that one is below the limit.
void FormUnitsPass::mergeSmall(SmallVector<Draft> &drafts) {
  SmallVector<Draft> merged;
  for (Draft &draft : drafts) {
    // The open unit of this kind, if there is one.
    auto open = llvm::find_if(llvm::reverse(merged), [&](const Draft &d) {
      return !d.isKeptAsRoot() && d.frozen == draft.frozen && d.ignored == draft.ignored &&
             d.dtype == draft.dtype;
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

/// `h.0`, `root.frozen`, and with the element type where another unit of the
/// same layer is larger: `h.0.bf16`.
static std::string nameOf(const Draft &draft, ArrayRef<Draft> drafts) {
  std::string name = draft.isRoot() ? "root" : draft.layer.str();
  if (draft.frozen)
    name += ".frozen";
  if (draft.ignored)
    name += ".ignored";
  for (const Draft &other : drafts) {
    if (&other == &draft || other.layer != draft.layer || other.frozen != draft.frozen ||
        other.ignored != draft.ignored)
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

/// Trained parameters that are computed with in less than f32 are kept in f32, or
/// as they are beside masters (Update).
Type FormUnitsPass::getStorageType(const Draft &draft) {
  bool narrow = isa<FloatType>(draft.dtype) && draft.dtype.getIntOrFloatBitWidth() < 32;
  return narrow && !draft.frozen && paramStorage == "master" ? Type(Float32Type::get(&getContext()))
                                                             : draft.dtype;
}

LogicalResult FormUnitsPass::declareUnit(SymbolTable &symbols, OpBuilder &builder, Location loc,
                                         StringRef name, const Draft &draft, const MeshSpec &spec) {
  if (draft.size > kMaxUnitSize)
    return mlir::emitError(loc) << "unit '" << name << "': expected at most 2^48 elements, found "
                                << draft.size;
  auto decays = [](const Parameter *p) { return p->type.getRank() >= 2; };
  const Strategy *row = draft.ignored ? &kStrategies[0] : this->row;
  int64_t shards = llvm::product_of(spec.shard);
  Type storage = getStorageType(draft);
  UnitLayout layout = layOutUnit(
      llvm::map_to_vector(
          draft.params,
          [&](const Parameter *p) { return ParamExtent{p->type.getNumElements(), decays(p)}; }),
      shards, row->state > 1 ? llvm::product_of(spec.replicate) : 1,
      getOffsetAlignment(getByteWidth(storage)), draft.isTable ? draft.params.front()->rowSize : 1);
  SmallVector<Attribute> params;
  for (auto [index, offset] : llvm::zip_equal(layout.order, layout.offsets)) {
    const Parameter *p = draft.params[index];
    params.push_back(ParamAttr::get(&getContext(), p->name,
                                    RankedTensorType::get(p->type.getShape(), storage), offset,
                                    !p->frozen, decays(p), p->init));
  }
  // What is kept behind the forward anyway is gathered for all micro-batches
  // at once, but for the root: it waits for the first gradient to be reduced.
  bool again = draft.isKeptAsRoot() ? rootReshard == "forward" : gathersAgain && row->reshard;
  bool hoisted = draft.isKeptAsRoot()
                     ? rootReshard == "step" || (rootReshard == "backward" && !row->reshard)
                     : !again;
  auto unit = UnitOp::create(
      builder, loc, name, shards, layout.shardSize, storage, again && row->parameters > 0,
      builder.getArrayAttr(params), getPlacement(*row), hoisted && row->parameters > 0,
      again && row->parameters > 0 && within ? builder.getI64IntegerAttr(within) : IntegerAttr(),
      draft.isTable);
  symbols.insert(unit); // renames it when the name is taken
  numUnits += 1;
  numParams += params.size();
  numPadding += layout.padding * getByteWidth(storage);
  if (remarks)
    mlir::emitRemark(loc) << "unit '" << name << "': " << params.size() << " parameters, " << shards
                          << " x " << layout.shardSize << " elements of " << storage << ", "
                          << layout.padding << " of them padding";
  return success();
}

static void declareMesh(OpBuilder &builder, Location loc, StringRef name, ArrayRef<AxisAttr> axes) {
  SmallVector<Attribute> list(axes.begin(), axes.end());
  MeshOp::create(builder, loc, name, builder.getArrayAttr(list));
}

void FormUnitsPass::runOnOperation() {
  parameters.clear();
  MeshSpec spec;
  FailureOr<const Strategy *> chosen = readOptions(spec);
  if (failed(chosen))
    return signalPassFailure();
  row = *chosen;
  FailureOr<func::FuncOp> loss = findLoss();
  bool gathers = row->parameters > 0 && llvm::product_of(spec.shard) > 1;
  if (failed(loss) || failed(collect(*loss)) || failed(readPatterns(*loss)) ||
      failed(assignLayers(*loss, gathers)) || failed(findTables(*loss, spec)))
    return signalPassFailure();
  warnOfParameters(*loss);
  SmallVector<Draft> drafts = formDrafts();
  mergeSmall(drafts);

  MLIRContext *context = &getContext();
  auto builder = OpBuilder(*loss);
  Location loc = loss->getLoc();
  declareMesh(builder, loc, "mesh",
              {AxisAttr::get(context, "replicate", spec.replicate),
               AxisAttr::get(context, "shard", spec.shard)});
  declareMesh(builder, loc, "solo", AxisAttr::get(context, "shard", {1}));
  SymbolTable symbols(getOperation());
  for (const Draft &draft : drafts)
    if (failed(declareUnit(symbols, builder, loc, nameOf(draft, drafts), draft, spec)))
      return signalPassFailure();
  if (within &&
      llvm::none_of(getOperation().getOps<UnitOp>(), [](UnitOp unit) { return unit.getWithin(); }))
    mlir::emitWarning(loc) << "reshard-after-forward=" << within
                           << " has no effect: only the root unit is gathered, which is kept until "
                              "the backward unless "
                              "reshard-root is 'forward'";
}
