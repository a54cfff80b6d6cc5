//===- Sm80Backward.cpp - Kernels of the backward pass with mma.sync --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   1. dQ; lse and δ of each query to scratch           Sm80QueryGradients.cpp
//   2. dK and dV in one kernel, or one after another    Sm80KeyGradients.cpp
//
// GpuBackward.cpp emits the launches.
//
// Configurations are chosen as in Sm80Plan.cpp. A thread needs these registers:
//
//   rowPieces · blockCols                   S and dP
//   rowPieces · (dim / 2), (valueDim / 2)   sums
//   rowPieces · 8, factors, 48              as in Sm80Plan.cpp
//
//===----------------------------------------------------------------------===//

#include "Sm80Backward.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

// Each configuration lists warps, rowPieces, blockCols and blocksPerSm.
static const Sm80Row queries16[] = {
    {64, {4, 1, 64, 2}}, {128, {8, 1, 64, 1}}, {256, {4, 1, 32, 1}}};
static const Sm80Row queries32[] = {
    {64, {4, 1, 32, 1}}, {128, {4, 1, 32, 1}}, {256, {2, 1, 16, 1}}};
static const Sm80Row keys16[] = {{64, {4, 1, 64, 2}}, {128, {8, 1, 32, 1}}, {256, {4, 1, 32, 1}}};
static const Sm80Row keys32[] = {{64, {4, 1, 32, 1}}, {128, {4, 1, 16, 1}}, {256, {2, 1, 16, 1}}};

static int64_t otherRegisters(const Sm80Config &c, Type element) {
  return c.rowPieces * (c.blockCols + 8) + (c.rowPieces * 4 + 8) * (element.isF32() ? 2 : 1) + 48;
}

/// Returns the total size of the tiles in bytes. Two tensors have one tile each, with blockRows()
/// rows. The two other tensors have two buffers each, with `blockCols` rows.
static int64_t bytesOfTiles(const Sm80Config &c, const Shape &shape, Type element) {
  return (c.blockRows() + 2 * c.blockCols) *
         (Sm80Tiles::pitchOf(element, shape.dim) + Sm80Tiles::pitchOf(element, shape.valueDim));
}

Sm80Needs attention::queryNeeds(const Sm80Config &c, const Shape &shape, Type element) {
  return {otherRegisters(c, element) + c.rowPieces * Sm80Tiles::paddedCols(shape.dim) / 2,
          bytesOfTiles(c, shape, element)};
}

Sm80Needs attention::keyNeeds(const Sm80Config &c, const Shape &shape, Type element, bool wantsK,
                              bool wantsV) {
  int64_t sums = (wantsK ? Sm80Tiles::paddedCols(shape.dim) : 0) +
                 (wantsV ? Sm80Tiles::paddedCols(shape.valueDim) : 0);
  return {otherRegisters(c, element) + c.rowPieces * sums / 2,
          bytesOfTiles(c, shape, element) + 4 * c.blockCols * 4};
}

void Sm80Backward::placeNorms(const Shape &shape, int64_t stride) {
  rowStride = stride;
  delta = shape.batch * shape.heads * rowStride;
  scratchBytes = 2 * delta * 4;
}

std::optional<Sm80Backward> attention::chooseBackward(const Shape &shape, Type element,
                                                      const GpuTarget &target) {
  bool isWide = element.isF32();
  auto choose = [&](ArrayRef<Sm80Row> table, int64_t rows, int64_t cols, auto needs) {
    return chooseRow(table, shape, rows, cols,
                     [&](const Sm80Config &config) { return fits(config, needs(config), target); });
  };
  auto queries = choose(isWide ? ArrayRef(queries32) : ArrayRef(queries16), shape.rows, shape.cols,
                        [&](const Sm80Config &c) { return queryNeeds(c, shape, element); });
  auto keys = [&](bool wantsK, bool wantsV) {
    return choose(isWide ? ArrayRef(keys32) : ArrayRef(keys16), shape.cols, shape.rows,
                  [&](const Sm80Config &c) { return keyNeeds(c, shape, element, wantsK, wantsV); });
  };
  if (!queries)
    return std::nullopt;
  Sm80Backward plan;
  plan.queries = *queries;
  if (auto both = keys(true, true)) {
    plan.keys = {*both};
  } else {
    auto forK = keys(true, false), forV = keys(false, true);
    if (!forK || !forV)
      return std::nullopt;
    plan.keys = {*forK, *forV};
  }
  plan.placeNorms(shape, shape.rows);
  return plan;
}
