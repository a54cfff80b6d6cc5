//===- Gemm.cpp - Lowering of contraction kernels for CPUs ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emits one phase. A worker processes a range of units. A unit is a panel of columns of a block of
// mc rows, or a panel of rows if Plan::splitRows is true. The units of a block of rows are
// adjacent, so that few workers pack the same block:
//
//   for each position                              values of the outer digits
//     for each block                               nc columns, then mc rows, then kc values of k
//       pack mc × kc of lhs;                       unless Plan::packsLhsOnUse is true
//       for each group                             panels of columns
//         pack kc × nr of rhs for each panel;
//         for each panel of rows, for each strip   strips of the group
//           pack the panel of rows;                if Plan::packsLhsOnUse and not packed before
//           for each slab, for each panel          slabs of kc, panels of the strip
//             tile += lhs · rhs;
//           after the last k: finish the strip, row by row;
//
// Without AMX, a strip has one panel, and a slab has all kc values of k. With AMX, the slab of a
// panel of rows stays in the L1 cache for all panels of a strip, and whole cache lines of results
// are written. Tile registers and vector registers work at the same time. Therefore a strip is
// finished in chunks beside the products of the next strip of the block:
//
//   products of strip 1     strip 2                   strip 3                   after the block
//                           chunks of strip 1         chunks of strip 2         chunks of strip 3
//
// The sums of a strip are in the worker's scratch. If the strip is whole and needs no epilogue,
// the sums can instead be in the buffer of the result. The scratch has space for mc × nc sums if
// partial sums must be kept until the next block of k.
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
  /// Returns the rows (or columns) of the units `from` to `to` - 1. A unit has `unit` rows, and all
  /// units together have `size` rows.
  Range rangeOf(Value from, Value to, int64_t unit, int64_t size) {
    return {b.mul(from, unit), b.min(b.mul(to, unit), b.constant(size))};
  }
  void emitOuter(Value outer, Range rows, Range cols);
  void emitBlock(Position position, Range rows, Range cols, Range sumCols, Value kBlock);
  /// A worker computes the elements in `rows` and `cols`. The sums of the columns `sumCols` are in
  /// scratch. The packed panels begin at column `firstCol`.
  struct Ranges {
    Range rows, cols, sumCols;
    Value firstCol;
  };
  /// The values of k that a micro-kernel processes: `count` values, beginning with value `from` of
  /// the block of k.
  struct Slab {
    Value from, count;
    Value isFirst; ///< true if these values are the first values of k that are added to a tile
  };
  CodeBuilder::Carried emitStrip(const Position &position, Value row, Value col,
                                 const Ranges &ranges, Value kCount, Value kBlock,
                                 ValueRange waiting);
  Strip stripAt(const Position &corner, Value row, Value col, const Ranges &ranges);
  StripFinisher finisherOf(const Position &corner, const Ranges &ranges, ValueRange waiting);
  void emitProducts(const Strip &strip, Value row, Value col, const Ranges &ranges, Value kCount,
                    Value kBlock, Pointer sums, Value stride, StripFinisher *previous,
                    StripFinisher *next);
  void emitSums(const Strip &strip, Value row, Value col, const Ranges &ranges, const Slab &slab,
                Pointer sums, Value stride, function_ref<void(Value)> beside);
  /// Returns true if the group of panels that begins at column `firstCol` is the first group of a
  /// block.
  Value isFirstGroup(Value firstCol, Range sumCols) {
    return b.isEqual(b.sub(firstCol, sumCols.from), 0);
  }
  void prefetchNextRows(Pointer inResult, int64_t rowStride);
  void prefetchResult(const Strip &strip, Value part);
  void prefetchRow(Pointer first);
  Value kSteps(Value count);
  Pointer panel(const Side &side, Value number, Value fromStep);
  Pointer sumsInScratch(Value row, Value col, const Ranges &ranges, Value buffer);

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
           /*isLhs=*/true,
           plan.arithmetic == Arithmetic::Tiles};
  Side rhs{problem.rhs,
           plan.cols,
           plan.nr,
           problem.rhs.strides[plan.cols.back()],
           problem.rhs.strides[plan.kInner],
           plan.rhsOffset,
           /*isLhs=*/false};
};
} // namespace

