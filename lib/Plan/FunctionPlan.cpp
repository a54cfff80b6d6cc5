//===- FunctionPlan.cpp - One function as commands on buffers ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Walks over a function (step 3 of AssignBuffers.cpp). Chooses places for the results of every op,
// and adds a command for most ops.
//
//===----------------------------------------------------------------------===//

#include "FunctionPlan.h"
#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/Memory.h"

using namespace mlir;
using namespace mlir::fsdp;

static int64_t getBytes(Value value) {
  return getStorageBytes(cast<RankedTensorType>(value.getType()));
}

FunctionPlan::FunctionPlan(func::FuncOp function, LayoutBuilder &layout, Counts &counts)
    : function(function), layout(layout), counts(counts), aliasing(function),
      builder(function.getContext()) {}

LogicalResult FunctionPlan::run() {
  builder.setInsertionPointAfter(function);
  auto mesh = function->getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::meshAttr);
  auto name = function->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
  Operation *other = SymbolTable::lookupSymbolIn(function->getParentOp(), name);
  if (other && other != function)
    return other->emitError("symbol @")
           << name.getValue() << " is reserved for the program of @" << function.getName()
           << "; rename this '" << other->getName() << "'";
  program = ProgramOp::create(builder, function.getLoc(), name,
                              FlatSymbolRefAttr::get(layout.getLayout().getSymNameAttr()), mesh);
  builder.createBlock(&program.getBody());
  if (failed(placeArguments()))
    return failure();
  findGradients();
  reserveFlatBuffers();
  reserveGathered();
  return planBlock(function.getBody().front());
}

LogicalResult FunctionPlan::placeArguments() {
  llvm::SmallDenseSet<int64_t> updated;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto index = function.getResultAttrOfType<IntegerAttr>(i, FSDPDialect::updatesAttr))
      updated.insert(index.getInt());
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.hasStaticShape())
      return emitError(argument.getLoc())
             << "argument " << argument.getArgNumber() << " of @" << function.getName()
             << ": expected a tensor of static shape, found " << argument.getType();
    FailureOr<Place> place = layout.getArgument(function, argument.getArgNumber());
    if (failed(place))
      return failure();
    setPlace(argument, *place);
    if (!updated.contains(argument.getArgNumber()))
      aliasing.keep(argument);
  }
  return success();
}

LogicalResult FunctionPlan::planBlock(Block &block) {
  for (Operation &op : block)
    if (failed(planOp(&op)))
      return failure();
  return success();
}

LogicalResult FunctionPlan::planOp(Operation *op) {
  if (Value source = aliasing.getViewSource(op))
    return planView(op, source);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](KernelCallOp call) { return planCall(call); })
      .Case([&](UnshardOp unshard) { return planUnshard(unshard); })
      .Case([&](ReduceScatterOp reduce) { return planReduceScatter(reduce); })
      .Case([&](ShardOp shard) { return planShard(shard); })
      .Case([&](AllReduceOp reduce) { return planAllReduce(reduce); })
      .Case([&](FlatReduceScatterOp reduce) {
        return planCollective(op, CollectiveKind::reduce_scatter, reduce.getAxes(),
                              reduce.getReduction(), 0);
      })
      .Case([&](AllGatherOp gather) {
        return planCollective(op, CollectiveKind::all_gather, gather.getAxes(), std::nullopt, 0);
      })
      .Case([&](BroadcastOp broadcast) {
        return planCollective(op, CollectiveKind::broadcast, broadcast.getAxes(), std::nullopt,
                              broadcast.getRoot());
      })
      .Case([&](ShiftOp shift) {
        return planCollective(op, CollectiveKind::shift, shift.getAxes(), std::nullopt, 0);
      })
      .Case([&](scf::ForOp loop) { return planLoop(loop); })
      .Case([&](func::ReturnOp ret) { return planReturn(ret); })
      .Case<scf::YieldOp>([](auto) { return success(); }) // planLoop plans yields
      .Default([&](Operation *other) -> LogicalResult {
        bool isIndex = other->getNumRegions() == 0 && other->getNumResults() == 1 &&
                       isa<IndexType, IntegerType>(other->getResult(0).getType());
        if (isIndex)
          return success();
        return other->emitOpError(
            "cannot become a command of a program; expected only kernel calls, collectives, "
            "contiguous views and one level of 'scf.for' (run the Fuse stage first)");
      });
}

LogicalResult FunctionPlan::planView(Operation *op, Value source) {
  if (auto own = dyn_cast<OwnPieceOp>(op))
    return planOwnPiece(own);
  Place place = getPlace(source);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    std::optional<ViewOffset> offset = getContiguousOffset(slice);
    if (!offset)
      return op->emitOpError(
          "expected a slice that is one contiguous range, at a constant offset plus a multiple of "
          "the loop index, found gaps between its elements or another offset; make it part of an "
          "'fsdp.dispatch'");
    place.offset += offset->bytes;
    place.stride += offset->stride;
  }
  // If one rank holds the whole unit, the unit's parameters are ranges of the unit's flat buffer.
  if (auto unshard = dyn_cast<UnshardOp>(op)) {
    auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, unshard.getUnitAttr());
    for (auto [index, result] : llvm::enumerate(op->getResults())) {
      int64_t width = getStorageBytes(cast<RankedTensorType>(source.getType()).clone({1}));
      setPlace(result, {place.buffer, place.offset + unit.getParam(index).getOffset() * width,
                        getBytes(result)});
    }
    return success();
  }
  place.bytes = getBytes(op->getResult(0));
  setPlace(op->getResult(0), place);
  return success();
}

