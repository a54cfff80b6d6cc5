//===- AddReference.cpp - The ranks of a sample in one program --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   step         %y = x · %w           w: slice of a rank     p = all_reduce %y over tensor
//   reference    %y0 = x · %w[0]       %y1 = x · %w[1]        p = 0 + %y0 + %y1
//
// Ranks of the axes `tensor` and `context` compute one sample together. The program `reference`
// computes the values of all C·T ranks on one rank, so that its sums are split in the same order.
//
//  1. Clone the step. Replace each cross-entropy of split classes by ops and an all_reduce.
//  2. Replace each op by one copy per pair of coordinates (c, t). If two copies have equal
//     operands, build only one of them. A value that is equal on all ranks is thus computed once.
//  3. Arguments: the coordinates of a rank become results of kernels without inputs. A unit of
//     slices of parameters becomes the flat buffers of its T slices, one after another. A unit of
//     whole parameters becomes its flat buffer.
//  4. Collectives over the two axes become sums in the order of ranks, concatenations and slices.
//     The collectives of units become views of their flat buffers, because `@solo` has one rank.
//  5. Results: gradients of slices are laid out as the slices are. Any other result must be the
//     same value for all t. If C > 1, a result has a leading dimension of the results of all c,
//     which AccumulateGradients.cpp adds in order.
//
// O(ops · C·T). If C·T is larger than 8, or the program would have too many ops, the module gets
// the attribute `fsdp.no_reference` instead.
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include "LossWeights.h"
#include "fsdp/IR/Decompositions.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Update/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ADDREFERENCEPASS
#include "fsdp/Update/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t mostCopies = 8, mostOps = 50000;

static RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

namespace {

/// The results of an op in one copy, by which a later copy with equal operands is found.
struct KnownResults {
  SmallVector<Value> operands;
  SmallVector<Value> results;
};

class Unrolling {
public:
  /// Builds the body of `reference`, which has no body yet, from the body of `step`.
  Unrolling(func::FuncOp step, func::FuncOp reference, MeshOp mesh)
      : step(step), reference(reference), contexts(mesh.getAxisSize(contextAxis)),
        tensors(mesh.getAxisSize(tensorAxis)), maps(contexts * tensors), b(step.getContext()) {}

  LogicalResult run();
  int64_t numOps = 0;

private:
  void addArguments();
  UnitOp getUnit(Attribute name);
  int64_t countSlices(UnitOp unit) { return unit && unit->hasAttr(tensorSplitAttr) ? tensors : 1; }
  FailureOr<SmallVector<int64_t>> getMembers(Operation *op, ArrayAttr axes, int64_t copy);
  SmallVector<Value> lookUp(ValueRange values, int64_t copy);
  LogicalResult unroll(Operation *op);
  LogicalResult unrollCollective(Operation *op, ArrayAttr axes);
  SmallVector<Value> build(Operation *op, int64_t copy);
  Value buildKernel(Location loc, Type type, ValueRange inputs, StringRef kind,
                    function_ref<Value(ValueRange)> build);
  Value buildSum(Location loc, ValueRange parts, ReductionKind kind);
  Value buildCoordinate(BlockArgument arg, int64_t coordinate);
  Value buildConcatenation(Location loc, ValueRange parts);
  Value buildPiece(Location loc, Value whole, int64_t index, int64_t size);
  LogicalResult addResults();
  FailureOr<Value> joinResult(unsigned index);

  func::FuncOp step, reference;
  int64_t contexts, tensors;
  SmallVector<IRMapping> maps; ///< values of the step to those of copy c · T + t
  OpBuilder b;
  /// For each unit of slices, and each pair of a tensor and an index: the piece of the tensor.
  DenseMap<std::pair<Value, int64_t>, Value> pieces;
};

struct AddReferencePass : fsdp::impl::AddReferencePassBase<AddReferencePass> {
  using AddReferencePassBase::AddReferencePassBase;
  void runOnOperation() override;
};

} // namespace

UnitOp Unrolling::getUnit(Attribute name) {
  auto symbol = dyn_cast_or_null<FlatSymbolRefAttr>(name);
  return symbol ? SymbolTable::lookupNearestSymbolFrom<UnitOp>(step, symbol) : UnitOp();
}

SmallVector<Value> Unrolling::lookUp(ValueRange values, int64_t copy) {
  return llvm::map_to_vector(values,
                             [&](Value value) { return maps[copy].lookupOrDefault(value); });
}

/// Returns piece `index` of `size` elements of a 1-D tensor.
Value Unrolling::buildPiece(Location loc, Value whole, int64_t index, int64_t size) {
  if (getTensorType(whole).getDimSize(0) == size)
    return whole;
  Value &piece = pieces[{whole, index}];
  auto at = [&](int64_t value) { return SmallVector<OpFoldResult>{b.getIndexAttr(value)}; };
  if (!piece)
    piece = tensor::ExtractSliceOp::create(b, loc, getTensorType(whole).clone({size}), whole,
                                           at(index * size), at(size), at(1));
  return piece;
}