/// Returns a pointer to step `fromStep` of panel `number` in scratch.
Pointer PhaseEmitter::panel(const Side &side, Value number, Value fromStep) {
  Type type = plan.packsPairs() ? b.getI32Type() : plan.packType;
  Value base = b.address({kernel.worker, b.getI8Type(), b.constant(side.offset)});
  return {base, type,
          b.add(b.mul(number, plan.panelSize(side.width)), b.mul(fromStep, side.width))};
}

/// Returns the address of a strip's sums in scratch. If no partial sums must be kept, the strips
/// use one buffer. If strips are finished beside products, they use two buffers alternately.
Pointer PhaseEmitter::sumsInScratch(Value row, Value col, const Ranges &ranges, Value buffer) {
  Value base = b.address({kernel.worker, b.getI8Type(), b.constant(plan.tileOffset)});
  Value number = buffer;
  if (!plan.direct && plan.kBlocks > 1)
    number =
        b.add(b.mul(b.div(b.sub(col, ranges.sumCols.from), plan.stripCols()), plan.mc / plan.mr),
              b.div(b.sub(row, ranges.rows.from), plan.mr));
  return {base, plan.accType, b.mul(number, plan.mr * plan.stripCols())};
}

/// Returns the number of steps of the micro-kernel for `count` values of k.
Value PhaseEmitter::kSteps(Value count) {
  if (plan.arithmetic == Arithmetic::Fma)
    return count;
  Value pairs = b.div(b.add(count, 1), 2);
  if (plan.arithmetic == Arithmetic::Bf16Pairs)
    return b.mul(pairs, 2);
  if (plan.arithmetic == Arithmetic::Tiles)
    return b.mul(b.div(b.add(pairs, tileSize - 1), tileSize), tileSize);
  return pairs;
}

/// Returns the initial value of the sums of `problem` if this value is a constant. Returns 0 if the
/// initial values are the elements of a tensor.
static FloatAttr startOf(CodeBuilder &b, const Problem &problem, FloatType type) {
  if (!problem.startsAtConstant())
    return b.getFloatAttr(type, 0.0);
  APFloat value = cast<FloatAttr>(problem.init.access.splat).getValue();
  bool inexact;
  value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  return b.getFloatAttr(type, value);
}

static Value isFalse(CodeBuilder &b, Value flag) {
  return b.isEqual(arith::ExtUIOp::create(b, b.loc, b.getI64Type(), flag), 0);
}

