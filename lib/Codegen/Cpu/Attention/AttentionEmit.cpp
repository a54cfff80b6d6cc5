//===- AttentionEmit.cpp - Code shared by forward and backward --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Values of a score function that depend only on the row are computed once per row of a block.
// Values that depend only on the column are computed once per column. Arrays hold these values
// while a tile is processed:
//
//            column values   | c0 | c1 | c2 | ..
//            row values   r0 |
//                         r1 |    tile of scores
//
//===----------------------------------------------------------------------===//

#include "AttentionEmit.h"
#include "Codegen/Kernel/Lowering.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

Part Plan::take(int64_t rows, int64_t stride, int64_t bytes) {
  Part part{workerBytes, stride};
  workerBytes = llvm::alignTo(workerBytes + rows * stride * bytes, 64);
  return part;
}

int64_t Plan::takeShared(int64_t bytes) {
  int64_t offset = sharedBytes;
  sharedBytes = llvm::alignTo(sharedBytes + bytes, 64);
  return offset;
}

void Emitter::enter(func::FuncOp kernel, func::FuncOp phase) {
  Block &entry = phase.front();
  bindings.clear();
  b.setInsertionPointToStart(&entry);
  auto toPointer = [&](Value memref) -> Value {
    Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, b.loc, memref);
    address = arith::IndexCastOp::create(b, b.loc, b.getI64Type(), address);
    return LLVM::IntToPtrOp::create(b, b.loc, LLVM::LLVMPointerType::get(b.getContext()), address);
  };
  unsigned count = kernel.getNumArguments(), last = entry.getNumArguments() - 3;
  for (BlockArgument argument : kernel.getArguments())
    bindings[argument] = {toPointer(entry.getArgument(argument.getArgNumber())),
                          cast<RankedTensorType>(argument.getType()).getElementType(),
                          b.constant(0)};
  if (last > count)
    shared = {toPointer(entry.getArgument(count)), b.getI8Type(), b.constant(0)};
  begin = arith::IndexCastOp::create(b, b.loc, b.getI64Type(), entry.getArgument(last));
  end = arith::IndexCastOp::create(b, b.loc, b.getI64Type(), entry.getArgument(last + 1));
  worker = {toPointer(entry.getArgument(last + 2)), b.getI8Type(), b.constant(0)};
  if (plan.numbers.arithmetic != tile::Arithmetic::Tiles || plan.numbers.emulatesTiles)
    return;
  if (!plan.tileConfig.stride)
    plan.tileConfig = plan.take(1, amx::configBytes, 1);
  amx::emitConfigure(b, scratch(plan.tileConfig, b.getI8Type()));
  amx::emitRelease(b);
  // Insert all later code of the phase before the instruction that releases the tile registers.
  b.setInsertionPoint(entry.getTerminator()->getPrevNode());
}

Pointer Emitter::scratch(const Part &part, Type type) {
  return {b.address({worker.base, b.getI8Type(), b.constant(part.offset)}), type, b.constant(0)};
}

void Emitter::forBlocks(ArrayRef<TileRange> ranges, Part part, KeptFunction &mask, const Head &head,
                        Value first, Value last, function_ref<void(Value, Value)> body) {
  Pointer all = scratch(part, b.getI64Type());
  for (auto [number, range] : llvm::enumerate(ranges))
    for (auto [i, bound] :
         llvm::enumerate(emitBounds(b, range, mask.function, mask.unit, head, first, last)))
      b.store(bound, b.shift(all, b.constant(4 * number + i)));
  auto of = [&](Value number, int64_t i) {
    return b.load(b.getI64Type(), b.shift(all, b.add(b.mul(number, 4), i)));
  };
  b.loop(b.constant(0), b.constant(ranges.size()), 1, [&](Value number) {
    Value freeFrom = of(number, 1), freeTo = of(number, 2);
    b.pipeline(of(number, 0), of(number, 3), nullptr, [&](Value block) {
      Value notBefore = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::sge, block, freeFrom);
      body(block, b.both(notBefore, b.isLess(block, freeTo)));
    });
  });
}

Heads Emitter::place(func::FuncOp kernel, Value heads) {
  std::optional<PlacedHeads> placed = placeHeads(kernel, heads);
  return placed ? Heads{binding(placed->in), placed->layout} : Heads{};
}

Matrix Emitter::headOf(const Heads &heads, Value batch, Value head) {
  const HeadLayout &layout = heads.layout;
  Value offset = b.add(b.mul(batch, layout.batch), b.mul(head, layout.head));
  return {b.shift(heads.tensor, b.add(offset, layout.offset)), layout.row, 1};
}

