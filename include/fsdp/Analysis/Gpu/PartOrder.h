//===- PartOrder.h - Unequal parts of a reduced dimension -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Divides the steps of a product along its reduced dimension among all blocks of threads of a
// launch, if there are fewer tiles of the result than multiprocessors:
//
//   steps of tile 0   | part 0 | part 1 | tail |      Each equal part has a block of its own.
//   steps of tile 1   | part 0 | part 1 | tail |
//   steps of tile 2   | part 0 | part 1 | tail |
//
//   tails             | 0    | 1  :   | 2     |       The remaining blocks, the helpers, divide
//   helpers           | helper 0  | helper 1  |       the steps of all tails.
//
// Blocks that work on equal parts traverse the same steps at the same time, so they read the same
// values of the factors from the L2 cache. The same is true for helpers. A helper adds one part to
// each tile of which it has steps. The parts of a tile have ascending steps, so their sums can be
// added in a fixed order.
//
// The formulas are evaluated on integers and emitted as code (see BlockOrder.h).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_GPU_PARTORDER_H
#define FSDP_ANALYSIS_GPU_PARTORDER_H

#include "fsdp/Analysis/Gpu/BlockOrder.h"

namespace mlir::fsdp {

struct PartOrder {
  int64_t tiles = 1;     ///< number of tiles of the result
  int64_t steps = 1;     ///< number of steps of a tile; more than parts · partSteps
  int64_t parts = 1;     ///< number of equal parts of a tile
  int64_t partSteps = 1; ///< number of steps of an equal part
  int64_t helpers = 1;   ///< number of blocks that divide the tails; at most tiles · tail()

  /// What a block does for a tile. The block has processed `before` steps of other tiles before.
  template <typename T>
  struct Turn {
    T part, firstStep, steps, before;
  };

  int64_t tail() const { return steps - parts * partSteps; }
  int64_t owners() const { return tiles * parts; } ///< number of blocks that are not helpers
  int64_t blocks() const { return owners() + helpers; }

  /// Return the first tile of a block, and the tile after its last one.
  template <typename Math, typename T>
  T firstTile(Math &m, T block) const {
    return m.select(m.isLower(block, owners()), m.rem(block, tiles),
                    m.div(beginOf(m, helperOf(m, block)), tail()));
  }
  template <typename Math, typename T>
  T endTile(Math &m, T block) const {
    T end = beginOf(m, m.add(helperOf(m, block), 1));
    return m.select(m.isLower(block, owners()), m.add(m.rem(block, tiles), 1),
                    m.div(m.add(end, tail() - 1), tail()));
  }

  template <typename Math, typename T>
  Turn<T> turnAt(Math &m, T block, T tile) const {
    auto isOwner = m.isLower(block, owners());
    T helper = helperOf(m, block), begin = beginOf(m, helper), end = beginOf(m, m.add(helper, 1)),
      first = m.mul(tile, tail());
    T from = m.max(begin, first), to = m.min(end, m.add(first, tail())), part = m.div(block, tiles);
    return {m.select(isOwner, part, m.add(m.sub(helper, helperAt(m, first)), parts)),
            m.select(isOwner, m.mul(part, partSteps), m.add(m.sub(from, first), parts * partSteps)),
            m.select(isOwner, m.i32(partSteps), m.sub(to, from)),
            m.select(isOwner, m.i32(0), m.sub(from, begin))};
  }

  /// Returns the number of parts of a tile.
  template <typename Math, typename T>
  T partsOf(Math &m, T tile) const {
    T first = m.mul(tile, tail()), last = m.add(first, tail() - 1);
    return m.add(m.sub(helperAt(m, last), helperAt(m, first)), parts + 1);
  }
  /// Return the smallest and the largest number of parts of a tile, and the parts of all tiles.
  int64_t leastParts() const;
  int64_t mostParts() const;
  int64_t allParts() const;

private:
  int64_t shortRange() const { return tiles * tail() / helpers; }
  int64_t longRanges() const { return tiles * tail() % helpers; }

  template <typename Math, typename T>
  T helperOf(Math &m, T block) const {
    return m.sub(block, m.i32(owners()));
  }
  /// Returns the first step of a helper, counted over all tails. The first `longRanges()` helpers
  /// have one step more than the others.
  template <typename Math, typename T>
  T beginOf(Math &m, T helper) const {
    return m.add(m.mul(helper, shortRange()), m.min(helper, m.i32(longRanges())));
  }
  /// Returns the helper that has a step of the tails.
  template <typename Math, typename T>
  T helperAt(Math &m, T step) const {
    int64_t border = longRanges() * (shortRange() + 1);
    T rest = m.sub(step, m.i32(border));
    return m.select(m.isLower(step, border), m.div(step, shortRange() + 1),
                    m.add(m.div(rest, shortRange()), longRanges()));
  }
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_GPU_PARTORDER_H
