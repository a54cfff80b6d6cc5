//===- Gemm.cpp - Lowering of contraction kernels for CPUs ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emits one phase. A worker processes a range of column panels (or row panels, see
// Plan::splitRows):
//
//   for each value of the outer digits
//     for each block of nc columns, of mc rows, of kc
//       pack mc × kc of lhs;
//       for each group of panels of columns
//         pack kc × nr of rhs for each panel;
//         for each panel of rows, for each panel of the group
//           tile += lhs · rhs; after the last k: finish the tile;
//
// If a tile is whole and needs no epilogue, its sums are in the result's buffer, otherwise in the
// worker's scratch. The scratch has space for mc × nc sums if partial sums must be kept until the
// next block of k.
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"
#include "GemmEmit.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

Pointer Kernel::at(CodeBuilder &b, const Operand &operand, const Position &position) const {
  Value offset = b.add(emitOffset(b, operand.strides, position), operand.access.offset);
  return {bindings[operand.access.binding], operand.access.elementType, offset};
}

namespace {
class PhaseEmitter {
public:
  PhaseEmitter(CodeBuilder &b, const Problem &problem, const Plan &plan)
      : b(b), kernel{problem, plan, {}, {}}, problem(problem), plan(plan) {}
  void emit(func::FuncOp phase);

private:
  struct Range {
    Value from, to;
  };
  void emitOuter(Value outer, Range rows, Range cols);
  void emitBlock(Position position, Range rows, Range cols, Range sumCols, Value kBlock);
  /// Rows and columns that a worker computes, columns whose sums scratch holds, and first column of
  /// the packed panels.
  struct Ranges {
    Range rows, cols, sumCols;
    Value firstCol;
  };
  void emitTile(const Position &position, Value row, Value col, const Ranges &ranges, Value kCount,
                Value kBlock);
  Pointer panel(const Side &side, Value number);
  Pointer waitingTile(Value row, Value col, Range rows, Range sumCols);

  CodeBuilder &b;
  Kernel kernel;
  const Problem &problem;
  const Plan &plan;
  Side lhs{problem.lhs,
           plan.rows,
           plan.mr,
           problem.lhs.strides[plan.rows.back()],
           problem.lhs.strides[plan.kInner],
           plan.lhsOffset,
           plan.arithmetic == Arithmetic::Tiles};
  Side rhs{problem.rhs,
           plan.cols,
           plan.nr,
           problem.rhs.strides[plan.cols.back()],
           problem.rhs.strides[plan.kInner],
           plan.rhsOffset};
};
} // namespace

/// Returns a pointer to panel `number` in scratch.
Pointer PhaseEmitter::panel(const Side &side, Value number) {
  Type type = plan.packsPairs() ? b.getI32Type() : plan.packType;
  Value base = b.address({kernel.worker, b.getI8Type(), b.constant(side.offset)});
  return {base, type, b.mul(number, plan.panelSize(side.width))};
}

/// Returns the address of a tile's sums in scratch. If no partial sums must be kept, all tiles use
/// the same address.
Pointer PhaseEmitter::waitingTile(Value row, Value col, Range rows, Range sumCols) {
  Value base = b.address({kernel.worker, b.getI8Type(), b.constant(plan.tileOffset)});
  Value number = b.constant(0);
  if (!plan.direct && plan.kBlocks > 1)
    number = b.add(b.mul(b.div(b.sub(col, sumCols.from), plan.nr), plan.mc / plan.mr),
                   b.div(b.sub(row, rows.from), plan.mr));
  return {base, plan.accType, b.mul(number, plan.mr * plan.nr)};
}