KeptFunction Emitter::keep(Region &region, unsigned scores, ValueRange captures) {
  SmallVector<Captured> captured;
  for (Value capture : captures)
    captured.push_back({binding(capture), cast<RankedTensorType>(capture.getType())});
  KeptFunction f(ScoreFunction(region, scores, shape.extents(), captured));
  if (f.function.empty())
    return f;
  auto bytes = [&](Value value) {
    return std::max(1u, f.function.typeOf(value).getIntOrFloatBitWidth() / 8);
  };
  for (Value value : f.function.staged(Dependence::Row))
    f.rows.push_back(plan.take(1, plan.tileRows, bytes(value)));
  for (Value value : f.function.staged(Dependence::Column))
    f.columns.push_back(plan.take(1, plan.blockCols, bytes(value)));
  return f;
}

void Emitter::emitUnit(KeptFunction &f, const Head &head) {
  f.unit.clear();
  if (!f.function.empty())
    f.function.emitUnit(b, siteOf(b, head), f.unit);
}

void Emitter::emitRows(KeptFunction &f, const Head &head, Value firstRow, int64_t rows) {
  if (f.rows.empty())
    return;
  b.loop(b.constant(0), b.constant(rows), 1, [&](Value row) {
    ScoreFunction::Values values = f.unit;
    Site site = siteOf(b, head);
    site.q = b.min(b.add(firstRow, row), b.constant(shape.rows - 1));
    for (auto [value, part] : llvm::zip_equal(f.function.staged(Dependence::Row), f.rows))
      b.store(f.function.emit(b, value, site, values),
              b.shift(scratch(part, f.function.typeOf(value)), row));
  });
}

void Emitter::emitColumns(KeptFunction &f, const Head &head, Value firstCol) {
  if (f.columns.empty())
    return;
  b.loop(b.constant(0), b.constant(plan.blockCols), 1, [&](Value col) {
    ScoreFunction::Values values = f.unit;
    Site site = siteOf(b, head);
    site.column = b.min(b.add(firstCol, col), b.constant(shape.cols - 1));
    for (auto [value, part] : llvm::zip_equal(f.function.staged(Dependence::Column), f.columns))
      b.store(f.function.emit(b, value, site, values),
              b.shift(scratch(part, f.function.typeOf(value)), col));
  });
}

ScoreFunction::Values Emitter::knownOfRow(const KeptFunction &f, Value row) {
  ScoreFunction::Values values = f.unit;
  for (auto [value, part] : llvm::zip_equal(f.function.staged(Dependence::Row), f.rows)) {
    Type type = f.function.typeOf(value);
    values[value] = b.load(type, b.shift(scratch(part, type), row));
  }
  return values;
}

ScoreFunction::Values Emitter::known(const KeptFunction &f, const ScoreFunction::Values &ofRow,
                                     Value col) {
  ScoreFunction::Values values = ofRow;
  for (auto [value, part] : llvm::zip_equal(f.function.staged(Dependence::Column), f.columns)) {
    Type type = f.function.typeOf(value);
    values[value] =
        b.load(VectorType::get({plan.numbers.rowLanes}, type), b.shift(scratch(part, type), col));
  }
  return values;
}

Value Emitter::keptLanes(KeptFunction &mask, const ScoreFunction::Values &ofRow, const Site &site,
                         Value col) {
  Value keep;
  if (site.lastColumn)
    keep = b.maskBelow(plan.numbers.rowLanes, b.add(b.sub(site.lastColumn, site.column), 1));
  if (mask.function.empty())
    return keep;
  ScoreFunction::Values values = known(mask, ofRow, col);
  Value kept = splatted(mask.function.emit(b, mask.function.result(), site, values));
  return keep ? b.both(keep, kept) : kept;
}

void Emitter::storeRows(const Matrix &from, Value factor, const Matrix &to, Value firstRow,
                        Value rows, int64_t cols) {
  int64_t lanes = plan.numbers.rowLanes;
  auto vector = VectorType::get({lanes}, plan.numbers.wide);
  b.loop(b.constant(0), rows, 1, [&](Value row) {
    b.loop(b.constant(0), b.constant(plan.padded(cols)), lanes, [&](Value col) {
      Value value = b.load(vector, b.at(from, row, col));
      if (factor)
        value = b.mulf(value, factor);
      b.store(b.convertFloat(value, to.place.type), b.at(to, b.add(firstRow, row), col),
              b.maskBelow(lanes, b.sub(b.constant(cols), col)));
    });
  });
}

Pointer Emitter::destination(func::FuncOp kernel, Value result) {
  for (OpOperand &operand : kernel.front().getTerminator()->getOpOperands())
    if (operand.get() == result)
      return binding(getDestination(kernel, operand.getOperandNumber()));
  return {};
}
