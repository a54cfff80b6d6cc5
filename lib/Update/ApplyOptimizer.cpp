//===- ApplyOptimizer.cpp - State of the next step --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   flat shard        | p p p p | p p p p p p p | p p p |      one elementwise op
//   global index      0         .          border              on p, m, v in place
//                     <- weight decay ->|<- none ->
//
// 1. Add the optimizer state of each trainable unit as arguments after the unit's parameters.
// 2. Build the factors of the update rule (Optimizers.cpp) in f64, once for each compute type.
// 3. For each unit, build an op that applies the rule to each element. The global index of an
//    element determines whether weight decay applies to it. Element i of a shard has the global
//    index shard index · shard_size + i.
// 4. If the element Finite of the step block is 0, every new value equals the old value.
// 5. State in bf16 is computed in f32, and then rounded stochastically to one of the two nearest
//    bf16 numbers. The expected value of the result is the f32 number. If the state were rounded to
//    the nearest bf16 number, every change that is small compared with the state would be lost. The
//    random bits come from Philox: the key is the seed, and the counter is (index, index / 2^32,
//    step, 2^31 + number of the unit). The first state uses the low half of the first random word,
//    and the second state uses the high half. The number of the unit is an operand of the op, so
//    that equal units share a kernel.
//
// O(units) ops.
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include "Optimizers.h"
#include "Programs.h"
#include "fsdp/IR/Philox.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_APPLYOPTIMIZERPASS
#include "fsdp/Update/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// A range of a flat buffer that ends before `end`. Weight decay applies to all or none of its
/// elements.
struct DecaySpan {
  int64_t end;
  bool decay;
};

/// Builds the update of one program.
class UpdateBuilder {
public:
  UpdateBuilder(const Program &program, MeshOp mesh, const Optimizer &optimizer, bool stochastic);

  /// Builds the new parameter and state of a unit. `old` holds the arguments with the old values.
  SmallVector<Value> update(UnitOp unit, Value grad, ValueRange old);

private:
  SmallVector<Value> updatePieces(UnitOp unit, Value grad, ValueRange old, bool hasMaster);
  SmallVector<StringRef> getGatheredAxes(UnitOp unit);
  ArrayRef<Value> getFactors(Type type);
  Value buildGlobalIndex(ImplicitLocOpBuilder &b, UnitOp unit, ValueRange indices);

  Value getSite(UnitOp unit);

  const Program &program;
  MeshOp mesh;
  const Optimizer &optimizer;
  bool stochastic; ///< whether narrow state is rounded stochastically
  OpBuilder builder;
  Location loc;
  Value block;
  Value clip, finite;             ///< elements Clip and Finite of the step block
  Value seed, stepNumber;         ///< elements Seed and StepNumber of the rank block
  Value sites;                    ///< sites of all units, each in 8 adjacent elements (getSite())
  Value shardIndex, replicaIndex; ///< indices of this rank on the axes; null without a mesh
  /// Factors of the update rule. The key is the compute type.
  DenseMap<Type, SmallVector<Value>> factors;
};

struct ApplyOptimizerPass : fsdp::impl::ApplyOptimizerPassBase<ApplyOptimizerPass> {
  using ApplyOptimizerPassBase::ApplyOptimizerPassBase;
  void runOnOperation() override;

private:
  LogicalResult addState(Program &program);
  LogicalResult run(Program &program);
  SmallVector<StringRef> getStateNames(UnitOp unit);
  LogicalResult readOptions();
  LogicalResult checkUnits();
  Type getStateType(UnitOp unit, StringRef name);

  MeshOp mesh;
  bool narrow = false;                        ///< whether optimizer state is bf16
  std::shared_ptr<const Optimizer> optimizer; // shared, because MLIR copies pass objects
};

} // namespace

/// Returns the argument with the unit attribute `attr`, or null.
static BlockArgument findMarked(func::FuncOp func, StringRef attr) {
  for (BlockArgument arg : func.getArguments())
    if (func.getArgAttr(arg.getArgNumber(), attr))
      return arg;
  return {};
}

