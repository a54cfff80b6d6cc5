//===- GemmEpilogue.cpp - From accumulators to results ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For each row of the strip and each vector of its columns, loads the inputs of the elementwise
// ops, runs their bodies on vectors, and stores the results. Columns outside the result are masked.
// At this time, the sums are still in the L1 cache.
//
// Large results are written with streaming stores (isStreamed()), which have no mask and fill whole
// cache lines. The code therefore checks whether the rows of a strip consist of whole cache lines,
// and writes any other strip with ordinary stores.
//
//===----------------------------------------------------------------------===//

#include "GemmEmit.h"
#include "fsdp/IR/Kernels.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

namespace {
/// Emits loads, bodies and stores for vectors of one row of a strip.
class RowEmitter {
public:
  /// `width` is the number of elements of a vector.
  RowEmitter(CodeBuilder &b, const Kernel &kernel, int64_t width)
      : b(b), kernel(kernel), plan(kernel.plan), width(width) {}
  /// An operand, and the address of its element at the corner of the strip. The code computes the
  /// address before the loops.
  using Corner = std::pair<const Operand *, Pointer>;

  Pointer corner(const Operand &operand, const Strip &strip) {
    return operand.access.binding < 0 ? Pointer() : kernel.at(b, operand, strip.position);
  }
  Value load(const Operand &operand, const Pointer &corner);
  void store(Value value, const Operand &operand, const Pointer &corner);
  void storeStreaming(Value value, const Operand &operand, const Pointer &corner) {
    b.storeStreaming(value, b.shift(corner, along(operand.strides)));
  }
  Value index(ArrayRef<int64_t> strides, Value corner);

  void setPoint(const Strip &strip, Value newRow, Value newCol) {
    row = newRow;
    col = newCol;
    mask = b.maskBelow(width, b.sub(strip.cols, col));
  }

private:
  int64_t rowStride(ArrayRef<int64_t> strides) const { return strides[plan.rows.back()]; }
  int64_t colStride(ArrayRef<int64_t> strides) const { return strides[plan.cols.back()]; }
  Value along(ArrayRef<int64_t> strides) {
    return b.add(b.mul(row, rowStride(strides)), b.mul(col, colStride(strides)));
  }

  CodeBuilder &b;
  const Kernel &kernel;
  const Plan &plan;
  int64_t width;
  Value row, col, mask;
};
} // namespace

Value RowEmitter::load(const Operand &operand, const Pointer &corner) {
  const Access &access = operand.access;
  auto type = VectorType::get({width}, access.elementType);
  Value value;
  if (access.binding < 0) {
    value = arith::ConstantOp::create(b, b.loc, DenseElementsAttr::get(type, access.splat));
  } else {
    Pointer place = b.shift(corner, along(operand.strides));
    int64_t stride = colStride(operand.strides);
    if (stride == 0)
      value = b.splat(b.load(access.elementType, place), width);
    else if (stride == 1)
      value = b.load(type, place, mask);
    else
      value = b.gather(type, place, stride, mask);
  }
  for (linalg::LinalgOp op : access.maps)
    value = b.inlineBody(op, {value, Value()}, width).front();
  return value;
}

void RowEmitter::store(Value value, const Operand &operand, const Pointer &corner) {
  Pointer place = b.shift(corner, along(operand.strides));
  int64_t stride = colStride(operand.strides);
  if (stride == 1)
    b.store(value, place, mask);
  else
    b.scatter(value, place, stride, mask);
}

Value RowEmitter::index(ArrayRef<int64_t> strides, Value corner) {
  Value first = b.splat(b.add(corner, along(strides)), width);
  Value lane = arith::MulIOp::create(b, b.loc, b.iota(width, b.getI64Type()),
                                     b.splat(b.constant(colStride(strides)), width));
  Value value = arith::AddIOp::create(b, b.loc, first, lane);
  return arith::IndexCastOp::create(b, b.loc, VectorType::get({width}, b.getIndexType()), value);
}

/// Emits loops over the rows and column vectors of a strip that call `body(row, col)`.
static void forEachVector(CodeBuilder &b, const Plan &plan, const Strip &strip,
                          function_ref<void(Value, Value)> body) {
  b.loop(b.constant(0), strip.rows, 1, [&](Value row) {
    b.loop(b.constant(0), strip.cols, plan.lanes, [&](Value col) { body(row, col); });
  });
}

void gemm::emitLoadStrip(CodeBuilder &b, const Kernel &kernel, const Operand &source,
                         const Strip &strip, Pointer sums) {
  RowEmitter emitter(b, kernel, kernel.plan.lanes);
  Pointer corner = emitter.corner(source, strip);
  forEachVector(b, kernel.plan, strip, [&](Value row, Value col) {
    emitter.setPoint(strip, row, col);
    Value value = b.convertFloat(emitter.load(source, corner), kernel.plan.accType);
    b.store(value, b.shift(sums, b.add(b.mul(row, kernel.plan.stripCols()), col)));
  });
}

