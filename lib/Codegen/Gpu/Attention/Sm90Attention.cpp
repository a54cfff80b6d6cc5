//===- Sm90Attention.cpp - Tiles of heads for wgmma -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The accumulators of wgmma have the same layout as the accumulators of mma. stmatrix also expects
// the values that it stores in this layout. One stmatrix stores two groups of 8 columns as four 8x8
// matrices. Lane l provides the address of one row of one matrix:
//
//   matrix   0              1               2               3
//   rows     0 .. 7         8 .. 15         0 .. 7          8 .. 15        row l % 16
//   group    first          first           second          second         group l / 16
//
// In shared memory, a row of a panel consists of eight chunks of 16 bytes. A chunk holds the 8
// elements of one group of columns. The swizzle stores chunk c at the place of chunk c ^ (row % 8).
// Therefore the addresses of eight lanes, which belong to eight different rows, are in different
// chunks and do not conflict.
//
//===----------------------------------------------------------------------===//

#include "Sm90Attention.h"
#include "Codegen/Kernel/Lowering.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr int64_t chunkBytes = 16;

bool attention::hasTensorMap(RankedTensorType type) {
  constexpr int64_t largestSize = INT64_C(1) << 32, largestStride = INT64_C(1) << 40;
  Type element = type.getElementType();
  int64_t rowBytes = type.getDimSize(3) * element.getIntOrFloatBitWidth() / 8;
  return (element.isBF16() || element.isF16() || element.isF32()) && rowBytes % chunkBytes == 0 &&
         type.getDimSize(0) * type.getDimSize(1) < largestSize &&
         type.getDimSize(2) * rowBytes < largestStride;
}

HeadMap::HeadMap(func::FuncOp kernel, Value heads, int64_t number, bool roundsToTF32)
    : placed(placeHeads(kernel, heads)), type(cast<RankedTensorType>(heads.getType())),
      number(number), roundsToTF32(roundsToTF32) {}

/// Returns true if batches have a dimension of their own, since the heads of all batches do not
/// have one distance.
bool HeadMap::splitsBatches() const {
  return type.getDimSize(0) > 1 && heads() > 1 &&
         placed->layout.batch != heads() * placed->layout.head;
}

bool HeadMap::rowsHoldHeads() const { return placed->layout.head < placed->layout.row; }

template <typename T>
SmallVector<T> HeadMap::inOrder(T col, T row, T head, T batch) const {
  SmallVector<T> all =
      rowsHoldHeads() ? SmallVector<T>{col, head, row} : SmallVector<T>{col, row, head};
  if (splitsBatches())
    all.push_back(batch);
  return all;
}

GpuTensorMap HeadMap::get(int64_t boxRows) const {
  const HeadLayout &layout = placed->layout;
  GpuTensorMap map;
  map.binding = cast<BlockArgument>(placed->in).getArgNumber();
  map.offset = layout.offset * elementBytes();
  map.type = roundsToTF32                     ? GpuTensorType::TF32
             : type.getElementType().isBF16() ? GpuTensorType::BF16
                                              : GpuTensorType::F16;
  int64_t batches = type.getDimSize(0),
          distance = heads() == 1 && batches > 1 ? layout.batch : layout.head;
  map.sizes = inOrder(type.getDimSize(3) * elementBytes() / unitBytes(), type.getDimSize(2),
                      splitsBatches() ? heads() : batches * heads(), batches);
  SmallVector<int64_t> strides = inOrder<int64_t>(1, layout.row, distance, layout.batch);
  for (int64_t stride : ArrayRef(strides).drop_front())
    map.strides.push_back(stride * elementBytes());
  map.box = inOrder<int64_t>(Sm90Builder::panelBytes / unitBytes(), boxRows, 1, 1);
  return map;
}

SmallVector<Value> HeadMap::coordinates(Sm90Builder &b, int64_t firstCol, Value row,
                                        Value number) const {
  Value col = b.i32(firstCol * elementBytes() / unitBytes());
  if (!splitsBatches())
    return inOrder(col, row, number, Value());
  // The producer has no registers in which both coordinates could live across loops.
  number = b.opaque(number);
  return inOrder(col, row, b.rem(number, heads()), b.div(number, heads()));
}