UpdateBuilder::UpdateBuilder(const Program &program, MeshOp mesh, const Optimizer &optimizer,
                             bool stochastic)
    : program(program), mesh(mesh), optimizer(optimizer), stochastic(stochastic),
      builder(program.getReturn()), loc(program.getReturn().getLoc()),
      block(program.getReturn().getOperand(0)) {
  clip = createElementView(builder, loc, block, StepSlot::Clip);
  finite = createElementView(builder, loc, block, StepSlot::Finite);
  Value rank = findMarked(program.func, FSDPDialect::rankAttr);
  auto slot = [&](RankSlot which) {
    return createElementView(builder, loc, rank, static_cast<int64_t>(which));
  };
  if (stochastic) {
    seed = slot(RankSlot::Seed);
    stepNumber = slot(RankSlot::StepNumber);
  }
  if (!program.isSharded())
    return;
  shardIndex = slot(RankSlot::ShardIndex);
  replicaIndex = slot(RankSlot::ReplicateIndex);
}

ArrayRef<Value> UpdateBuilder::getFactors(Type type) {
  SmallVector<Value> &found = factors[type];
  if (!found.empty())
    return found;
  Value ins[] = {createElementView(builder, loc, block, StepSlot::LearningRate),
                 createElementView(builder, loc, block, StepSlot::Step)};
  SmallVector<Value> outs;
  for (unsigned i = 0; i < optimizer.getNumFactors(); ++i)
    outs.push_back(createEmpty(builder, loc, RankedTensorType::get({}, type)));
  found = createElementwise(
      builder, loc, ins, outs, [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
        Value lr = castFloat(b, args[0], b.getF64Type());
        Value step = castFloat(b, args[1], b.getF64Type());
        return llvm::map_to_vector(optimizer.buildFactors(b, lr, step),
                                   [&](Value factor) { return castFloat(b, factor, type); });
      });
  return found;
}

/// Divides the flat buffer of the unit into ranges with and without weight decay. Returns at least
/// one range. Adjacent parameters with equal decay share a range. Padding belongs to the range
/// before it.
static SmallVector<DecaySpan> getDecaySpans(UnitOp unit) {
  SmallVector<DecaySpan> spans;
  for (auto param : unit.getParams().getAsRange<ParamAttr>()) {
    int64_t end = param.getOffset() + param.getType().getNumElements();
    if (end == param.getOffset())
      continue;
    if (spans.empty() || spans.back().decay != param.getDecay())
      spans.push_back({end, param.getDecay()});
    spans.back().end = end;
  }
  // No parameter has elements, so the buffer consists of padding only.
  if (spans.empty())
    spans.push_back({0, false});
  return spans;
}

/// Builds the index that the current element of an elementwise op has in the unit's flat buffer.
/// `indices` are the indices of the rank on the axes over which the state is split. `indices` is
/// empty if the state is whole.
Value UpdateBuilder::buildGlobalIndex(ImplicitLocOpBuilder &b, UnitOp unit, ValueRange indices) {
  Value index = linalg::IndexOp::create(b, 0);
  int64_t size = unit.getFlatSize();
  if (program.countBuffers(unit) > 1) // the flat buffers of several slices
    index = arith::RemUIOp::create(b, index, arith::ConstantIndexOp::create(b, size));
  for (auto [rank, axis] : llvm::zip(indices, unit.getOptimizerAxes())) {
    size /= mesh.getAxisSize(axis);
    Value piece = arith::IndexCastOp::create(b, b.getIndexType(), rank);
    Value first = arith::MulIOp::create(b, piece, arith::ConstantIndexOp::create(b, size));
    index = arith::AddIOp::create(b, first, index);
  }
  return index;
}

/// Builds the site of a unit, which is the number that identifies the random numbers for the state
/// of the unit. The sites of fsdp.random are below 2^31, and the sites of units are not.
Value UpdateBuilder::getSite(UnitOp unit) {
  // Each site occupies a whole cache line, so that the view of each site is aligned.
  constexpr int64_t firstSite = int64_t(1) << 31, perLine = 8;
  auto units = llvm::to_vector(unit->getParentOfType<ModuleOp>().getOps<UnitOp>());
  if (!sites) {
    auto type = RankedTensorType::get({perLine * int64_t(units.size())}, builder.getI64Type());
    auto body = [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
      Value index = arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, 0));
      Value number = arith::DivUIOp::create(
          b, index, arith::ConstantOp::create(b, b.getI64IntegerAttr(perLine)));
      return {arith::AddIOp::create(b, number,
                                    arith::ConstantOp::create(b, b.getI64IntegerAttr(firstSite)))};
    };
    sites = createElementwise(builder, loc, {}, createEmpty(builder, loc, type), body).front();
  }
  return createElementView(builder, loc, sites,
                           perLine * (llvm::find(units, unit) - units.begin()));
}

