//===- LoopKernels.cpp - The general lowering -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers any kernel that the other lowerings refuse. Does not fuse or reorder ops.
//
//  1. Rewrite this project's ops and composite upstream ops as loops or linalg.generic ops.
//  2. Bufferise the kernel. Each result is computed in the argument that is its destination, if
//     this is possible. If the kernel reads an operand after updating it in place, bufferisation
//     inserts a copy.
//  3. Move the remaining buffers to the scratch memory that the workers share. Copies become
//     linalg.generic ops.
//  4. Distribute large ops over the workers (LoopPhases.cpp).
//
// The lowering takes time linear in the number of ops. The emitted code needs memory for all
// intermediate values of the kernel.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// 1. Composite ops
//===----------------------------------------------------------------------===//

/// Merges all dimensions of `value` except the last `keep` into one dimension.
static Value flattenLeading(OpBuilder &b, Location loc, Value value, int64_t keep) {
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank(), leading = rank - keep;
  SmallVector<ReassociationIndices> groups;
  if (leading == 1)
    return value;
  if (leading == 0) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
    shape.insert(shape.begin(), 1);
    auto type = cast<RankedTensorType>(value.getType()).clone(shape);
    for (int64_t i = 0; i < rank; ++i)
      groups.push_back({i + (i > 0)});
    if (rank > 0)
      groups[0] = {0, 1};
    return tensor::ExpandShapeOp::create(b, loc, type, value, groups);
  }
  groups.push_back(llvm::to_vector<2>(llvm::seq<int64_t>(0, leading)));
  for (int64_t i = leading; i < rank; ++i)
    groups.push_back({i});
  return tensor::CollapseShapeOp::create(b, loc, value, groups);
}

/// Emits a scatter as a loop that adds rows in the order of the ids.
static Value lowerScatter(OpBuilder &b, ScatterAddRowsOp op) {
  Location loc = op.getLoc();
  RankedTensorType tableType = op.getResult().getType();
  Value ids = flattenLeading(b, loc, op.getIds(), 0),
        updates = flattenLeading(b, loc, op.getUpdates(), 1);
  auto idsType = cast<RankedTensorType>(ids.getType());
  int64_t columns = tableType.getDimSize(1);
  auto constant = [&](int64_t v) -> Value { return arith::ConstantIndexOp::create(b, loc, v); };
  Value init = op.getInit();
  if (!init) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(tableType.getElementType()));
    Value empty = tensor::EmptyOp::create(b, loc, tableType.getShape(), tableType.getElementType());
    init = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
  }
  auto loop =
      scf::ForOp::create(b, loc, constant(0), constant(idsType.getDimSize(0)), constant(1), init);
  b.setInsertionPointToStart(loop.getBody());
  Value id = tensor::ExtractOp::create(b, loc, ids, loop.getInductionVar());
  Value row = arith::IndexCastOp::create(b, loc, b.getIndexType(), id);
  auto rowType = RankedTensorType::get({columns}, tableType.getElementType());
  auto slice = [&](Value from, Value index) -> Value {
    return tensor::ExtractSliceOp::create(
        b, loc, rowType, from, ArrayRef<OpFoldResult>{index, b.getIndexAttr(0)},
        ArrayRef<OpFoldResult>{b.getIndexAttr(1), b.getIndexAttr(columns)},
        ArrayRef<OpFoldResult>{b.getIndexAttr(1), b.getIndexAttr(1)});
  };
  Value update = slice(updates, loop.getInductionVar()), old = slice(loop.getRegionIterArg(0), row);
  AffineMap identity = b.getMultiDimIdentityMap(1);
  auto sum = linalg::GenericOp::create(
      b, loc, rowType, update, old, {identity, identity}, {utils::IteratorType::parallel},
      [](OpBuilder &nested, Location loc, ValueRange args) {
        Value sum = arith::AddFOp::create(nested, loc, args[1], args[0]);
        linalg::YieldOp::create(nested, loc, sum);
      });
  Value inserted = tensor::InsertSliceOp::create(
      b, loc, sum.getResult(0), loop.getRegionIterArg(0),
      ArrayRef<OpFoldResult>{row, b.getIndexAttr(0)},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1), b.getIndexAttr(columns)},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1), b.getIndexAttr(1)});
  scf::YieldOp::create(b, loc, inserted);
  b.setInsertionPointAfter(loop);
  return loop.getResult(0);
}