static Value panelAt(Sm90Builder &b, const PanelTile &tile, int64_t panel) {
  return b.shiftBytes(tile.base, panel * tile.rows * Sm90Builder::panelBytes);
}

void attention::copyTile(Sm90Builder &b, const PanelTile &to, const HeadMap &map, Value firstRow,
                         Value number, int64_t cols, Value barrier) {
  for (int64_t i = 0; i < panelsOf(cols, map.elementBytes()); ++i)
    b.copyBox(
        panelAt(b, to, i), map.emit(b),
        map.coordinates(b, i * (Sm90Builder::panelBytes / map.elementBytes()), firstRow, number),
        barrier);
}

void attention::storeTile(Sm90Builder &b, const PanelTile &from, const HeadMap &map, Value firstRow,
                          Value number, int64_t firstCol, int64_t endCol) {
  for (int64_t i = 0; i < panelsOf(endCol - firstCol); ++i)
    b.storeBox(map.emit(b),
               map.coordinates(b, firstCol + i * Sm90Builder::panelCols, firstRow, number),
               panelAt(b, from, i));
}

void attention::storeWords(Sm90Builder &b, const Layout &layout, ArrayRef<Value> words,
                           const PanelTile &to, int64_t firstCol) {
  constexpr int64_t chunks = Sm90Builder::panelBytes / chunkBytes;
  assert(layout.numRows() == 16 && layout.numCols() % 16 == 0 && "pairs of pieces");
  auto exclusive = [&](Value x, Value y) { return b.createOrFold<arith::XOrIOp>(b.loc, x, y); };
  Value row = b.rem(b.lane(), 16), swizzled = exclusive(b.div(b.lane(), 16), b.rem(row, chunks));
  Value rowPlace = b.shiftBytes(to.base, b.mul(row, Sm90Builder::panelBytes));
  for (int64_t at = 0; at < layout.numCols(); at += 16) {
    int64_t col = firstCol + at, chunk = col % Sm90Builder::panelCols / 8;
    Value place = b.shiftBytes(rowPlace, b.mul(exclusive(swizzled, b.i32(chunk)), chunkBytes));
    place = b.shiftBytes(place, col / Sm90Builder::panelCols * to.rows * Sm90Builder::panelBytes);
    b.storeMatrices(place, words.slice(at / 4, 4));
  }
}

void attention::storeFragment(Sm90Builder &b, const Fragment &fragment, ArrayRef<Value> factors,
                              Type element, const PanelTile &to) {
  Fragment scaled = fragment;
  if (!factors.empty())
    for (auto [reg, value] : llvm::enumerate(scaled.registers))
      if (Value factor = factors[fragment.layout.rowOf(reg)])
        value = b.mulf(value, factor);
  storeWords(b, fragment.layout, toFactor(b, scaled, element), to);
}

SmallVector<Value> attention::toFactor(GpuBuilder &b, const Fragment &fragment, Type element) {
  // A step of 16 values of k needs two groups of 8 columns of the fragment. Their values are
  // already in the registers in which the product expects its left factor.
  SmallVector<Value> words;
  for (size_t i = 0; i < fragment.registers.size(); i += 2)
    words.push_back(b.pack(fragment.registers[i], fragment.registers[i + 1], element));
  return words;
}

/// Returns the number of registers per thread of the producer and of each consumer. When a block of
/// threads starts, its warpgroups share the 65536 registers equally: each thread has the same
/// number of registers, a multiple of 8. The consumers take the registers that the producer
/// releases.
RoleRegisters attention::registersOfRoles(int64_t groups, int64_t producer) {
  constexpr int64_t ofThree = 504;
  switch (groups) {
  case 2:
    return {producer, (ofThree - producer) / 2};
  case 3:
    return {32, 160};
  }
  return {0, 255};
}

void attention::giveRegisters(Sm90Builder &b, int64_t groups, int64_t producer) {
  if (groups > 1)
    b.giveRegisters(registersOfRoles(groups, producer).producer);
}

void attention::takeRegisters(Sm90Builder &b, int64_t groups, int64_t producer) {
  if (groups > 1)
    b.takeRegisters(registersOfRoles(groups, producer).consumer);
}