void PhaseEmitter::emitTile(const Position &corner, Value row, Value col, const Ranges &ranges,
                            Value kCount, Value kBlock) {
  const auto &[rows, cols, sumCols, firstCol] = ranges;
  TileRegion region;
  region.position = corner;
  setDigits(b, problem, region.position, row, plan.rows);
  setDigits(b, problem, region.position, col, plan.cols);
  region.rows = b.min(b.constant(plan.mr), b.sub(rows.to, row));
  region.cols = b.min(b.constant(plan.nr), b.sub(cols.to, col));
  Value isFirst = b.isEqual(kBlock, 0), notFirst = b.isLess(b.constant(0), kBlock);
  Value isLast = b.isEqual(kBlock, plan.kBlocks - 1);
  bool constantStart = problem.init.access.binding < 0 && problem.init.access.maps.empty();

  Pointer scratch = waitingTile(row, col, rows, sumCols), tile = scratch;
  Value stride = b.constant(plan.nr), isWhole;
  if (plan.direct) {
    const Operand &dest = problem.stores.front().dest;
    Pointer inResult = kernel.at(b, dest, region.position);
    isWhole = b.both(b.isEqual(region.rows, plan.mr), b.isEqual(region.cols, plan.nr));
    tile.base = b.select(isWhole, b.address(inResult), b.address(scratch));
    tile.index = b.constant(0);
    stride = b.select(isWhole, b.constant(dest.strides[plan.rows.back()]), stride);
    // Prefetches the part of the result that the next tile covers.
    for (int64_t r = 0; r < plan.mr; ++r)
      for (int64_t c = 0; c < plan.nr; c += plan.lanes)
        b.prefetch(
            b.shift(inResult, b.constant((plan.mr + r) * dest.strides[plan.rows.back()] + c)),
            /*forWriting=*/true);
    Value load = constantStart ? notFirst : b.boolean(true);
    Value notWhole = b.isEqual(arith::ExtUIOp::create(b, b.loc, b.getI64Type(), isWhole), 0);
    b.when(b.both(notWhole, load), [&] { emitLoadTile(b, kernel, dest, region, scratch); });
  } else if (!constantStart) {
    b.when(isFirst, [&] { emitLoadTile(b, kernel, problem.init, region, scratch); });
  }

  TypedAttr start = b.getZeroAttr(plan.accType);
  if (constantStart) {
    APFloat value = cast<FloatAttr>(problem.init.access.splat).getValue();
    bool inexact;
    value.convert(cast<FloatType>(plan.accType).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &inexact);
    start = b.getFloatAttr(plan.accType, value);
  }
  Value lhsPanel = b.div(b.sub(row, rows.from), plan.mr);
  Value steps = kCount;
  if (plan.arithmetic != Arithmetic::Fma) {
    Value pairs = b.div(b.add(kCount, 1), 2);
    steps = plan.arithmetic == Arithmetic::Bf16Pairs ? b.mul(pairs, 2) : pairs;
    if (plan.arithmetic == Arithmetic::Tiles)
      steps = b.mul(b.div(b.add(pairs, tileSize - 1), tileSize), tileSize);
  }
  auto prefetch = [&](Value k) {
    Pointer next = b.shift(kernel.at(b, rhs.operand, region.position),
                           b.constant(plan.colGroup * rhs.width * rhs.stride));
    emitPrefetchOfPanel(b, plan, rhs, next, lhsPanel, k);
  };
  function_ref<void(Value)> beside = prefetch;
  if (!plan.direct)
    b.when(isLast, [&] { emitPrefetchOfTile(b, kernel, region); });
  auto emitKernel = plan.arithmetic == Arithmetic::Tiles ? emitTileKernel : emitMicroKernel;
  Value rhsPanel = b.div(b.sub(col, firstCol), plan.nr);
  emitKernel(b, plan, panel(lhs, lhsPanel), panel(rhs, rhsPanel), steps, tile, stride,
             constantStart ? notFirst : b.boolean(true), start,
             plan.prefetchesRhs ? beside : nullptr);
  if (!plan.direct) {
    b.when(isLast, [&] { emitFinishTile(b, kernel, region, scratch); });
    return;
  }
  b.when(isWhole, [] {}, [&] { emitFinishTile(b, kernel, region, scratch); });
}

void PhaseEmitter::emitBlock(Position position, Range rows, Range cols, Range sumCols,
                             Value kBlock) {
  int64_t innerBlocks = plan.kBlocks / plan.kOuterCount;
  setDigits(b, problem, position, b.div(kBlock, innerBlocks), plan.kOuter);
  Value k = b.mul(b.rem(kBlock, innerBlocks), plan.kc);
  position[plan.kInner] = k;
  Value kCount = b.min(b.constant(plan.kc), b.sub(b.constant(plan.k), k));
  emitPackPanels(b, kernel, lhs, position, rows.from, rows.to, kCount, panel(lhs, b.constant(0)));
  int64_t groupCols = plan.colGroup * plan.nr;
  b.loop(sumCols.from, sumCols.to, groupCols, [&](Value first) {
    Value end = b.min(b.add(first, groupCols), sumCols.to);
    emitPackPanels(b, kernel, rhs, position, first, b.min(end, cols.to), kCount,
                   panel(rhs, b.constant(0)));
    b.loop(rows.from, rows.to, plan.mr, [&](Value row) {
      b.loop(first, end, plan.nr, [&](Value col) {
        emitTile(position, row, col, {rows, cols, sumCols, first}, kCount, kBlock);
      });
    });
  });
}