Value Unrolling::buildConcatenation(Location loc, ValueRange parts) {
  return parts.size() == 1 ? parts.front()
                           : tensor::ConcatOp::create(b, loc, /*dim=*/0, parts).getResult();
}

/// Returns the result of a kernel of its own with the inputs `inputs`, which `build` writes. In the
/// step, a collective computes the result. If ops that replace it joined neighbouring kernels,
/// these kernels could round differently from those of the step.
Value Unrolling::buildKernel(Location loc, Type type, ValueRange inputs, StringRef kind,
                             function_ref<Value(ValueRange)> build) {
  auto dispatch = DispatchOp::create(b, loc, TypeRange(type), inputs, b.getDenseI64ArrayAttr({-1}));
  dispatch->setAttr("kind", b.getStringAttr(kind));
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&dispatch.getBody(), {}, inputs.getTypes(),
                               SmallVector<Location>(inputs.size(), loc));
  YieldOp::create(b, loc, build(block->getArguments()));
  return dispatch.getResult(0);
}

/// Adds tensors as a collective does: in order from +0, in the compute type. A mean is then the sum
/// times 1/n.
Value Unrolling::buildSum(Location loc, ValueRange parts, ReductionKind kind) {
  Type type = parts.front().getType(), element = getTensorType(parts.front()).getElementType(),
       wide = getComputeType(element);
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    Value sum = createConstant(b, wide, 0);
    for (Value part : args.drop_back())
      sum = arith::AddFOp::create(b, sum, castFloat(b, part, wide));
    if (kind == ReductionKind::avg)
      sum = arith::MulFOp::create(b, sum, createConstant(b, wide, 1.0 / double(parts.size())));
    return {castFloat(b, sum, element)};
  };
  return buildKernel(loc, type, parts, "map", [&](ValueRange args) {
    return createElementwise(b, loc, args, createEmpty(b, loc, type), body).front();
  });
}

/// Returns a coordinate of ranks in the form of the argument `arg`. It is the result of a kernel,
/// not a constant, so that the kernels that read it are those of the step.
Value Unrolling::buildCoordinate(BlockArgument arg, int64_t coordinate) {
  Value &known = pieces[{arg, coordinate}];
  Location loc = arg.getLoc();
  if (!known)
    known = buildKernel(loc, arg.getType(), {}, "map", [&](ValueRange) -> Value {
      Value number = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(coordinate));
      Value empty = createEmpty(b, loc, arg.getType());
      return linalg::FillOp::create(b, loc, number, empty).getResult(0);
    });
  return known;
}

/// Adds the arguments of the reference, and maps those of the step to them.
void Unrolling::addArguments() {
  Block *block = reference.addEntryBlock();
  b.setInsertionPointToStart(block);
  for (BlockArgument arg : step.getArguments()) {
    unsigned index = arg.getArgNumber();
    BlockArgument whole = block->getArgument(index);
    whole.setType(arg.getType()); // weighReference() has changed that of the weight of the loss
    UnitOp unit = getUnit(step.getArgAttr(index, FSDPDialect::unitAttr));
    auto key = step.getArgAttrOfType<StringAttr>(index, FSDPDialect::keyAttr);
    StringRef axis = key ? key.getValue() : StringRef();
    if (unit)
      whole.setType(getTensorType(arg).clone({countSlices(unit) * unit.getFlatSize()}));
    for (auto [copy, map] : llvm::enumerate(maps)) {
      int64_t coordinate = axis == contextAxis ? copy / tensors : copy % tensors;
      Value value = whole;
      if (unit)
        value = buildPiece(unit.getLoc(), whole, copy % tensors, unit.getFlatSize());
      else if (axis == contextAxis || axis == tensorAxis)
        value = buildCoordinate(arg, coordinate);
      map.map(arg, value);
    }
  }
}

/// Returns the copies whose ranks are in the group of `copy` on `axes`, in the order of ranks.
/// Fails if the group has ranks that compute other samples.
FailureOr<SmallVector<int64_t>> Unrolling::getMembers(Operation *op, ArrayAttr axes, int64_t copy) {
  bool overContext = false, overTensor = false;
  for (StringRef axis : axes.getAsValueRange<StringAttr>()) {
    if (axis != contextAxis && axis != tensorAxis)
      return op->emitOpError("expected the axes 'context' and 'tensor' before gradients are "
                             "reduced, found '")
             << axis << "'";
    (axis == contextAxis ? overContext : overTensor) = true;
  }
  SmallVector<int64_t> members;
  for (int64_t other = 0; other < contexts * tensors; ++other)
    if ((overContext || other / tensors == copy / tensors) &&
        (overTensor || other % tensors == copy % tensors))
      members.push_back(other);
  return members;
}