/// Emits the micro-kernel of one panel of columns, at column `col` of `strip`.
void PhaseEmitter::emitSums(const Strip &strip, Value row, Value col, const Ranges &ranges,
                            const Slab &slab, Pointer sums, Value stride,
                            function_ref<void(Value)> beside) {
  Value lhsPanel = b.div(b.sub(row, ranges.rows.from), plan.mr);
  Value rhsPanel = b.div(b.sub(col, ranges.firstCol), plan.nr);
  Value from = b.div(slab.from, plan.kPerStep());
  Pointer left = panel(lhs, lhsPanel, from), right = panel(rhs, rhsPanel, from);
  Value steps = kSteps(slab.count);
  Value accumulate = problem.startsAtConstant() ? isFalse(b, slab.isFirst) : b.boolean(true);
  FloatAttr start = startOf(b, problem, cast<FloatType>(plan.accType));
  if (plan.arithmetic == Arithmetic::Tiles)
    return emitTileKernel(b, plan, left, right, steps, sums, stride, accumulate, start, beside);
  NextRows rows;
  if (plan.prefetchesLhs) {
    Value isPacked = plan.packsLhsOnUse ? isFalse(b, isFirstGroup(ranges.firstCol, ranges.sumCols))
                                        : b.boolean(true);
    rows = findNextRows(b, plan, lhs, kernel.at(b, lhs.operand, strip.position),
                        panel(lhs, b.add(lhsPanel, 1), from), steps, isPacked);
  }
  auto next = [&] {
    return b.shift(kernel.at(b, rhs.operand, strip.position),
                   b.constant(plan.colGroup * rhs.width * rhs.stride));
  };
  bool inParts = plan.mc / plan.mr > maxTilesBeside;
  auto eachTurn = [&](const Turn &turn) {
    if (plan.prefetchesLhs)
      emitPrefetchOfRows(b, plan, rows, turn);
    if (plan.prefetchesRhs && !inParts)
      emitPrefetchOfPanel(b, plan, rhs, next(), lhsPanel, turn.k);
  };
  auto eachPart = [&](Value part) {
    prefetchResult(strip, part);
    if (plan.prefetchesRhs && inParts)
      emitPrefetchInPart(b, plan, rhs, next(), lhsPanel, part);
  };
  Beside prefetches;
  if (plan.prefetchesRhs || plan.parts > 1)
    prefetches = {eachTurn, eachPart};
  emitMicroKernel(b, plan, left, right, steps, sums, stride, accumulate, start, prefetches);
}

/// Prefetches a part of the result: a few rows of the next tile or, if there is an epilogue, of the
/// strip itself.
void PhaseEmitter::prefetchResult(const Strip &strip, Value part) {
  auto eachRow = [&](function_ref<void(Value)> body) {
    for (int64_t row = 0; row < plan.mr; row += plan.parts)
      body(b.min(b.add(part, row), b.constant(plan.mr - 1)));
  };
  if (!plan.direct)
    return b.when(strip.isLast, [&] { emitPrefetchOfStrip(b, kernel, strip, eachRow); });
  const Operand &dest = problem.stores.front().dest;
  Pointer inResult = kernel.at(b, dest, strip.position);
  eachRow([&](Value row) {
    prefetchRow(b.shift(inResult, b.mul(b.add(row, plan.mr), dest.strides[plan.rows.back()])));
  });
}

/// Prefetches a row of a tile for writing.
void PhaseEmitter::prefetchRow(Pointer first) {
  for (int64_t c = 0; c < plan.nr; c += plan.lanes)
    b.prefetch(b.shift(first, b.constant(c)), /*forWriting=*/true);
}

/// Prefetches the part of the result that belongs to the next tile.
void PhaseEmitter::prefetchNextRows(Pointer inResult, int64_t rowStride) {
  for (int64_t r = 0; r < plan.mr; ++r)
    prefetchRow(b.shift(inResult, b.constant((plan.mr + r) * rowStride)));
}

Strip PhaseEmitter::stripAt(const Position &corner, Value row, Value col, const Ranges &ranges) {
  Strip strip;
  strip.position = corner;
  setDigits(b, problem, strip.position, row, plan.rows);
  setDigits(b, problem, strip.position, col, plan.cols);
  strip.rows = b.min(b.constant(plan.mr), b.sub(ranges.rows.to, row));
  strip.cols = b.min(b.constant(plan.stripCols()), b.sub(ranges.cols.to, col));
  return strip;
}

/// Returns the finisher of the strip `waiting`, as emitStrip() returns it.
StripFinisher PhaseEmitter::finisherOf(const Position &corner, const Ranges &ranges,
                                       ValueRange waiting) {
  Value row = waiting[0], col = waiting[1], buffer = waiting[2];
  return {b, kernel, stripAt(corner, row, col, ranges), sumsInScratch(row, col, ranges, buffer)};
}

