//===- Sm90Backward.h - Backward pass with wgmma ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares what the roles (producer, adder and consumers) of a block of threads share: the layout
// of tiles and barriers, and the order of the blocks of queries.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90BACKWARD_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90BACKWARD_H

#include "KeyScores.h"
#include "Sm90Attention.h"

namespace mlir::fsdp::attention {

/// Returns the tiling of the kernel with wgmma that computes dK and dV of `op`, or nothing if wgmma
/// cannot be used.
std::optional<Sm90Keys> chooseSm90Keys(AttentionGradOp op, const GpuTarget &target);
/// Returns the tiling of the kernel with wgmma that adds contributions to tables, or nothing if
/// none fits. chooseSm90Keys() must have returned a tiling.
std::optional<Sm90Keys> chooseSm90Tables(AttentionGradOp op, const GpuTarget &target);
/// Returns the estimated number of registers of a consumer thread, and the number of bytes of
/// shared memory.
Sm80Needs sm90KeyNeeds(const Sm90Keys &config, const Shape &shape, bool hasMask);
/// Sets the offsets in the scratch of `plan`. The members keysOfGroups and order of `plan` must
/// already be set.
void placeSm90Scratch(Sm80Backward &plan, const Shape &shape);

/// Emits the entry that computes dK and dV, and the launch of the entry. If config.addsToQ is true,
/// the entry also adds its part of dQ to the sums of dQ.
void lowerSm90Keys(const Sm80Problem &problem, const Sm90Keys &config, StringRef symbol,
                   ModuleOp entries, GpuKernel &info);

/// Emits the code that computes lse and δ of each query, sets the counts of additions to zero, and
/// sets dQ of queries without keys to zero.
inline constexpr int64_t normThreads = 256;
void emitNorms(GpuBuilder &b, const Sm80Problem &problem);
int64_t normBlocks(const Sm80Problem &problem);

/// Returns `dim`, a head dimension, rounded up to a multiple of 16.
inline int64_t paddedDim(int64_t dim) { return tile::Sm80Tiles::paddedCols(dim); }

/// The layout of the sums of dQ for one block of queries. If a block has 64 queries, each consumer
/// warpgroup holds all rows of one panel of columns. If a block has 128 queries, each consumer
/// warpgroup holds half of the rows. If warpgroups share keys, they process the panels in slices of
/// one panel per warpgroup, and there may be fewer panels in the last slice. The sums are stored in
/// groups of four: thread t of a warpgroup stores its group i at 512 · i + 4 · t.
struct QuerySums {
  QuerySums(const Sm90Keys &config, const Shape &shape)
      : byColumns(config.blockQueries == Sm90Builder::groupRows), trims(config.sharesKeys),
        groups(config.groups), dim(paddedDim(shape.dim)),
        slices(trims ? llvm::divideCeil(panelsOf(dim), groups) : 1) {}

  bool byColumns, trims; ///< trims: the last panel has only the columns that exist
  int64_t groups, dim, slices;

  /// Returns the first column of `slice`, or the number of columns after the last slice.
  int64_t firstCol(int64_t slice) const {
    return std::min(slice * groups * Sm90Builder::panelCols, dim);
  }
  /// Returns the number of columns of `slice` that a warpgroup holds.
  int64_t colsOf(int64_t slice, int64_t group) const {
    int64_t first = firstCol(slice) + group * Sm90Builder::panelCols;
    return !byColumns ? dim
           : trims    ? std::clamp<int64_t>(dim - first, 0, Sm90Builder::panelCols)
                      : Sm90Builder::panelCols;
  }
  int64_t registers() const { return colsOf(0, 0) / 2; }
  /// Return the place of a warpgroup's sums in a slice, the number of sums of a slice, and of all
  /// slices before `slice`.
  int64_t placeOfGroup(int64_t group) const {
    return group * Sm90Builder::groupRows * colsOf(0, 0);
  }
  int64_t floatsOf(int64_t slice) const {
    int64_t cols = 0;
    for (int64_t group = 0; group < groups; ++group)
      cols += colsOf(slice, group);
    return Sm90Builder::groupRows * cols;
  }
  int64_t floatsBefore(int64_t slice) const { return slice ? slice * floatsOf(0) : 0; }
  int64_t floats() const { return floatsBefore(slices - 1) + floatsOf(slices - 1); }
};

/// Offsets in shared memory, in bytes.
struct Sm90KeyPlaces {
  static constexpr int64_t stages = 2, normBytes = 4;
  /// Indices of the mbarriers. A kind of barrier has either one barrier, or one barrier for each
  /// stage (buffer).
  enum Barrier {
    KeysFull = 0,
    QueriesFull = 1,
    QueriesEmpty = 3,
    DoutFull = 5,
    DoutEmpty = 7,
    KeysEmpty = 9,
    SumsLoaded = 10,
    NumBarriers = 11
  };
  /// Named barriers.
  enum Name { Gradients = 1, SumsFull = 2, SumsEmpty = 3 };
  /// What a block of keys does with its dQ of a block of queries: it adds dQ to the sums or, if it
  /// is the last, rounds the sums with dQ, or dQ alone.
  enum Visit { Adds = 0, RoundsSums = 1, RoundsAlone = 2 };

  Sm90KeyPlaces(const Sm90Keys &config, const Shape &shape);