/// Emits a gather as a linalg.generic whose body extracts elements from the table.
static Value lowerGather(OpBuilder &b, GatherRowsOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = op.getResult().getType();
  int64_t rank = type.getRank();
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  AffineMap all = b.getMultiDimIdentityMap(rank), rows = all.getMajorSubMap(rank - 1);
  auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
    Value row = arith::IndexCastOp::create(nested, loc, nested.getIndexType(), args[0]);
    Value column = linalg::IndexOp::create(nested, loc, rank - 1);
    Value element = tensor::ExtractOp::create(nested, loc, op.getTable(), ValueRange{row, column});
    linalg::YieldOp::create(nested, loc, element);
  };
  return linalg::GenericOp::create(
             b, loc, type, op.getIds(), empty, {rows, all},
             SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel), body)
      .getResult(0);
}

static LogicalResult expandComposites(func::FuncOp kernel) {
  RewritePatternSet patterns(kernel.getContext());
  tensor::populateDecomposeTensorConcatPatterns(patterns);
  if (failed(applyPatternsGreedily(kernel, std::move(patterns))))
    return kernel.emitError("cannot decompose a concatenation into slices");
  IRRewriter rewriter(kernel.getContext());
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    rewriter.setInsertionPoint(op);
    if (auto scatter = dyn_cast<ScatterAddRowsOp>(op)) {
      rewriter.replaceOp(op, lowerScatter(rewriter, scatter));
    } else if (auto gather = dyn_cast<GatherRowsOp>(op)) {
      rewriter.replaceOp(op, lowerGather(rewriter, gather));
    } else if (auto aggregate = dyn_cast<linalg::AggregatedOpInterface>(op)) {
      FailureOr<SmallVector<Value>> values = aggregate.decomposeOperation(rewriter);
      if (failed(values))
        return op->emitError("cannot be decomposed into loops");
      rewriter.replaceOp(op, *values);
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// 2. Buffers
//===----------------------------------------------------------------------===//

/// Makes bufferisation compute each result in its destination argument, unless the kernel uses that
/// argument.
static void attachDestinations(func::FuncOp kernel) {
  auto ret = cast<func::ReturnOp>(kernel.front().getTerminator());
  OpBuilder builder(ret);
  for (OpOperand &operand : ret->getOpOperands()) {
    BlockArgument destination = getDestination(kernel, operand.getOperandNumber());
    if (operand.get() != destination && destination.use_empty())
      operand.set(bufferization::MaterializeInDestinationOp::create(
                      builder, ret.getLoc(), operand.get().getType(), operand.get(), destination)
                      .getResult());
  }
}

static LogicalResult bufferise(ModuleOp module, func::FuncOp kernel) {
  MLIRContext *context = module.getContext();
  for (BlockArgument argument : kernel.getArguments()) {
    bool writable = false;
    for (StringRef name : {outAttr, inoutAttr})
      writable |= kernel.getArgAttr(argument.getArgNumber(), name) != nullptr;
    kernel.setArgAttr(argument.getArgNumber(), "bufferization.writable",
                      BoolAttr::get(context, writable));
  }
  IRRewriter rewriter(context);
  bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.setFunctionBoundaryTypeConversion(bufferization::LayoutMapOption::IdentityLayoutMap);
  options.unknownTypeConverterFn = [](TensorType type, Attribute space,
                                      const bufferization::BufferizationOptions &) {
    return bufferization::getMemRefTypeWithStaticIdentityLayout(type, space);
  };
  bufferization::BufferizationState state;
  LogicalResult placed = bufferization::eliminateEmptyTensors(rewriter, module);
  // Remove the MaterializeInDestinationOps, because only eliminateEmptyTensors() needed them. If a
  // result is not in its destination after bufferisation, storeResults() copies it.
  kernel.walk([&](bufferization::MaterializeInDestinationOp op) {
    op.getResult().replaceAllUsesWith(op.getSource());
    op.erase();
  });
  if (failed(placed) || failed(bufferization::runOneShotModuleBufferize(module, options, state)))
    return kernel.emitError("the kernel cannot be bufferised");
  return success();
}

static void createCopy(OpBuilder &b, Location loc, Value from, Value to) {
  int64_t rank = cast<MemRefType>(to.getType()).getRank();
  AffineMap identity = b.getMultiDimIdentityMap(rank);
  linalg::GenericOp::create(b, loc, TypeRange(), from, to, {identity, identity},
                            SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
                            [](OpBuilder &nested, Location loc, ValueRange args) {
                              linalg::YieldOp::create(nested, loc, args[0]);
                            });
}

static Value stripCasts(Value value) {
  while (auto cast = value.getDefiningOp<memref::CastOp>())
    value = cast.getSource();
  return value;
}

/// Copies each result that is not in its destination to its destination, and removes the results of
/// the function. A result may be in the argument that is the destination of another result. Such a
/// result is saved before that argument is overwritten.
static void storeResults(func::FuncOp kernel, ArrayRef<unsigned> destinations) {
  auto ret = cast<func::ReturnOp>(kernel.front().getTerminator());
  OpBuilder b(ret);
  Location loc = ret.getLoc();
  SmallVector<std::pair<Value, Value>> copies;
  for (auto [value, number] : llvm::zip_equal(ret.getOperands(), destinations)) {
    Value source = stripCasts(value), target = kernel.getArgument(number);
    if (source == target)
      continue;
    bool fresh =
        source.getDefiningOp<memref::AllocOp>() || source.getDefiningOp<memref::GetGlobalOp>();
    if (!fresh && destinations.size() > 1) {
      Value saved = memref::AllocOp::create(
          b, loc,
          MemRefType::get(cast<MemRefType>(target.getType()).getShape(),
                          cast<MemRefType>(target.getType()).getElementType()));
      createCopy(b, loc, source, saved);
      source = saved;
    }
    copies.push_back({source, target});
  }
  for (auto [source, target] : copies)
    createCopy(b, loc, source, target);
  ret.getOperandsMutable().clear();
  kernel.setType(FunctionType::get(kernel.getContext(), kernel.getArgumentTypes(), {}));
}

//===----------------------------------------------------------------------===//
// 3. Scratch
//===----------------------------------------------------------------------===//

static FailureOr<int64_t> moveToScratch(func::FuncOp kernel, Value scratch) {
  int64_t size = 0;
  SmallVector<memref::AllocOp> allocs;
  kernel.walk([&](memref::AllocOp op) { allocs.push_back(op); });
  kernel.walk([](memref::DeallocOp op) { op.erase(); });
  for (memref::AllocOp op : allocs) {
    if (!op.getType().hasStaticShape())
      return op.emitError("expected temporaries of static size in a kernel, found ")
             << op.getType();
    OpBuilder b(op);
    Value offset = arith::ConstantIndexOp::create(b, op.getLoc(), size);
    Value view =
        memref::ViewOp::create(b, op.getLoc(), op.getType(), scratch, offset, ValueRange());
    op.replaceAllUsesWith(view);
    op.erase();
    size += llvm::alignTo(getStorageBytes(cast<MemRefType>(view.getType())), 64);
  }
  return size;
}

static void lowerCopies(func::FuncOp kernel) {
  SmallVector<memref::CopyOp> copies;
  kernel.walk([&](memref::CopyOp op) { copies.push_back(op); });
  for (memref::CopyOp op : copies) {
    OpBuilder b(op);
    if (op.getSource() != op.getTarget())
      createCopy(b, op.getLoc(), op.getSource(), op.getTarget());
    op.erase();
  }
}

LogicalResult fsdp::lowerLoopKernel(func::FuncOp kernel, KernelInfo &info) {
  MLIRContext *context = kernel.getContext();
  OwningOpRef<ModuleOp> scratchModule = ModuleOp::create(kernel.getLoc());
  auto work = cast<func::FuncOp>(kernel->clone());
  work.setPublic();
  scratchModule->push_back(work);
  SmallVector<unsigned> destinations;
  for (unsigned i = 0; i < work.getNumResults(); ++i)
    destinations.push_back(getDestination(work, i).getArgNumber());

  attachDestinations(work);
  if (failed(expandComposites(work)) || failed(bufferise(*scratchModule, work)))
    return failure();
  work = *scratchModule->getOps<func::FuncOp>().begin();
  storeResults(work, destinations);
  lowerCopies(work);

  OpBuilder b(context);
  auto bytes = MemRefType::get({ShapedType::kDynamic}, b.getI8Type());
  unsigned bindings = work.getNumArguments();
  (void)work.insertArgument(bindings, bytes, {}, work.getLoc());
  FailureOr<int64_t> size = moveToScratch(work, work.getArgument(bindings));
  if (failed(size))
    return failure();
  if (*size == 0)
    (void)work.eraseArgument(bindings);
  for (Type type : {Type(b.getIndexType()), Type(b.getIndexType()), Type(bytes)})
    (void)work.insertArgument(work.getNumArguments(), type, {}, work.getLoc());
  cleanUp(work);

  info.sharedBytes = *size;
  for (unsigned i = 0; i < bindings; ++i)
    work.removeArgAttr(i, "bufferization.writable");
  for (StringRef name : {kernelAttr, kindAttr})
    work->removeAttr(name);

  // Bufferisation has turned constant tensors into globals next to the function. The kernel's name
  // becomes a prefix of the globals' names, so that kernels of one module do not clash.
  unsigned number = 0;
  for (auto global : llvm::make_early_inc_range(scratchModule->getOps<memref::GlobalOp>())) {
    auto name = b.getStringAttr(info.name + ".table" + std::to_string(number++));
    (void)SymbolTable::replaceAllSymbolUses(global, name, *scratchModule);
    global.setSymName(name);
    global->moveBefore(kernel);
  }
  for (func::FuncOp phase : splitLoopPhases(work, info))
    phase->moveBefore(kernel);
  kernel.erase();
  return success();
}