/// Emits the micro-kernels of a strip. If `previous` and `next` are given, the code finishes the
/// strip `previous` beside the products, and prefetches what finishing the strip `next` reads.
void PhaseEmitter::emitProducts(const Strip &strip, Value row, Value col, const Ranges &ranges,
                                Value kCount, Value kBlock, Pointer sums, Value stride,
                                StripFinisher *previous, StripFinisher *next) {
  // The turns of a strip are the iterations of its micro-kernels: of all panels in the first slab,
  // then of all panels in the next slab, and so on.
  Value panels = b.div(b.add(strip.cols, plan.nr - 1), plan.nr);
  auto turns = [&](Value count) { return b.div(kSteps(count), tileSize); };
  b.loop(b.constant(0), kCount, plan.kSlab, [&](Value from) {
    Slab slab = {from, b.min(b.constant(plan.kSlab), b.sub(kCount, from)),
                 b.both(b.isEqual(kBlock, 0), b.isEqual(from, 0))};
    b.loop(b.constant(0), strip.cols, plan.nr, [&](Value shift) {
      auto finishChunks = [&](Value step) {
        Value before =
            b.add(b.mul(turns(from), panels), b.mul(turns(slab.count), b.div(shift, plan.nr)));
        Value chunk = b.mul(b.add(before, b.div(step, tileSize)), plan.chunksPerTurn());
        for (int64_t i = 0; i < plan.chunksPerTurn(); ++i) {
          previous->finishChunk(b.add(chunk, i));
          next->prefetchChunk(b.add(chunk, i));
        }
      };
      function_ref<void(Value)> beside = finishChunks;
      emitSums(strip, row, b.add(col, shift), ranges, slab, b.shift(sums, shift), stride,
               previous ? beside : nullptr);
    });
  });
  if (previous)
    previous->finishChunksFrom(b.mul(b.mul(turns(kCount), panels), plan.chunksPerTurn()));
}

/// Emits the code of one strip. If strips are finished beside products, `waiting` describes the
/// strip that has its sums but no results yet. Its values are the first row, the first column, and
/// the number of the buffer of the sums (0 or 1). If no strip is waiting, the row is the end of the
/// rows. Returns the strip that is waiting after this code.
CodeBuilder::Carried PhaseEmitter::emitStrip(const Position &corner, Value row, Value col,
                                             const Ranges &ranges, Value kCount, Value kBlock,
                                             ValueRange waiting) {
  Strip strip = stripAt(corner, row, col, ranges);
  Value isFirst = b.isEqual(kBlock, 0);
  Value isLast = strip.isLast = b.isEqual(kBlock, plan.kBlocks - 1);
  bool constantStart = problem.startsAtConstant();

  Value buffer = b.constant(0);
  if (plan.finishesBeside())
    buffer = b.sub(b.constant(1), waiting[2]);
  Pointer scratch = sumsInScratch(row, col, ranges, buffer), sums = scratch;
  Value stride = b.constant(plan.stripCols()), isWhole;
  if (plan.direct) {
    const Operand &dest = problem.stores.front().dest;
    Pointer inResult = kernel.at(b, dest, strip.position);
    isWhole = b.both(b.isEqual(strip.rows, plan.mr), b.isEqual(strip.cols, plan.stripCols()));
    sums.base = b.select(isWhole, b.address(inResult), b.address(scratch));
    sums.index = b.constant(0);
    stride = b.select(isWhole, b.constant(dest.strides[plan.rows.back()]), stride);
    if (plan.arithmetic != Arithmetic::Tiles && plan.parts == 1)
      prefetchNextRows(inResult, dest.strides[plan.rows.back()]);
    Value load = constantStart ? isFalse(b, isFirst) : b.boolean(true);
    b.when(b.both(isFalse(b, isWhole), load),
           [&] { emitLoadStrip(b, kernel, dest, strip, scratch); });
  } else if (!constantStart) {
    b.when(isFirst, [&] { emitLoadStrip(b, kernel, problem.init, strip, scratch); });
  }
  if (!plan.direct && !plan.finishesBeside() && plan.parts == 1)
    b.when(isLast, [&] {
      emitPrefetchOfStrip(b, kernel, strip, [&](function_ref<void(Value)> body) {
        b.loop(b.constant(0), b.constant(plan.mr), 1, body);
      });
    });
  if (plan.finishesBeside()) {
    StripFinisher previous = finisherOf(corner, ranges, waiting);
    Strip finished = strip;
    finished.rows = b.select(isLast, strip.rows, b.constant(0));
    StripFinisher next(b, kernel, finished, scratch);
    emitProducts(strip, row, col, ranges, kCount, kBlock, sums, stride, &previous, &next);
    return {b.select(isLast, row, ranges.rows.to), col, buffer};
  }
  emitProducts(strip, row, col, ranges, kCount, kBlock, sums, stride, nullptr, nullptr);
  auto finish = [&] { StripFinisher(b, kernel, strip, scratch).finish(); };
  if (plan.direct)
    b.when(isWhole, [] {}, finish);
  else
    b.when(isLast, finish);
  return {};
}