void PhaseEmitter::emitOuter(Value outer, Range rows, Range cols) {
  Position position(problem.digits.size());
  setDigits(b, problem, position, outer, plan.outer);
  b.loop(cols.from, cols.to, plan.nc, [&](Value col) {
    Range sumCols = {col, b.min(b.add(col, plan.nc), cols.to)};
    b.loop(rows.from, rows.to, plan.mc, [&](Value row) {
      Range blockRows = {row, b.min(b.add(row, plan.mc), rows.to)};
      b.loop(b.constant(0), b.constant(plan.kBlocks), 1,
             [&](Value kBlock) { emitBlock(position, blockRows, cols, sumCols, kBlock); });
    });
  });
}

void PhaseEmitter::emit(func::FuncOp phase) {
  Block *entry = phase.addEntryBlock();
  b.setInsertionPointToStart(entry);
  auto toPointer = [&](Value memref) -> Value {
    Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, b.loc, memref);
    address = arith::IndexCastOp::create(b, b.loc, b.getI64Type(), address);
    return LLVM::IntToPtrOp::create(b, b.loc, LLVM::LLVMPointerType::get(b.getContext()), address);
  };
  unsigned bindings = entry->getNumArguments() - 3;
  for (unsigned i = 0; i < bindings; ++i)
    kernel.bindings.push_back(toPointer(entry->getArgument(i)));
  Value begin = arith::IndexCastOp::create(b, b.loc, b.getI64Type(), entry->getArgument(bindings));
  Value end =
      arith::IndexCastOp::create(b, b.loc, b.getI64Type(), entry->getArgument(bindings + 1));
  kernel.worker = toPointer(entry->getArgument(bindings + 2));
  bool usesTiles = plan.arithmetic == Arithmetic::Tiles && !plan.emulatesTiles;
  if (usesTiles)
    amx::emitConfigure(b, {kernel.worker, b.getI8Type(), b.constant(plan.configOffset)});

  int64_t units = plan.unitsPerOuter;
  b.loop(b.div(begin, units), b.div(b.add(end, units - 1), units), 1, [&](Value outer) {
    Value first = b.mul(outer, units);
    Value from = b.max(b.sub(begin, first), b.constant(0));
    Value to = b.min(b.sub(end, first), b.constant(units));
    int64_t unit = plan.splitRows ? plan.mr : plan.nr, size = plan.splitRows ? plan.m : plan.n;
    Range part = {b.mul(from, unit), b.min(b.mul(to, unit), b.constant(size))};
    Range rows = {b.constant(0), b.constant(plan.m)}, cols = {b.constant(0), b.constant(plan.n)};
    emitOuter(outer, plan.splitRows ? part : rows, plan.splitRows ? cols : part);
  });
  if (usesTiles)
    amx::emitRelease(b);
  func::ReturnOp::create(b, b.loc);
}

static FailureOr<std::pair<Problem, Plan>> prepare(func::FuncOp kernel, const CpuTarget &target) {
  FailureOr<Problem> problem = analyseTileable(kernel);
  if (failed(problem))
    return failure();
  FailureOr<Plan> plan = makePlan(*problem, target);
  if (failed(plan))
    return failure();
  return std::pair(std::move(*problem), *plan);
}

bool mlir::fsdp::handlesContractKernel(func::FuncOp kernel, const CpuTarget &target) {
  return succeeded(prepare(kernel, target));
}

LogicalResult mlir::fsdp::lowerContractKernel(func::FuncOp kernel, const CpuTarget &target,
                                              KernelInfo &info) {
  auto prepared = prepare(kernel, target);
  if (failed(prepared))
    return kernel.emitError(
        "expected one contraction of floating-point tensors followed by elementwise ops");
  auto &[problem, plan] = *prepared;

  CodeBuilder b(kernel.getLoc(), kernel.getContext());
  SmallVector<Type> types;
  for (Type type : kernel.getArgumentTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    types.push_back(MemRefType::get(tensor.getShape(), getStorageType(tensor.getElementType())));
  }
  types.append(
      {b.getIndexType(), b.getIndexType(), MemRefType::get({ShapedType::kDynamic}, b.getI8Type())});
  b.setInsertionPoint(kernel);
  auto phase =
      func::FuncOp::create(b, kernel.getLoc(), kernel.getName(), b.getFunctionType(types, {}));
  phase->setAttr(extentAttr, b.getI64IntegerAttr(plan.extent()));
  phase->setAttr(tileAttr, b.getI64IntegerAttr(1));
  PhaseEmitter(b, problem, plan).emit(phase);
  info.phases.push_back({kernel.getName().str(), plan.extent(), 1});
  info.workerBytes = std::max(info.workerBytes, plan.workerBytes);
  kernel.erase();
  return success();
}
