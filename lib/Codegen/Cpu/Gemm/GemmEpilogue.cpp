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
  RowEmitter(CodeBuilder &b, const Kernel &kernel) : b(b), kernel(kernel), plan(kernel.plan) {}
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

  void setPoint(Value newRow, Value newCol, Value newMask) {
    row = newRow;
    col = newCol;
    mask = newMask;
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
  Value row, col, mask;
};
} // namespace

Value RowEmitter::load(const Operand &operand, const Pointer &corner) {
  const Access &access = operand.access;
  auto type = VectorType::get({plan.lanes}, access.elementType);
  Value value;
  if (access.binding < 0) {
    value = arith::ConstantOp::create(b, b.loc, DenseElementsAttr::get(type, access.splat));
  } else {
    Pointer place = b.shift(corner, along(operand.strides));
    int64_t stride = colStride(operand.strides);
    if (stride == 0)
      value = b.splat(b.load(access.elementType, place), plan.lanes);
    else if (stride == 1)
      value = b.load(type, place, mask);
    else
      value = b.gather(type, place, stride, mask);
  }
  for (linalg::LinalgOp op : access.maps)
    value = b.inlineBody(op, {value, Value()}, plan.lanes).front();
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
  Value first = b.splat(b.add(corner, along(strides)), plan.lanes);
  Value lane = arith::MulIOp::create(b, b.loc, b.iota(plan.lanes, b.getI64Type()),
                                     b.splat(b.constant(colStride(strides)), plan.lanes));
  Value value = arith::AddIOp::create(b, b.loc, first, lane);
  return arith::IndexCastOp::create(b, b.loc, VectorType::get({plan.lanes}, b.getIndexType()),
                                    value);
}

/// Emits loops over the rows and column vectors of a strip that call `body(row, col)`.
static void forEachVector(CodeBuilder &b, const Plan &plan, const Strip &strip, RowEmitter &emitter,
                          function_ref<void(Value, Value)> body) {
  b.loop(b.constant(0), strip.rows, 1, [&](Value row) {
    b.loop(b.constant(0), strip.cols, plan.lanes, [&](Value col) {
      emitter.setPoint(row, col, b.maskBelow(plan.lanes, b.sub(strip.cols, col)));
      body(row, col);
    });
  });
}

void gemm::emitLoadStrip(CodeBuilder &b, const Kernel &kernel, const Operand &source,
                         const Strip &strip, Pointer sums) {
  RowEmitter emitter(b, kernel);
  Pointer corner = emitter.corner(source, strip);
  forEachVector(b, kernel.plan, strip, emitter, [&](Value row, Value col) {
    Value value = b.convertFloat(emitter.load(source, corner), kernel.plan.accType);
    b.store(value, b.shift(sums, b.add(b.mul(row, kernel.plan.stripCols()), col)));
  });
}

/// Returns true if the rows of a strip consist of whole cache lines in all streamed results.
/// `corners` has the address of each result's element at the strip's corner.
static Value hasWholeLines(CodeBuilder &b, const Kernel &kernel, const Strip &strip,
                           ArrayRef<Pointer> corners) {
  Value whole = b.boolean(true);
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

void gemm::emitFinishStrip(CodeBuilder &b, const Kernel &kernel, const Strip &strip, Pointer sums) {
  const Problem &problem = kernel.problem;
  const Plan &plan = kernel.plan;
  RowEmitter emitter(b, kernel);
  auto corner = [&](const Operand &operand) { return emitter.corner(operand, strip); };
  auto loads = llvm::map_to_vector(problem.loads, corner);
  auto stores = llvm::map_to_vector(problem.stores,
                                    [&](const StoreStep &store) { return corner(store.dest); });
  SmallVector<SmallVector<Value>> indices;
  for (const MapStep &map : problem.maps)
    indices.push_back(llvm::map_to_vector(map.indexStrides, [&](ArrayRef<int64_t> strides) {
      return emitOffset(b, strides, strip.position);
    }));

  auto emitRows = [&](bool streaming) {
    forEachVector(b, plan, strip, emitter, [&](Value row, Value col) {
      Value vector = b.load(VectorType::get({plan.lanes}, plan.accType),
                            b.shift(sums, b.add(b.mul(row, plan.stripCols()), col)));
      DenseMap<Value, Value> vectors = emitMaps(
          b, problem, vector, plan.lanes,
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
    });
  };
  if (!plan.streams)
    return emitRows(/*streaming=*/false);
  b.when(
      hasWholeLines(b, kernel, strip, stores), [&] { emitRows(/*streaming=*/true); },
      [&] { emitRows(/*streaming=*/false); });
}