void PhaseEmitter::emitBlock(Position position, Range rows, Range cols, Range sumCols,
                             Value kBlock) {
  int64_t innerBlocks = plan.kBlocks / plan.kOuterCount;
  setDigits(b, problem, position, b.div(kBlock, innerBlocks), plan.kOuter);
  Value k = b.mul(b.rem(kBlock, innerBlocks), plan.kc);
  position[plan.kInner] = k;
  Value kCount = b.min(b.constant(plan.kc), b.sub(b.constant(plan.k), k));
  Value zero = b.constant(0);
  auto packLhs = [&](Value from, Value to) {
    Value number = b.div(b.sub(from, rows.from), plan.mr);
    emitPackPanels(b, kernel, lhs, position, from, to, kCount, panel(lhs, number, zero));
  };
  if (!plan.packsLhsOnUse)
    packLhs(rows.from, rows.to);
  int64_t groupCols = plan.colGroup * plan.nr;
  CodeBuilder::Carried waiting;
  if (plan.finishesBeside())
    waiting = {rows.to, sumCols.from, zero};
  waiting =
      b.loop(sumCols.from, sumCols.to, groupCols, waiting, [&](Value first, ValueRange before) {
        Value end = b.min(b.add(first, groupCols), sumCols.to);
        emitPackPanels(b, kernel, rhs, position, first, b.min(end, cols.to), kCount,
                       panel(rhs, zero, zero));
        return b.loop(rows.from, rows.to, plan.mr, before, [&](Value row, ValueRange before) {
          if (plan.packsLhsOnUse) {
            int64_t packed = plan.lhsPanelsPerUse * plan.mr;
            Value begins = b.isEqual(b.rem(b.sub(row, rows.from), packed), 0);
            b.when(b.both(isFirstGroup(first, sumCols), begins),
                   [&] { packLhs(row, b.min(b.add(row, packed), rows.to)); });
          }
          return b.loop(first, end, plan.stripCols(), before, [&](Value col, ValueRange before) {
            return emitStrip(position, row, col, {rows, cols, sumCols, first}, kCount, kBlock,
                             before);
          });
        });
      });
  if (plan.finishesBeside())
    finisherOf(position, {rows, cols, sumCols, zero}, waiting).finishChunksFrom(zero);
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

  int64_t units = plan.unitsPerBlock;
  b.loop(b.div(begin, units), b.div(b.add(end, units - 1), units), 1, [&](Value block) {
    Value first = b.mul(block, units);
    Value from = b.max(b.sub(begin, first), b.constant(0));
    Value to = b.min(b.sub(end, first), b.constant(units));
    Value outer = b.div(block, plan.rowBlocks);
    if (plan.splitRows)
      return emitOuter(outer, rangeOf(from, to, plan.mr, plan.m),
                       {b.constant(0), b.constant(plan.n)});
    Value row = b.rem(block, plan.rowBlocks);
    emitOuter(outer, rangeOf(row, b.add(row, 1), plan.mc, plan.m),
              rangeOf(from, to, plan.nr, plan.n));
  });
  if (plan.streams)
    b.storeFence();
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