  int64_t queryBytes, doutBytes, normsBytes, gradientBytes; ///< bytes of one stage
  /// `weights` and `gradients` hold P and dS; `rounded` is `sums` if warpgroups share keys.
  int64_t keys = 0, values, queries, douts, weights, gradients, sums, rounded, lse, delta, barriers;
  int64_t visit, loads; ///< an i32 each: the kind of the next visit, the number of loaded sums
  int64_t rowSums;      ///< for each contribution summed by query, an f32 per warp and query
  int64_t end;
  int64_t bytes() const { return end; }
};

/// The tensor maps of the launch, in this order. There is no map of dQ if dQ is not returned.
struct Sm90KeyMaps {
  explicit Sm90KeyMaps(const Sm80Problem &problem)
      : q(problem.kernel, AttentionGradOp(problem.op).getQ(), 0),
        dout(problem.kernel, AttentionGradOp(problem.op).getDout(), 1),
        k(problem.kernel, AttentionGradOp(problem.op).getK(), 2),
        v(problem.kernel, AttentionGradOp(problem.op).getV(), 3),
        dq(problem.kernel, AttentionGradOp(problem.op).getDq(), 4) {}
  HeadMap q, dout, k, v, dq;
};

class Sm90KeyRole {
public:
  Sm90KeyRole(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config, KeyScores &scores)
      : b(b), plan(problem.plan), config(config), shape(problem.shape), op(problem.op),
        kernel(problem.kernel), scores(scores), places(config, shape), querySums(config, shape),
        maps(problem), base(b.sharedAt(0)),
        roundsQueries(config.addsToQ && !op.getDq().use_empty()) {}

protected:
  /// The number of a buffer for queries (`index`), and the parity of the barrier phase in which the
  /// buffer is filled.
  struct Stage {
    Value index, parity;
  };
  /// Returns the buffer for the `number`-th block of queries that the block of threads visits.
  Stage stageOf(Value number, int64_t stages = Sm90KeyPlaces::stages) {
    if (stages == 1)
      return {b.i32(0), b.rem(number, 2)};
    return {b.rem(number, stages), b.rem(b.div(number, stages), 2)};
  }
  /// Returns the buffer for dO of this block of queries, whose other buffers are `queries`.
  Stage doutStageOf(Value number, const Stage &queries) {
    return config.doutStages == Sm90KeyPlaces::stages ? queries
                                                      : stageOf(number, config.doutStages);
  }
  Value barrier(Sm90KeyPlaces::Barrier which) {
    return sharedAt(places.barriers + which * Sm90Builder::barrierBytes);
  }
  Value barrier(Sm90KeyPlaces::Barrier which, const Stage &stage) {
    return b.shiftBytes(barrier(which), b.mul(stage.index, Sm90Builder::barrierBytes));
  }
  Value sharedAt(int64_t place) { return b.shiftBytes(base, place); }
  PanelTile tileOfKeys(int64_t place) { return {sharedAt(place), config.blockKeys()}; }
  PanelTile tileOfQueries(int64_t place, int64_t bytes, const Stage &stage) {
    return {b.shiftBytes(sharedAt(place), b.mul(stage.index, bytes)), config.blockQueries};
  }
  /// A block of threads processes up to two blocks of keys, one after the other. Selects the first
  /// (`turn` is 0) or second (`turn` is 1) of these blocks of keys. `block` is the index of the
  /// block of threads.
  void place(Value block, Value turn);
  /// Emits body(turn, carried) for each block of keys of this block of threads, and returns the
  /// carried values. The initial values are `first`. If `unrolls` is true, the body is emitted once
  /// for each turn, without a loop. Roles with few registers unroll, because they have no registers
  /// for the variables of a loop.
  SmallVector<Value> forEachBlock(ValueRange first, bool unrolls,
                                  function_ref<CodeBuilder::Carried(Value, ValueRange)> body);
  /// Emits body(head, carried) for each query head of this part. `head` is the number of the query
  /// head among the heads that share the keys.
  SmallVector<Value> forEachHead(ValueRange first,
                                 function_ref<CodeBuilder::Carried(Value, ValueRange)> body);
  /// Return numbers of threads: consumers() counts the threads of all consumers, and withAdder()
  /// also counts the threads of the warp that adds to dQ.
  int64_t consumers() const { return config.groups * Sm90Builder::groupThreads; }
  int64_t withAdder() const { return consumers() + 32; }

  Sm90Builder &b;
  const Sm80Backward &plan;
  const Sm90Keys &config;
  const Shape &shape;
  AttentionGradOp op;
  func::FuncOp kernel;
  KeyScores &scores;
  const Sm90KeyPlaces places;
  const QuerySums querySums;
  const Sm90KeyMaps maps;
  Value base;               ///< address of the shared memory
  const bool roundsQueries; ///< true if dQ is a result
  Value part; ///< number of the part of the query heads; null if there is only one part
};

/// Emits the code of the producer, which copies tiles for the consumers. One thread runs this code.
void emitKeyProducer(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config,
                     KeyScores &scores);
/// Emits the code of the warp that adds the consumers' parts of dQ to the sums of dQ in scratch.
void emitQueryAdder(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config,
                    KeyScores &scores);
/// Emits the code of the consumer warpgroups. `group` is the number of a thread's warpgroup.
void emitKeyConsumer(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config,
                     KeyScores &scores, Value group);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90BACKWARD_H