/// Returns true if each row of a strip consists of whole chunks and, in each streamed result, of
/// whole cache lines. `corners` has the address of each result's element at the strip's corner.
static Value hasWholeLines(CodeBuilder &b, const Kernel &kernel, const Strip &strip,
                           ArrayRef<Pointer> corners) {
  Value whole = b.isEqual(b.rem(strip.cols, kernel.plan.chunkCols()), 0);
  for (auto [store, corner] : llvm::zip_equal(kernel.problem.stores, corners)) {
    if (!isStreamed(kernel.problem, kernel.plan, store))
      continue;
    Value address = LLVM::PtrToIntOp::create(b, b.loc, b.getI64Type(), b.address(corner));
    int64_t bytes = getStorageType(store.dest.access.elementType).getIntOrFloatBitWidth() / 8;
    whole = b.both(whole, b.isEqual(b.rem(address, lineBytes), 0));
    whole = b.both(whole, b.isEqual(b.rem(b.mul(strip.cols, bytes), lineBytes), 0));
  }
  return whole;
}

StripFinisher::StripFinisher(CodeBuilder &b, const Kernel &kernel, const Strip &strip, Pointer sums)
    : b(b), kernel(kernel), strip(strip), sums(sums) {
  RowEmitter emitter(b, kernel, kernel.plan.lanes);
  const Problem &problem = kernel.problem;
  for (const Operand &operand : problem.loads)
    loads.push_back(emitter.corner(operand, strip));
  for (const StoreStep &store : problem.stores)
    stores.push_back(emitter.corner(store.dest, strip));
  for (const MapStep &map : problem.maps)
    indices.push_back(llvm::map_to_vector(map.indexStrides, [&](ArrayRef<int64_t> strides) {
      return emitOffset(b, strides, strip.position);
    }));
  if (kernel.plan.streams)
    wholeLines = hasWholeLines(b, kernel, strip, stores);
}

void StripFinisher::finishVector(Value row, Value col, int64_t width, bool streaming) {
  const Problem &problem = kernel.problem;
  const Plan &plan = kernel.plan;
  RowEmitter emitter(b, kernel, width);
  emitter.setPoint(strip, row, col);
  Value vector = b.load(VectorType::get({width}, plan.accType),
                        b.shift(sums, b.add(b.mul(row, plan.stripCols()), col)));
  DenseMap<Value, Value> vectors = emitMaps(
      b, problem, vector, width,
      [&](unsigned load) { return emitter.load(problem.loads[load], loads[load]); },
      [&](unsigned map, unsigned loop) {
        return emitter.index(problem.maps[map].indexStrides[loop], indices[map][loop]);
      });
  for (auto [store, place] : llvm::zip_equal(problem.stores, stores)) {
    Value result = vectors.lookup(store.value);
    if (streaming && isStreamed(problem, plan, store))
      emitter.storeStreaming(result, store.dest, place);
    else
      emitter.store(result, store.dest, place);
  }
}

void StripFinisher::finish() {
  int64_t lanes = kernel.plan.lanes;
  forEachVector(b, kernel.plan, strip,
                [&](Value row, Value col) { finishVector(row, col, lanes, /*streaming=*/false); });
}

void StripFinisher::atChunk(Value number, function_ref<void(Value, Value)> body) {
  const Plan &plan = kernel.plan;
  int64_t perRow = plan.stripCols() / plan.chunkCols();
  Value row = b.div(number, perRow), col = b.mul(b.rem(number, perRow), plan.chunkCols());
  b.when(b.both(b.isLess(row, strip.rows), b.isLess(col, strip.cols)), [&] { body(row, col); });
}

void StripFinisher::finishChunk(Value number) {
  const Plan &plan = kernel.plan;
  atChunk(number, [&](Value row, Value col) {
    auto finish = [&](bool streaming) { finishVector(row, col, plan.chunkCols(), streaming); };
    if (!plan.streams)
      return finish(/*streaming=*/false);
    b.when(wholeLines, [&] { finish(/*streaming=*/true); }, [&] { finish(/*streaming=*/false); });
  });
}

void StripFinisher::prefetchChunk(Value number) {
  const Plan &plan = kernel.plan;
  auto reads = [&](const Operand &operand) { return hasLinesOfRows(plan, operand); };
  if (llvm::none_of(kernel.problem.loads, reads))
    return;
  atChunk(number, [&](Value row, Value col) {
    for (auto [operand, corner] : llvm::zip_equal(kernel.problem.loads, loads))
      if (reads(operand))
        emitPrefetchOfRow(b, plan, operand, b.shift(corner, col), row, plan.chunkCols(),
                          /*forWriting=*/false);
  });
}

void StripFinisher::finishChunksFrom(Value number) {
  b.loop(number, b.constant(kernel.plan.chunksPerStrip()), 1,
         [&](Value chunk) { finishChunk(chunk); });
}
