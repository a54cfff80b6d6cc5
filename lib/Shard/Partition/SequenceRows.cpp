//===- SequenceRows.cpp - Which rows a rank of context has ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   causal, C = 2:  neighbours  0 0 0 0 1 1 1 1    keys 1+2+3+4, 5+6+7+8
//                   stripes     0 1 0 1 0 1 0 1    keys 1+3+5+7, 2+4+6+8
//
//  1. Count, for each rank and for both orders, the keys that tiles of rows visit
//     (AttentionTiles.h). The rows of a tile of stripes are C rows apart, so that it visits the
//     keys of all rows between them.
//  2. Choose stripes if the rank with most keys then has fewer. With a window, tiles of neighbours
//     visit fewer keys.
//
//  3. Estimate a step of a ring: the products of the scores that a rank with most scores computes
//     against one of C blocks, the transfer of a block, and the traffic of merging two results.
//
// A mask that compares captured data, such as documents, skips tiles of neighbours only. Such masks
// keep neighbours. O(tiles of rows · attention ops).
//
//===----------------------------------------------------------------------===//

#include "SequenceSeeds.h"
#include "fsdp/Analysis/AttentionTiles.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Rows of a tile of a typical kernel.
static constexpr int64_t tileRows = 64;

/// Returns the number of scores that the tiles of the rank `rank` visit.
static int64_t countScores(const AttentionTiles &tiles, int64_t rows, SplitAxis axis,
                           int64_t rank) {
  int64_t own = rows / axis.ranks, count = 0;
  for (int64_t begin = 0; begin < own; begin += tileRows) {
    int64_t end = std::min(begin + tileRows, own), offset = axis.striped ? rank : rank * own,
            step = axis.striped ? axis.ranks : 1;
    TileSymbols<int64_t> tile{offset + begin * step, offset + (end - 1) * step + 1, 0, 0};
    for (const TileRange &keys : tiles.getKeys())
      count +=
          (end - begin) * std::max<int64_t>(0, keys.end.evaluate(tile) - keys.begin.evaluate(tile));
  }
  return count;
}

bool fsdp::prefersStripes(ArrayRef<AttentionOp> ops, int64_t ranks) {
  SmallVector<int64_t> neighbours(ranks), stripes(ranks);
  for (AttentionOp op : ops) {
    AttentionTiles tiles(op);
    int64_t rows = cast<RankedTensorType>(op.getQ().getType()).getDimSize(2);
    if (tiles.readsData() || !tiles.getSideComparisons().empty() || rows % ranks)
      return false;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      neighbours[rank] += countScores(tiles, rows, {contextAxis, ranks, false}, rank);
      stripes[rank] += countScores(tiles, rows, {contextAxis, ranks, true}, rank);
    }
  }
  return *llvm::max_element(stripes) < *llvm::max_element(neighbours);
}

/// Returns the number of scores, of one head and sample, of the rank that computes most of them.
static int64_t countMostScores(AttentionOp op, int64_t rows, const SplitAxis &axis) {
  AttentionTiles tiles(op);
  if (tiles.readsData())
    return rows / axis.ranks * rows;
  int64_t most = 0;
  for (int64_t rank = 0; rank < axis.ranks; ++rank)
    most = std::max(most, countScores(tiles, rows, axis, rank));
  return most;
}

RingStep fsdp::estimateRing(ArrayRef<AttentionOp> ops, const SplitAxis &axis, int64_t stride,
                            const Cluster &cluster) {
  std::optional<RingStep> least;
  int64_t gathered = 0;
  for (AttentionOp op : ops) {
    auto q = cast<RankedTensorType>(op.getQ().getType()),
         k = cast<RankedTensorType>(op.getK().getType()),
         v = cast<RankedTensorType>(op.getV().getType()),
         o = cast<RankedTensorType>(op.getO().getType());
    int64_t width = q.getElementTypeBitWidth() / 8,
            block = (k.getNumElements() + v.getNumElements()) * width / axis.ranks;
    double products = static_cast<double>(countMostScores(op, q.getDimSize(2), axis)) *
                      static_cast<double>(q.getDimSize(0) * q.getDimSize(1) *
                                          (q.getDimSize(3) + v.getDimSize(3)));
    RingStep step;
    step.attention = products / static_cast<double>(axis.ranks) /
                     (width == 2 ? cluster.narrowMultiplyAdds : cluster.wideMultiplyAdds);
    step.transfer = getShiftSeconds(cluster, static_cast<double>(block), axis.ranks, stride);
    // A merge reads a partial result and the sum, and writes the sum.
    step.merge = 2 * cluster.launchSeconds +
                 static_cast<double>(o.getNumElements() / axis.ranks * (width + 8)) /
                     cluster.memoryBytesPerSecond;
    gathered += block * (axis.ranks - 1);
    if (!least || step.attention - step.transfer - step.merge <
                      least->attention - least->transfer - least->merge)
      least = step;
  }
  least->gathered = gathered;
  return *least;
}