/// Replaces a collective over the axes `context` and `tensor` by ops on the values of its group.
LogicalResult Unrolling::unrollCollective(Operation *op, ArrayAttr axes) {
  Value input = op->getOperand(0), result = op->getResult(0);
  Location loc = op->getLoc();
  int64_t size = getTensorType(result).getRank() ? getTensorType(result).getDimSize(0) : 1;
  SmallVector<KnownResults> known; // of groups with equal inputs
  for (int64_t copy = 0; copy < contexts * tensors; ++copy) {
    FailureOr<SmallVector<int64_t>> members = getMembers(op, axes, copy);
    if (failed(members))
      return failure();
    int64_t position = llvm::find(*members, copy) - members->begin();
    KnownResults group;
    for (int64_t member : *members)
      group.operands.push_back(maps[member].lookup(input));
    auto *same = llvm::find_if(
        known, [&](const KnownResults &other) { return other.operands == group.operands; });
    auto all = [&](function_ref<Value()> create) {
      if (same != known.end())
        return same->results.front();
      group.results.push_back(create());
      known.push_back(group);
      return group.results.front();
    };
    Value value;
    if (auto reduce = dyn_cast<AllReduceOp>(op))
      value = all([&] { return buildSum(loc, group.operands, reduce.getReduction()); });
    else if (auto scatter = dyn_cast<FlatReduceScatterOp>(op))
      value = buildPiece(loc,
                         all([&] { return buildSum(loc, group.operands, scatter.getReduction()); }),
                         position, size);
    else if (isa<AllGatherOp>(op))
      value = all([&] {
        return buildKernel(loc, result.getType(), group.operands, "copy",
                           [&](ValueRange parts) { return buildConcatenation(loc, parts); });
      });
    else if (auto broadcast = dyn_cast<BroadcastOp>(op))
      value = group.operands[broadcast.getRoot()];
    else if (isa<ShiftOp>(op))
      value = group.operands[(position + group.operands.size() - 1) % group.operands.size()];
    else
      value = buildPiece(loc, group.operands[position], position, size);
    maps[copy].map(result, value);
  }
  return success();
}

/// Builds an op for one copy. Gradients of units have the whole flat buffer.
SmallVector<Value> Unrolling::build(Operation *op, int64_t copy) {
  ++numOps;
  Operation *clone = b.clone(*op, maps[copy]);
  if (auto reduce = dyn_cast<ReduceScatterOp>(clone))
    reduce.getShard().setType(
        getTensorType(reduce.getShard()).clone({getUnit(reduce.getUnitAttr()).getFlatSize()}));
  if (auto rows = dyn_cast<ReduceRowsOp>(clone))
    rows.getShard().setType(
        getTensorType(rows.getShard()).clone({getUnit(rows.getUnitAttr()).getFlatSize()}));
  return llvm::to_vector_of<Value>(clone->getResults());
}

LogicalResult Unrolling::unroll(Operation *op) {
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  if (isa<AllReduceOp, AllGatherOp, FlatReduceScatterOp, OwnPieceOp, BroadcastOp, ShiftOp>(op))
    return unrollCollective(op, axes);
  if (axes && isa<FSDPDialect>(op->getDialect()))
    return op->emitOpError("has no counterpart in the program 'reference'");
  if (isa<ShardOp>(op)) // kept pieces of gathered parameters
    return success();
  auto unshard = dyn_cast<UnshardOp>(op);
  auto kept = unshard ? unshard.getShard().getDefiningOp<ShardOp>() : ShardOp();
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  SmallVector<KnownResults> known;
  for (auto [copy, map] : llvm::enumerate(maps)) {
    KnownResults made;
    made.operands = lookUp(kept ? ValueRange(kept.getParams()) : op->getOperands(), copy);
    if (kept) {
      map.map(op->getResults(), made.operands);
      continue;
    }
    llvm::append_range(made.operands, lookUp(captured.getArrayRef(), copy));
    auto *same = llvm::find_if(
        known, [&](const KnownResults &other) { return other.operands == made.operands; });
    made.results = same != known.end() ? same->results : build(op, copy);
    map.map(op->getResults(), made.results);
    known.push_back(std::move(made));
  }
  return success();
}