/// Builds 16 random bits for each of the two states of element `index`. `key` consists of seed,
/// step and site.
static SmallVector<Value> buildNoise(ImplicitLocOpBuilder &b, Value index, ValueRange key) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  auto low = [&](Value value, int64_t mask) -> Value {
    return arith::AndIOp::create(b, value, constant(mask));
  };
  int64_t word = 0xffffffff;
  Value element = arith::IndexCastOp::create(b, b.getI64Type(), index);
  Value high = arith::ShRUIOp::create(b, element, constant(32));
  Value block =
      buildPhilox(b, b.getLoc(), {low(element, word), high, low(key[1], word), key[2]}, key[0])[0];
  return {low(block, 0xffff), arith::ShRUIOp::create(b, block, constant(16))};
}

/// Returns the axes over which the optimizer state is sharded and the parameters are not.
SmallVector<StringRef> UpdateBuilder::getGatheredAxes(UnitOp unit) {
  if (!shardIndex)
    return {};
  return llvm::to_vector(llvm::drop_begin(unit.getOptimizerAxes(), unit.getParameterAxes().size()));
}

SmallVector<Value> UpdateBuilder::update(UnitOp unit, Value grad, ValueRange old) {
  SmallVector<StringRef> axes = llvm::to_vector(llvm::make_filter_range(
      getGatheredAxes(unit), [&](StringRef axis) { return mesh.getAxisSize(axis) > 1; }));
  auto name = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
  SmallVector<Value> pieces(old);
  auto sized = [](Value value, int64_t size) {
    return cast<RankedTensorType>(value.getType()).clone({size});
  };
  auto sizeOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getDimSize(0); };
  for (StringRef axis : axes)
    pieces[0] = OwnPieceOp::create(builder, loc,
                                   sized(pieces[0], sizeOf(pieces[0]) / mesh.getAxisSize(axis)),
                                   pieces[0], name, builder.getStrArrayAttr({axis}));
  bool hasMaster = old.size() > 1 + optimizer.getStateNames().size();
  SmallVector<Value> updated = updatePieces(unit, grad, pieces, hasMaster);
  for (StringRef axis : llvm::reverse(axes))
    updated[0] = AllGatherOp::create(builder, loc,
                                     sized(updated[0], sizeOf(updated[0]) * mesh.getAxisSize(axis)),
                                     updated[0], name, builder.getStrArrayAttr({axis}));
  return updated;
}

