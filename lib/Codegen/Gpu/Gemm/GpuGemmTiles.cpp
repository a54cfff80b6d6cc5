//===- GpuGemmTiles.cpp - Order of the tiles of a contraction ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   0 2 4 6      order with groups of two rows; the last group may have fewer
//   1 3 5 7
//   8 9 ..
//
//===----------------------------------------------------------------------===//

#include "GpuGemm.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

/// Number of rows of tiles in a group.
static constexpr int64_t rasterRows = 8;

std::pair<Value, Value> gemm::emitTile(GpuBuilder &b, const GpuPlan &plan, Value number) {
  int64_t rowTiles = plan.rowTiles(), colTiles = plan.colTiles(),
          height = std::min(rasterRows, rowTiles);
  Value group = b.div(number, height * colTiles), inGroup = b.rem(number, height * colTiles);
  Value rowTile, colTile;
  if (rowTiles % height == 0) {
    rowTile = b.rem(inGroup, height);
    colTile = b.div(inGroup, height);
  } else {
    Value rows = b.min(b.sub(b.i32(rowTiles), b.mul(group, height)), b.i32(height));
    rowTile = arith::RemUIOp::create(b, b.loc, inGroup, rows);
    colTile = arith::DivUIOp::create(b, b.loc, inGroup, rows);
  }
  return {b.mul(b.add(b.mul(group, height), rowTile), plan.tileRows()),
          b.mul(colTile, plan.config.blockCols)};
}

Value gemm::emitTileNumber(GpuBuilder &b, const GpuPlan &plan, Value row, Value col) {
  int64_t rowTiles = plan.rowTiles(), height = std::min(rasterRows, rowTiles);
  Value rowTile = b.div(row, plan.tileRows()), colTile = b.div(col, plan.config.blockCols),
        group = b.div(rowTile, height), rows = b.i32(height);
  if (rowTiles % height)
    rows = b.min(b.sub(b.i32(rowTiles), b.mul(group, height)), rows);
  return b.add(b.add(b.mul(group, height * plan.colTiles()), b.mul(colTile, rows)),
               b.rem(rowTile, height));
}
