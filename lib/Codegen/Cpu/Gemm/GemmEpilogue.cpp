//===- GemmEpilogue.cpp - From accumulators to results ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For each row of the tile and each vector of its columns, loads the inputs of the elementwise ops,
// runs their bodies on vectors, and stores the results. Columns outside the result are masked. At
// this time, the tile is still in the L1 cache.
//
//===----------------------------------------------------------------------===//

#include "GemmEmit.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

namespace {
/// Emits loads, bodies and stores for vectors of one row of a tile.
class RowEmitter {
public:
  RowEmitter(CodeBuilder &b, const Kernel &kernel) : b(b), kernel(kernel), plan(kernel.plan) {}
  /// An operand and the address of its element at the tile's corner, computed before the loops.
  using Corner = std::pair<const Operand *, Pointer>;

  Pointer corner(const Operand &operand, const TileRegion &region) {
    return operand.access.binding < 0 ? Pointer() : kernel.at(b, operand, region.position);
  }
  Value load(const Operand &operand, const Pointer &corner);
  void store(Value value, const Operand &operand, const Pointer &corner);
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

/// Emits loops over the rows and column vectors of a tile that call `body(row, col)`.
static void forEachVector(CodeBuilder &b, const Plan &plan, const TileRegion &region,
                          RowEmitter &emitter, function_ref<void(Value, Value)> body) {
  b.loop(b.constant(0), region.rows, 1, [&](Value row) {
    b.loop(b.constant(0), region.cols, plan.lanes, [&](Value col) {
      emitter.setPoint(row, col, b.maskBelow(plan.lanes, b.sub(region.cols, col)));
      body(row, col);
    });
  });
}

void gemm::emitLoadTile(CodeBuilder &b, const Kernel &kernel, const Operand &source,
                        const TileRegion &region, Pointer tile) {
  RowEmitter emitter(b, kernel);
  Pointer corner = emitter.corner(source, region);
  forEachVector(b, kernel.plan, region, emitter, [&](Value row, Value col) {
    Value value = b.convertFloat(emitter.load(source, corner), kernel.plan.accType);
    b.store(value, b.shift(tile, b.add(b.mul(row, kernel.plan.nr), col)));
  });
}

void gemm::emitFinishTile(CodeBuilder &b, const Kernel &kernel, const TileRegion &region,
                          Pointer tile) {
  const Problem &problem = kernel.problem;
  const Plan &plan = kernel.plan;
  RowEmitter emitter(b, kernel);
  auto corner = [&](const Operand &operand) { return emitter.corner(operand, region); };
  auto loads = llvm::map_to_vector(problem.loads, corner);
  auto stores = llvm::map_to_vector(problem.stores,
                                    [&](const StoreStep &store) { return corner(store.dest); });
  SmallVector<SmallVector<Value>> indices;
  for (const MapStep &map : problem.maps)
    indices.push_back(llvm::map_to_vector(map.indexStrides, [&](ArrayRef<int64_t> strides) {
      return emitOffset(b, strides, region.position);
    }));

  forEachVector(b, plan, region, emitter, [&](Value row, Value col) {
    Value sums = b.load(VectorType::get({plan.lanes}, plan.accType),
                        b.shift(tile, b.add(b.mul(row, plan.nr), col)));
    DenseMap<Value, Value> vectors = emitMaps(
        b, problem, sums, plan.lanes,
        [&](unsigned load) { return emitter.load(problem.loads[load], loads[load]); },
        [&](unsigned map, unsigned loop) {
          return emitter.index(problem.maps[map].indexStrides[loop], indices[map][loop]);
        });
    for (auto [store, place] : llvm::zip_equal(problem.stores, stores))
      emitter.store(vectors.lookup(store.value), store.dest, place);
  });
}