/// Builds the update of the pieces of a unit that this rank owns. `old` holds the parameters, their
/// masters if `hasMaster`, and the state. With masters, the rule updates the masters, and the new
/// parameters are the rounded masters.
SmallVector<Value> UpdateBuilder::updatePieces(UnitOp unit, Value grad, ValueRange old,
                                               bool hasMaster) {
  FloatType type = getComputeType(unit.getDtype());
  SmallVector<DecaySpan> spans = getDecaySpans(unit);
  bool mixed = optimizer.hasDecay() && spans.size() > 1;
  SmallVector<Value> ins{grad, finite, clip};
  unsigned firstFactor = ins.size();
  llvm::append_range(ins, getFactors(type));
  unsigned numFactors = ins.size() - firstFactor;
  bool rounds = stochastic &&
                getElementTypeOrSelf(old.back()).getIntOrFloatBitWidth() < type.getWidth() &&
                !optimizer.getStateNames().empty();
  unsigned firstKey = ins.size();
  if (rounds)
    llvm::append_range(ins, std::array{seed, stepNumber, getSite(unit)});
  unsigned firstIndex = ins.size();
  if ((mixed || rounds) && shardIndex)
    for (StringRef axis : unit.getOptimizerAxes())
      ins.push_back(axis == "shard" ? shardIndex : replicaIndex);
  unsigned numIndices = ins.size() - firstIndex;

  auto body = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    auto wide = [&](Value value) { return castFloat(b, value, type); };
    Value clipped = arith::MulFOp::create(b, wide(args[0]), wide(args[2]));
    Value index =
        mixed || rounds ? buildGlobalIndex(b, unit, args.slice(firstIndex, numIndices)) : Value();
    auto decay = [&](Value with, Value without) -> Value {
      Value chosen = spans.back().decay ? with : without;
      for (const DecaySpan &span : llvm::drop_begin(llvm::reverse(spans))) {
        Value end = arith::ConstantIndexOp::create(b, span.end);
        Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, end);
        chosen = arith::SelectOp::create(b, below, span.decay ? with : without, chosen);
      }
      return chosen;
    };
    ValueRange before = args.drop_front(ins.size());
    auto after =
        optimizer.buildElement(b, clipped, llvm::map_to_vector(before.drop_front(hasMaster), wide),
                               args.slice(firstFactor, numFactors), decay);
    if (hasMaster)
      after.insert(after.begin(), after.front());
    Value zero = createConstant(b, args[1].getType(), 0.0);
    Value isFinite = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, args[1], zero);
    SmallVector<Value> noise;
    if (rounds)
      noise = buildNoise(b, index, args.slice(firstKey, 3));
    unsigned firstState = 1 + hasMaster;
    for (auto [i, value, kept] : llvm::enumerate(after, before)) {
      Value stored = rounds && i >= firstState
                         ? buildStochasticRounding(b, b.getLoc(), value, noise[i - firstState])
                         : castFloat(b, value, kept.getType());
      value = arith::SelectOp::create(b, isFinite, stored, kept);
    }
    return after;
  };
  return createElementwise(builder, grad.getLoc(), ins, old, body);
}

/// Adds the state of each trainable unit as arguments after the unit's parameters. Sets the
/// attributes that name unit and state on all these arguments.
LogicalResult ApplyOptimizerPass::addState(Program &program) {
  func::FuncOp func = program.func;
  Builder b(&getContext());
  auto named = [&](UnitOp unit, StringRef state) {
    return b.getDictionaryAttr(
        {b.getNamedAttr(FSDPDialect::unitAttr, FlatSymbolRefAttr::get(unit.getSymNameAttr())),
         b.getNamedAttr(FSDPDialect::stateAttr, b.getStringAttr(state))});
  };
  for (UnitArgument &unit : llvm::reverse(program.units)) {
    func.setArgAttrs(unit.index, named(unit.unit, "parameter"));
    if (!unit.trainable)
      continue;
    int64_t size = program.isSharded() ? unit.unit.getPieceSize(unit.unit.getOptimizerAxes(), mesh)
                                       : program.countBuffers(unit.unit) * unit.unit.getFlatSize();
    SmallVector<StringRef> names = getStateNames(unit.unit);
    for (StringRef name : llvm::reverse(names)) {
      Type type = RankedTensorType::get({size}, getStateType(unit.unit, name));
      if (failed(func.insertArgument(unit.index + 1, type, named(unit.unit, name),
                                     unit.unit.getLoc())))
        return failure();
      if (program.kind == ProgramKind::Step)
        numState += size;
    }
  }
  unsigned added = 0;
  for (UnitArgument &unit : program.units) {
    unit.index += added;
    added += unit.trainable ? getStateNames(unit.unit).size() : 0;
  }
  return success();
}

/// Returns the names of the state of a unit. If a unit's parameters are narrower than the compute
/// type of the rule, its state includes masters of the compute type.
SmallVector<StringRef> ApplyOptimizerPass::getStateNames(UnitOp unit) {
  SmallVector<StringRef> names = optimizer->getStateNames();
  if (masters && getComputeType(unit.getDtype()) != unit.getDtype())
    names.insert(names.begin(), "master");
  return names;
}

/// Returns the element type of a state. If state is narrow, every state except a master is bf16. In
/// all other cases, a state has the compute type of the rule.
Type ApplyOptimizerPass::getStateType(UnitOp unit, StringRef name) {
  if (narrow && name != "master")
    return BFloat16Type::get(&getContext());
  return getComputeType(unit.getDtype());
}