/// Joins the values of a result of the step in all copies.
FailureOr<Value> Unrolling::joinResult(unsigned index) {
  Value result = step.getBody().front().getTerminator()->getOperand(index);
  Location loc = result.getLoc();
  Attribute name = step.getResultAttr(index, FSDPDialect::unitAttr);
  if (!name)
    name = step.getResultAttr(index, FSDPDialect::rowsAttr);
  bool isSliced = countSlices(getUnit(name)) > 1;
  SmallVector<Value> parts;
  for (int64_t c = 0; c < contexts; ++c) {
    SmallVector<Value> ofTensors;
    for (int64_t t = 0; t < tensors; ++t)
      ofTensors.push_back(maps[c * tensors + t].lookup(result));
    if (!isSliced && !llvm::all_equal(ofTensors))
      return mlir::emitError(loc, "expected result ")
             << index << " of the step to be equal on all ranks of axis 'tensor', found a value "
             << "that each of them computes from its slices; add the parts by 'fsdp.all_reduce'";
    parts.push_back(isSliced ? buildConcatenation(loc, ofTensors) : ofTensors.front());
  }
  if (contexts == 1)
    return parts.front();
  RankedTensorType type = getTensorType(parts.front());
  SmallVector<int64_t> shape{1};
  llvm::append_range(shape, type.getShape());
  SmallVector<ReassociationIndices> groups;
  if (type.getRank())
    groups.push_back({0, 1});
  for (Value &part : parts)
    part = tensor::ExpandShapeOp::create(b, loc, type.clone(shape), part, groups);
  return buildConcatenation(loc, parts);
}

LogicalResult Unrolling::addResults() {
  SmallVector<Value> results;
  for (unsigned i = 0; i < step.getNumResults(); ++i) {
    FailureOr<Value> joined = joinResult(i);
    if (failed(joined))
      return failure();
    results.push_back(*joined);
  }
  func::ReturnOp::create(b, step.getLoc(), results);
  reference.setFunctionType(
      b.getFunctionType(reference.getBody().getArgumentTypes(), TypeRange(ValueRange(results))));
  return success();
}

LogicalResult Unrolling::run() {
  addArguments();
  for (Operation &op : step.getBody().front().without_terminator())
    if (failed(unroll(&op)))
      return failure();
  return addResults();
}

/// Returns the step of the module, or null.
static func::FuncOp findStep(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>())
    if (auto name = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
        name && name.getValue() == "step" && func.getBody().hasOneBlock())
      return func;
  return {};
}

/// Replaces each cross-entropy of split classes by ops and a collective.
static void lowerCrossEntropies(func::FuncOp func) {
  IRRewriter rewriter(func.getContext());
  for (auto op : llvm::make_early_inc_range(func.getBody().front().getOps<CrossEntropyOp>()))
    if (op.getCoordinate()) {
      rewriter.setInsertionPoint(op);
      rewriter.replaceOp(op, lowerToLinalg(op, rewriter));
    }
}

void AddReferencePass::runOnOperation() {
  ModuleOp module = getOperation();
  func::FuncOp step = findStep(module);
  auto name =
      step ? step->getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::meshAttr) : FlatSymbolRefAttr();
  auto mesh = name ? module.lookupSymbol<MeshOp>(name.getAttr()) : MeshOp();
  if (!isPartitioned(mesh) || module->hasAttr(noReferenceAttr) ||
      module.lookupSymbol<func::FuncOp>("reference"))
    return;
  int64_t copies = mesh.getNumReaders();
  int64_t ops = std::distance(step.getBody().front().begin(), step.getBody().front().end());
  if (copies > mostCopies || ops * copies > mostOps) {
    module->setAttr(noReferenceAttr, UnitAttr::get(&getContext()));
    return;
  }
  Builder b(&getContext());
  auto source = step.clone();
  source.setSymName("reference.step");
  module.insert(std::next(step->getIterator()), source);
  auto microBatches = step->getAttrOfType<IntegerAttr>(FSDPDialect::microBatchesAttr);
  int64_t terms = (microBatches ? microBatches.getInt() : 1) * mesh.getAxisSize("replicate") *
                  mesh.getAxisSize("shard") / mesh.getAxisSize(contextAxis);
  if (failed(weighReference(source, terms, mesh.getAxisSize(contextAxis))))
    return signalPassFailure();
  lowerCrossEntropies(source);
  auto reference = cast<func::FuncOp>(source->cloneWithoutRegions());
  reference.setSymName("reference");
  module.insert(std::next(step->getIterator()), reference);
  reference->setAttr(FSDPDialect::programAttr, b.getStringAttr("reference"));
  reference->setAttr(FSDPDialect::meshAttr, FlatSymbolRefAttr::get(&getContext(), "solo"));
  reference->setAttr(FSDPDialect::microBatchesAttr, b.getI64IntegerAttr(terms));
  Unrolling unrolling(source, reference, mesh);
  if (failed(unrolling.run()))
    return signalPassFailure();
  numOps += unrolling.numOps;
  source.erase();
}
