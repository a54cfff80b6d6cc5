//===- Sm80Plan.cpp - Tiling of attention with mma.sync ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses the first configuration of a table that allows the head dimensions and that fits the
// registers and the shared memory. A model estimates the registers. In the model, a thread of the
// forward pass needs these registers:
//
//   rowPieces · (blockCols / 2)     scores, then weights, in place
//   rowPieces · (valueDim / 2)      O
//   rowPieces · 4 + 8               factors before mma; twice as many if they are split
//   rowPieces · 6                   maximum, sum and position of each row
//   48                              addresses, bounds, values of score functions
//
// The file test/Codegen/Gpu/Inputs/ptxas-sm80.txt lists the registers that ptxas reports.
//
//===----------------------------------------------------------------------===//

#include "Sm80Attention.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

// Each configuration lists warps, rowPieces, blockCols and blocksPerSm.
static const Sm80Row forward16[] = {{64, {4, 2, 64, 2}},
                                    {96, {4, 2, 64, 1}},
                                    {128, {8, 1, 64, 1}},
                                    {192, {8, 1, 32, 1}},
                                    {256, {8, 1, 32, 1}}};
static const Sm80Row forward32[] = {
    {64, {4, 1, 32, 1}}, {128, {4, 1, 32, 1}}, {256, {4, 1, 16, 1}}};

Sm80Needs attention::forwardNeeds(const Sm80Config &c, const Shape &shape, Type element) {
  int64_t pitch = Sm80Tiles::pitchOf(element, shape.dim),
          valuePitch = Sm80Tiles::pitchOf(element, shape.valueDim);
  int64_t factors = (c.rowPieces * 4 + 8) * (element.isF32() ? 2 : 1);
  int64_t registers =
      c.rowPieces * (c.blockCols / 2 + Sm80Tiles::paddedCols(shape.valueDim) / 2 + 6) + factors +
      48;
  return {registers, c.blockRows() * pitch + 2 * c.blockCols * (pitch + valuePitch)};
}

bool attention::fits(const Sm80Config &c, const Sm80Needs &needs, const GpuTarget &target) {
  int64_t registers =
      std::min(target.registersPerThread, target.registersPerSm / (c.threads() * c.blocksPerSm));
  return needs.registers <= registers && needs.sharedBytes <= target.sharedPerBlock &&
         (needs.sharedBytes + target.sharedReserved) * c.blocksPerSm <= target.sharedPerSm;
}

std::optional<Sm80Config> attention::chooseRow(ArrayRef<Sm80Row> table, const Shape &shape,
                                               int64_t rows, int64_t cols,
                                               function_ref<bool(const Sm80Config &)> passes) {
  int64_t dim = Sm80Tiles::paddedCols(std::max(shape.dim, shape.valueDim));
  for (const Sm80Row &row : table) {
    Sm80Config config = row.config;
    if (dim > row.dim || !passes(config))
      continue;
    // Halve the number of rows of a block as long as all rows of the tensor fit half of a block.
    while (config.rowPieces > 1 && rows <= config.blockRows() / 2)
      config.rowPieces /= 2;
    while (config.warps > 4 && rows <= config.blockRows() / 2)
      config.warps /= 2;
    config.blockCols = std::min<int64_t>(config.blockCols, llvm::alignTo(cols, 16));
    return config;
  }
  return std::nullopt;
}

std::optional<Sm80Config> attention::chooseForward(const Shape &shape, Type element,
                                                   const GpuTarget &target) {
  ArrayRef<Sm80Row> table = element.isF32() ? ArrayRef(forward32) : ArrayRef(forward16);
  return chooseRow(table, shape, shape.rows, shape.cols, [&](const Sm80Config &config) {
    return fits(config, forwardNeeds(config, shape, element), target);
  });
}