LogicalResult ApplyOptimizerPass::readOptions() {
  Location loc = getOperation().getLoc();
  if (stateDtype != "f32" && stateDtype != "bf16")
    return mlir::emitError(loc, "optimizer-state-dtype: expected f32 or bf16, found '")
           << stateDtype << "'";
  if (stateRounding != "stochastic" && stateRounding != "nearest")
    return mlir::emitError(loc, "optimizer-state-rounding: expected stochastic or nearest, found '")
           << stateRounding << "'";
  narrow = stateDtype == "bf16";
  if (stateRounding != "stochastic" && !narrow)
    return mlir::emitError(loc, "optimizer-state-rounding '")
           << stateRounding
           << "' needs optimizer-state-dtype 'bf16', found 'f32', which is not rounded";
  OptimizerOptions options{optimizerName, beta1, beta2, eps, weightDecay, momentum};
  optimizer = createOptimizer(options, [&] { return mlir::emitError(loc); });
  if (optimizer && narrow && optimizer->getStateNames().empty())
    return mlir::emitError(loc, "optimizer-state-dtype 'bf16' has no effect: sgd without momentum "
                                "has no state; remove optimizer-state-dtype, or give momentum");
  return success(optimizer != nullptr);
}

/// Checks that narrow state is rounded from f32, not f64.
LogicalResult ApplyOptimizerPass::checkUnits() {
  if (narrow)
    for (auto unit : getOperation().getOps<UnitOp>())
      if (unit.getDtype().isF64() && llvm::any_of(unit.getParams().getAsRange<ParamAttr>(),
                                                  [](ParamAttr p) { return p.getTrainable(); }))
        return unit.emitError("optimizer-state-dtype: expected parameters of f32 or narrower for "
                              "state in bf16, found f64; "
                              "leave it out, freeze them, or export the model in f32");
  return success();
}

LogicalResult ApplyOptimizerPass::run(Program &program) {
  func::FuncOp func = program.func;
  for (auto [attr, what] : {std::pair(FSDPDialect::blockAttr, "the step block"),
                            std::pair(FSDPDialect::rankAttr, "the rank block")})
    if (!findMarked(func, attr))
      return mlir::emitError(func.getLoc(), "expected an argument with '")
             << attr << "' (" << what << "), found none; run fsdp-add-step-block first";
  if (failed(addState(program)))
    return failure();
  func::ReturnOp ret = program.getReturn();
  SmallVector<Value> results;
  SmallVector<int64_t> updated;
  if (program.kind != ProgramKind::Eval) {
    UpdateBuilder builder(program, mesh, *optimizer, narrow && stateRounding == "stochastic");
    for (auto [unit, grad] :
         llvm::zip_equal(program.getTrainable(), ret.getOperands().drop_front())) {
      unsigned numBuffers = getStateNames(unit.unit).size() + 1;
      SmallVector<Value> old(func.getArguments().slice(unit.index, numBuffers));
      llvm::append_range(results, builder.update(unit.unit, grad, old));
      for (unsigned i = 0; i < numBuffers; ++i)
        updated.push_back(unit.index + i);
      ++numUpdated;
    }
  }
  results.push_back(ret.getOperand(0));
  updated.push_back(findMarked(func, FSDPDialect::blockAttr).getArgNumber());
  ret->setOperands(results);
  func.setType(FunctionType::get(&getContext(), func.getArgumentTypes(), ret.getOperandTypes()));
  Builder b(&getContext());
  auto attrs = llvm::map_to_vector(updated, [&](int64_t index) {
    return b.getDictionaryAttr(
        b.getNamedAttr(FSDPDialect::updatesAttr, b.getI64IntegerAttr(index)));
  });
  func.setAllResultAttrs(attrs);
  return success();
}

void ApplyOptimizerPass::runOnOperation() {
  if (failed(readOptions()) || failed(checkUnits()))
    return signalPassFailure();
  FailureOr<Programs> programs =
      readPrograms(getOperation(), "the step block", GradientForm::Reduced);
  if (failed(programs))
    return signalPassFailure();
  mesh = programs->mesh;
  for (Program &program : programs->list)
    if (failed(run(program)))
      return signalPassFailure();
}