/// Returns true if the kernel only fills its results with zero bytes.
static bool isZeroFill(func::FuncOp kernel) {
  if (kernel.isDeclaration())
    return false;
  auto ret = cast<func::ReturnOp>(kernel.getBody().front().getTerminator());
  return llvm::all_of(ret.getOperands(), [](Value value) {
    auto fill = value.getDefiningOp<linalg::FillOp>();
    Attribute constant;
    if (!fill || !matchPattern(fill.getInputs()[0], m_Constant(&constant)))
      return false;
    if (auto number = dyn_cast<FloatAttr>(constant))
      return number.getValue().isPosZero();
    auto number = dyn_cast<IntegerAttr>(constant);
    return number && number.getValue().isZero();
  });
}

LogicalResult FunctionPlan::planCall(KernelCallOp call) {
  auto kernel = tables.lookupNearestSymbolFrom<func::FuncOp>(call, call.getKernelAttr());
  SmallVector<Place> bindings, results(call.getNumResults()), claimed;
  for (auto [index, input] :
       // The next loop chooses the places of those operands that results overwrite.
       llvm::enumerate(call.getInputs()))
    bindings.push_back(llvm::is_contained(call.getInplace(), index) ? getPlace(input)
                                                                    : align(input, call));
  for (auto [index, operand] : llvm::enumerate(call.getInplace())) {
    if (operand < 0)
      continue;
    SmallVector<Place> taken = claimed;
    for (auto [other, place] : llvm::enumerate(bindings))
      if (static_cast<int64_t>(other) != operand)
        taken.push_back(place);
    results[index] = bindings[operand] = claim(call.getInputs()[operand], call, taken);
    claimed.push_back(results[index]);
  }
  std::string label = describe(call);
  for (auto [index, operand] : llvm::enumerate(call.getInplace())) {
    if (operand >= 0)
      continue;
    Value result = call.getResult(index);
    auto slot = reserved.find(result);
    results[index] = slot != reserved.end() ? slot->second
                                            : addBuffer(label, classify(result, call),
                                                        getBytes(result), call.getLoc());
    bindings.push_back(results[index]);
  }
  for (auto [result, place] : llvm::zip_equal(call.getResults(), results)) {
    setPlace(result, place);
    if (Attribute mark = call->getAttr(offloadAttr))
      BufferOp(place.buffer)->setAttr(offloadAttr, mark);
  }
  if (call.getInputs().empty() && isZeroFill(kernel)) {
    for (auto [result, place] : llvm::zip_equal(call.getResults(), results)) {
      zeros.insert(result);
      emitFill(place, call.getLoc(), label);
    }
    return success();
  }
  SmallVector<Attribute> slices;
  for (const Place &place : bindings)
    slices.push_back(place.getSlice());
  LaunchOp::create(builder, call.getLoc(), call.getKernelAttr(), builder.getArrayAttr(slices),
                   builder.getStringAttr(label));
  return success();
}

LogicalResult FunctionPlan::planLoop(scf::ForOp loop) {
  std::optional<int64_t> count = getTripCount(loop);
  if (!count || *count < 1)
    return loop.emitOpError("expected constant bounds and at least one iteration");
  if (loop->getParentOp() != function)
    return loop.emitOpError(
        "is nested in another loop; expected one level of loops over micro-batches");
  // A value that the loop carries has the place of its initial value in all iterations.
  SmallVector<Place> carried;
  for (auto [init, argument] : llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs())) {
    if (!isa<RankedTensorType>(init.getType()))
      return loop.emitOpError("expected to carry tensors, found ") << init.getType();
    carried.push_back(claim(init, loop, carried));
    setPlace(argument, carried.back());
  }
  auto repeat = LoopOp::create(builder, loop.getLoc(), *count);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&repeat.getBody());
    if (failed(planBlock(*loop.getBody())))
      return failure();
    SmallVector<std::pair<Value, Place>> moves;
    for (auto [yielded, place] : llvm::zip_equal(loop.getYieldedValues(), carried))
      moves.push_back({yielded, place});
    moveAll(moves, loop.getLoc());
  }
  for (auto [result, place] : llvm::zip_equal(loop.getResults(), carried))
    setPlace(result, place);
  return success();
}

LogicalResult FunctionPlan::planReturn(func::ReturnOp op) {
  SmallVector<std::pair<Value, Place>> moves;
  DenseMap<int64_t, size_t> seen; // the index of the result that updates an argument
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    auto updates = function.getResultAttrOfType<IntegerAttr>(index, FSDPDialect::updatesAttr);
    bool exists = updates && updates.getInt() >= 0 && updates.getInt() < function.getNumArguments();
    if (!exists || !seen.try_emplace(updates.getInt(), index).second) {
      InFlightDiagnostic diag = op.emitOpError("result ");
      diag << index << " of @" << function.getName() << ": ";
      if (!updates)
        return diag << "expected '" << FSDPDialect::updatesAttr
                    << "' with the index of the argument that the result updates, found none";
      diag << "'" << FSDPDialect::updatesAttr << " = " << updates.getInt() << "' names argument "
           << updates.getInt();
      if (exists)
        return diag << ", which result " << seen.lookup(updates.getInt())
                    << " updates too; expected each result to update another argument";
      return diag << "; expected the index of an argument, less than "
                  << function.getNumArguments();
    }
    BlockArgument home = function.getArgument(updates.getInt());
    if (home.getType() != value.getType())
      return op.emitOpError("result ")
             << index << " of type " << value.getType() << " cannot update argument "
             << updates.getInt() << " of type " << home.getType();
    moves.push_back({value, getPlace(home)});
  }
  moveAll(moves, op.getLoc());
  return success();
}
