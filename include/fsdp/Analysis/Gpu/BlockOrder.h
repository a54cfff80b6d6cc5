//===- BlockOrder.h - Blocks of threads on multiprocessors ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A GPU starts the blocks of threads of a launch in ascending order. It starts each block as soon
// as a slot of a multiprocessor is free:
//
//   slot 0   | 0     | 3      |            list scheduling: the launch ends with its last block
//   slot 1   | 1   | 2 | 4       |
//
// A formula computes which tiles a block of an attention kernel processes. AttentionOrder.cpp
// evaluates the formula on integers, and Codegen emits it as code. For each arithmetic operation,
// the formula calls a method of its parameter `m`. `m` is an Integers object, which computes
// numbers, or a CodeBuilder object, which emits code.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_GPU_BLOCKORDER_H
#define FSDP_ANALYSIS_GPU_BLOCKORDER_H

#include "llvm/ADT/ArrayRef.h"
#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

namespace mlir::fsdp {

/// A step of a block of threads. At its end, the step may add a value to a sum in memory. If
/// several steps add to the same sum, the order of their additions is fixed.
struct BlockStep {
  double cycles = 0;  ///< cycles of the step, without waiting time
  int64_t sum = -1;   ///< index of the sum, or -1 if the step adds to no sum
  int64_t before = 0; ///< number of earlier steps that add to the sum `sum`
  /// The step loads the sum before its end, instead of adding to it.
  bool isLast = false;
};

/// Simulates a launch whose blocks begin in ascending order.
class BlockScheduler {
public:
  /// At most `slots` blocks run at the same time. An addition to a sum takes `addCycles` cycles,
  /// and to load a sum takes `loadCycles`. During this time, another step of the block runs: the
  /// next one or, for loads, the same.
  explicit BlockScheduler(int64_t slots, double addCycles = 0, double loadCycles = 0);

  /// Appends the next block of threads to the launch. Returns false if one of its steps must wait
  /// for a step of a later block. A launch with such a wait hangs if no slot becomes free for the
  /// later block.
  [[nodiscard]] bool add(llvm::ArrayRef<BlockStep> steps);
  /// Appends a block that takes `cycles` cycles and never waits for other blocks.
  void add(double cycles) { (void)add(BlockStep{cycles}); }

  double end() const { return last; } ///< cycles until the last block has ended
  /// Sum of the cycles of all blocks, without the cycles for which they wait for other blocks.
  double busy() const { return work; }
  double waits() const { return idle; } ///< sum of the cycles for which blocks wait
  /// Returns busy() / (slots · end()), which is 1 if all slots are busy until the end.
  double efficiency() const;

private:
  struct Sum {
    int64_t added = 0; ///< number of additions to the sum so far
    double end = 0;    ///< cycle in which the last addition to the sum ends
  };
  int64_t slots;
  double addCycles, loadCycles;
  std::priority_queue<double, std::vector<double>, std::greater<double>> free;
  std::vector<Sum> sums;
  double last = 0, work = 0, idle = 0;
};

/// Computes with integers. The methods have the same names as the methods of CodeBuilder.
struct Integers {
  int64_t i32(int64_t value) const { return value; }
  int64_t add(int64_t a, int64_t b) const { return a + b; }
  int64_t sub(int64_t a, int64_t b) const { return a - b; }
  int64_t mul(int64_t a, int64_t b) const { return a * b; }
  int64_t div(int64_t a, int64_t b) const { return a / b; }
  int64_t rem(int64_t a, int64_t b) const { return a % b; }
  int64_t min(int64_t a, int64_t b) const { return std::min(a, b); }
  int64_t max(int64_t a, int64_t b) const { return std::max(a, b); }
  bool isEqual(int64_t a, int64_t b) const { return a == b; }
  bool isLower(int64_t a, int64_t b) const { return a < b; }
  int64_t select(bool condition, int64_t a, int64_t b) const { return condition ? a : b; }
};

/// Order in which the blocks of threads of a launch process the tiles of queries. A tile is a block
/// of rows of one head. Either a launch has `blocks` blocks of threads, which run from its begin to
/// its end and each process one tile per round; or it has a block of threads for each tile, and one
/// round.
///
/// - sections: The launch processes one section of `together` heads after another. Each section
///   begins with the last row blocks of its heads, which visit the most keys under a causal mask.
///   In odd rounds, the block of threads with the highest number gets the first tile.
/// - pairs: In two consecutive rounds, a block of threads processes row block rowBlocks - 1 - j of
///   head 2i, and then row block j of head 2i + 1. The numbers i and j depend on the block of
///   threads and the rounds. Under a causal mask, the work of both rounds together is always equal.
struct QueryOrder {
  int64_t heads = 1;     ///< number of heads in all batches; heads that share keys are consecutive
  int64_t rowBlocks = 1; ///< number of row blocks per head
  int64_t blocks = 1;    ///< number of blocks of threads; at most tiles()
  int64_t together = 1;  ///< number of heads per section; divides `heads`
  bool pairs = false;    ///< true for `pairs` (`heads` must be even), false for `sections`

  template <typename T>
  struct Tile {
    T head, rowBlock;
  };

  int64_t tiles() const { return heads * rowBlocks; }

