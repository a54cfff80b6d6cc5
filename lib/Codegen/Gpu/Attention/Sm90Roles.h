//===- Sm90Roles.h - Roles of the forward pass with wgmma -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares what the producer and the consumers share: the layout of tiles and barriers, and the
// order in which blocks are visited. A block of threads visits blocks of queries and, for each
// block of queries, blocks of keys.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ROLES_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ROLES_H

#include "Sm80Blocks.h"
#include "Sm90Attention.h"
#include "fsdp/Analysis/Gpu/BlockOrder.h"

namespace mlir::fsdp::attention {

/// Returns the number of columns that O has in products. The number is a multiple of 16.
inline int64_t paddedValueDim(const Shape &shape) { return llvm::alignTo(shape.valueDim, 16); }
/// Returns the number of values of k in the products that compute scores.
inline int64_t paddedDim(const Shape &shape) { return llvm::alignTo(shape.dim, 16); }

/// Offsets in shared memory, in bytes.
///
///   16 bits    Q | K[stages] | V[stages] | O
///   f32        Q | K[stages] | Vᵀ[stages] | V        with splits, a stage holds high and low parts
class Sm90Places {
public:
  static constexpr int64_t mostStages = 2;
  /// Indices of the mbarriers. A kind of barrier has either one barrier, or one barrier for each
  /// stage (buffer). A phase of a Full barrier ends when all bytes have arrived. A phase of an
  /// Empty barrier ends when all consumers have finished reading the buffer.
  enum Barrier {
    QueriesFull = 0,
    QueriesEmpty = 1,
    KeysFull = 2,
    KeysEmpty = 4,
    ValuesFull = 6,
    ValuesEmpty = 8,
    KeysCopied = 10, ///< end when K or V have been copied, before factors are computed from them
    ValuesCopied = 12,
    ValuesTaken = 13, ///< ends when the factors have been computed from V
    NumBarriers = 14
  };

  Sm90Places(const Sm90Config &config, const Shape &shape);

  int64_t queries = 0, keys, values, output, barriers;
  int64_t copiedValues;                     ///< f32: the tile of V that has been copied
  int64_t queryBytes, keyBytes, valueBytes; ///< bytes of one tile
  int64_t factorBytes;                      ///< bytes of one part of a tile of V as a factor
  int64_t bytes() const {
    return barriers + (isWide ? NumBarriers : KeysCopied) * Sm90Builder::barrierBytes;
  }

private:
  bool isWide;
};

/// The data that all functions that emit an entry read.
struct Sm90Problem {
  const Sm90Config &config;
  const Shape &shape;
  mutable AttentionOp op;
  func::FuncOp kernel;
  QueryOrder order;   ///< order of the blocks of queries
  HeadMap q, k, v, o; ///< the maps of the launch; there is no map of O if O is not returned
  SmallVector<TileRange> ranges;
  Sm90Places places;

  /// Returns true if there may be blocks of keys without masked elements.
  bool leavesFree() const;
  /// Returns true if O is stored by its tensor map. O in f32 is stored from registers.
  bool storesBoxes() const { return o.exists() && !config.isWide; }
};

/// A block of queries of one head.
struct QueryTile {
  Head head;
  /// 32-bit numbers of the query head and of the kv head; the heads of all batches are counted.
  Value number, kvNumber;
  Value firstRow, endRow;
};

/// The sequence of blocks of keys that a block of queries visits: first the blocks with masked
/// elements, then the others.
class KeySequence {
public:
  KeySequence(Sm90Builder &b, const Sm90Problem &problem, const FragmentFunction &mask,
              const QueryTile &tile);

  Value count;       ///< number of blocks; 1 if all elements are masked
  Value maskedCount; ///< number of blocks with masked elements

  /// Returns the number of the block at position `turn` of the sequence.
  Value at(Value turn) const;

private:
  Sm90Builder &b;
  SmallVector<BlockRun> runs;
  int64_t last;
  Value isEmpty;
};

/// A position in a ring of buffers.
struct Stage {
  Value index, parity; ///< number of the buffer, and parity of the phase in which it is filled
};

/// Emits code that the producer and the consumers have in common.
class Sm90Role {
public:
  Sm90Role(Sm90Builder &b, const Sm90Problem &problem)
      : b(b), problem(problem), config(problem.config), shape(problem.shape),
        barriers(b.sharedAt(problem.places.barriers)) {}

protected:
  /// Emits body(tile, t, k) for each tile of this block of threads. Before this tile, `t` tiles and
  /// `k` blocks of keys were visited at run time. The body returns the number of blocks of keys
  /// that were visited up to the end of this tile.
  void forEachTile(function_ref<Value(const QueryTile &, Value, Value)> body);
  Value barrier(Sm90Places::Barrier which) {
    return b.shiftBytes(barriers, which * Sm90Builder::barrierBytes);
  }
  Value barrier(Sm90Places::Barrier which, const Stage &stage) {
    return b.shiftBytes(barrier(which), b.mul(stage.index, Sm90Builder::barrierBytes));
  }
  PanelTile queries() { return {b.sharedAt(problem.places.queries), config.blockRows()}; }
  PanelTile keys(const Stage &stage);
  PanelTile values(const Stage &stage);
  /// Returns the buffer for the `number`-th block of keys that the block of threads visits.
  Stage stageOf(Value number, int64_t stages) {
    return {b.rem(number, stages), b.rem(b.div(number, stages), 2)};
  }
  Stage keyStage(Value number) { return stageOf(number, config.keyStages); }
  Stage valueStage(Value number) { return stageOf(number, config.valueStages); }

  Sm90Builder &b;
  const Sm90Problem &problem;
  const Sm90Config &config;
  const Shape &shape;
  Value barriers; ///< address of the first barrier

private:
  QueryTile tileAt(Value block, Value round);
};

/// Emits the code of consumer warpgroup `group`.
void emitConsumer(Sm90Builder &b, const Sm90Problem &problem, Value group);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90ROLES_H
