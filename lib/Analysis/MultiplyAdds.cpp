//===- MultiplyAdds.cpp - Multiply-adds and bytes of a kernel ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// - The number of multiply-adds of a contraction is the product of the extents of its loops.
// - Attention computes two products per score in the forward and five in the backward. Scores count
//   only if they are in tiles that the mask does not exclude. The number for an op is multiplied by
//   the trip counts of the loops around it. Elementwise ops do not count, and neither do products
//   in loops whose trip count is unknown.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/MultiplyAdds.h"
#include "fsdp/Analysis/AttentionTiles.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Kernels.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the product of the trip counts of all loops around `op`; 0 if a trip count is unknown.
static uint64_t countTrips(Operation *op) {
  uint64_t trips = 1;
  for (auto loop = op->getParentOfType<LoopLikeOpInterface>(); loop;
       loop = loop->getParentOfType<LoopLikeOpInterface>()) {
    std::optional<APInt> count = loop.getStaticTripCount();
    trips *= count ? count->getZExtValue() : 0;
  }
  return trips;
}

/// Returns the fraction of the rows × keys scores that `op` must compute. To compute the fraction,
/// divides the scores into at most 32 × 32 tiles and counts the tiles that the mask does not
/// exclude. If the mask of a tile depends on data, the whole tile counts. A tile counts if the mask
/// includes it with the least or with the largest values of all scalars.
template <typename Op>
static double getVisitedPart(Op op, int64_t rows, int64_t keys) {
  static constexpr int64_t tiles = 32;
  AttentionTiles visits(op);
  if (visits.isUnmasked())
    return 1;
  int64_t rowStep = llvm::divideCeil(rows, tiles), keyStep = llvm::divideCeil(keys, tiles),
          visited = 0, all = 0;
  DenseMap<Value, IntegerRange> scalars = findScalars(visits.getKeys());
  auto least = [&](Value value) { return scalars.lookup(value).lo; };
  auto largest = [&](Value value) { return scalars.lookup(value).hi; };
  for (int64_t q = 0; q < rows; q += rowStep)
    for (int64_t k = 0; k < keys; k += keyStep) {
      TileSymbols<int64_t> symbols{q, std::min(q + rowStep, rows), 0, 0, least};
      auto isVisited = [&] {
        return visits.classify(symbols, k, std::min(k + keyStep, keys)) != TileState::Masked;
      };
      bool isFirst = isVisited();
      symbols.scalar = largest;
      visited += isFirst || isVisited();
      ++all;
    }
  return all ? static_cast<double>(visited) / all : 0;
}

/// Returns the number of multiply-adds of an attention op that computes `products` matrix products.
template <typename Op>
static uint64_t countProducts(Op op, unsigned products) {
  ArrayRef<int64_t> q = op.getQ().getType().getShape(), k = op.getK().getType().getShape(),
                    v = op.getV().getType().getShape();
  double scores = static_cast<double>(q[0] * q[1]) * static_cast<double>(q[2] * k[2]);
  return static_cast<uint64_t>(scores * products * (q[3] + v[3]) / 2 *
                               getVisitedPart(op, q[2], k[2]));
}

MultiplyAdds fsdp::countMultiplyAdds(Operation *kernel) {
  MultiplyAdds counts;
  kernel->walk([&](linalg::LinalgOp op) {
    if (!linalg::isaContractionOpInterface(op))
      return;
    uint64_t products = countTrips(op);
    for (int64_t range : op.getStaticLoopRanges())
      products *= ShapedType::isDynamic(range) ? 0 : static_cast<uint64_t>(range);
    auto isOf = [&](auto matches) {
      return llvm::all_of(op.getDpsInputs(),
                          [&](Value input) { return matches(getElementTypeOrSelf(input)); });
    };
    if (isOf([](Type type) { return type.isBF16(); }))
      counts.bf16 += products;
    else
      counts.wide += products * (isOf([](Type type) { return type.isF64(); }) ? 2 : 1);
  });
  auto add = [&](auto op, unsigned products) {
    Type type = op.getQ().getType().getElementType();
    uint64_t count = countTrips(op) * countProducts(op, products);
    (type.isBF16() ? counts.bf16 : counts.wide) += count * (type.isF64() ? 2 : 1);
  };
  kernel->walk([&](AttentionOp op) { add(op, 2); });
  kernel->walk([&](AttentionGradOp op) { add(op, 5); });
  return counts;
}

uint64_t fsdp::countMovedBytes(func::FuncOp kernel) {
  uint64_t bytes = 0;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (auto tensor = dyn_cast<ShapedType>(type))
      bytes += static_cast<uint64_t>(getStorageBytes(tensor)) *
               (kernel.getArgAttr(index, inoutAttr) ? 2 : 1);
  return bytes;
}