  /// Returns the number of rounds in which `block` has a tile.
  template <typename Math, typename T>
  T rounds(Math &m, T block) const {
    int64_t turns = pairs ? tiles() / 2 : tiles(), unit = pairs ? 2 : 1, full = turns / blocks,
            rest = turns % blocks;
    T rounds = m.i32(full * unit);
    if (!rest)
      return rounds;
    T place = !pairs && full % 2 ? m.sub(m.i32(blocks - 1), block) : block;
    return m.select(m.isLower(place, rest), m.i32((full + 1) * unit), rounds);
  }

  /// Returns the tile that `block` processes in `round`.
  template <typename Math, typename T>
  Tile<T> tileAt(Math &m, T block, T round) const {
    auto isEven = m.isEqual(m.rem(round, 2), 0);
    if (pairs) {
      T number = m.add(m.mul(m.div(round, 2), blocks), block), j = m.rem(number, rowBlocks),
        head = m.mul(m.div(number, rowBlocks), 2);
      return {m.select(isEven, head, m.add(head, 1)),
              m.select(isEven, m.sub(m.i32(rowBlocks - 1), j), j)};
    }
    T place = m.select(isEven, block, m.sub(m.i32(blocks - 1), block)),
      number = m.add(m.mul(round, blocks), place);
    T section = m.div(number, rowBlocks * together), within = m.rem(number, rowBlocks * together);
    return {m.add(m.mul(section, together), m.rem(within, together)),
            m.sub(m.i32(rowBlocks - 1), m.div(within, together))};
  }
};

/// Order in which the blocks of threads of a launch process the blocks of keys and add to the
/// gradients of queries. The query heads of a kv head are divided into `parts` equal parts. A block
/// of threads processes one or two blocks of keys for one of these parts:
///
/// - single: A block of threads processes one block of keys. The blocks of keys of a head are in
///   descending order.
/// - pairs: Each part of a pair of heads has `keyBlocks` blocks of threads. The one with number c
///   first processes the keys of block keyBlocks - 1 - c of one head, and then the keys of block c
///   of the other head. Under a causal mask, all blocks of threads have equal work.
///
/// Several blocks of threads can add to the gradients of one block of queries. They add in the
/// ascending order of their numbers. The second block of keys of a pair visits the blocks of
/// queries in descending order. Under a causal mask, each block of threads therefore begins with
/// queries for which the previous block of threads has just finished its addition. No block of
/// threads then waits for a later one. Without a mask, all blocks of threads of a head begin with
/// the same queries, so each waits for all earlier ones. `together` consecutive blocks of threads
/// belong to different heads (or pairs of heads). Therefore, fewer of the blocks of threads that
/// begin at the same time belong to the same head.
struct KeyOrder {
  int64_t kvHeads = 1;   ///< number of kv heads in all batches
  int64_t keyBlocks = 1; ///< number of blocks of keys per head
  int64_t parts = 1;     ///< number of parts into which the query heads of a kv head are divided
  bool pairs = false;
  int64_t together = 1; ///< number of consecutive blocks with different heads; divides units()
  /// True for `single` with ascending blocks of keys. Valid only if no block adds to gradients of
  /// queries.
  bool reversed = false;

  template <typename T>
  struct Place {
    T part, kvHead, keyBlock;
  };

  /// Returns the number of kv heads or, for `pairs`, the number of pairs of kv heads. If `kvHeads`
  /// is odd, head 0 forms a pair without a second head.
  int64_t units() const { return pairs ? (kvHeads + 1) / 2 : kvHeads; }
  int64_t blocks() const { return parts * units() * keyBlocks; }
  int64_t mostTurns() const { return pairs && kvHeads > 1 ? 2 : 1; }

  /// Returns the number of turns of a block of threads, which processes one block of keys per turn.
  template <typename Math, typename T>
  T turns(Math &m, T block) const {
    if (mostTurns() == 1 || kvHeads % 2 == 0)
      return m.i32(mostTurns());
    return m.select(m.isEqual(unitOf(m, block), 0), m.i32(1), m.i32(2));
  }

  /// Returns the part, the kv head and the number of the block of keys that a block of threads
  /// processes in turn `turn`, which is 0 or 1.
  template <typename Math, typename T>
  Place<T> placeAt(Math &m, T block, T turn) const {
    T part = m.div(block, units() * keyBlocks), unit = unitOf(m, block),
      c = m.div(m.rem(block, together * keyBlocks), together),
      last = m.sub(m.i32(keyBlocks - 1), c);
    if (mostTurns() == 1)
      return {part, unit, reversed ? c : last};
    auto isFirst = m.isEqual(turn, 0);
    T head = m.mul(unit, 2), first = head, second = m.add(head, 1);
    if (kvHeads % 2) {
      first = m.max(m.sub(head, m.i32(1)), m.i32(0));
      second = head;
    }
    return {part, m.select(isFirst, first, second), m.select(isFirst, last, c)};
  }

private:
  template <typename Math, typename T>
  T unitOf(Math &m, T block) const {
    T within = m.rem(block, units() * keyBlocks);
    return m.add(m.mul(m.div(within, together * keyBlocks), together), m.rem(within, together));
  }
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_GPU_BLOCKORDER_H
