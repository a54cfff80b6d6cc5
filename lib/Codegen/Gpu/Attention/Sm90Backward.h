//===- Sm90Backward.h - Gradients of attention on wgmma ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the roles of a block of threads have to agree about: where tiles and barriers are, and how
// blocks of queries follow one another.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90BACKWARD_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90BACKWARD_H

#include "KeyScores.h"
#include "Sm90Attention.h"

namespace mlir::fsdp::attention {

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

/// How dK and dV of `op` are cut for wgmma, and whether dQ is; nothing when they are not for it.
std::optional<Sm90Keys> chooseSm90Keys(AttentionGradOp op, const GpuTarget &target);
/// What a block of threads needs: registers of a thread that consumes, an estimate, and bytes of
/// shared memory.
Sm80Needs sm90KeyNeeds(const Sm90Keys &config, const Shape &shape, bool hasMask);
/// Places in scratch for `plan`, which has keysOfGroups.
void placeSm90Scratch(Sm80Backward &plan, const Shape &shape);

/// Writes the entry of dK, dV, and what dQ is made of where `config` says so, and its launch.
void lowerSm90Keys(const Sm80Problem &problem, const Sm90Keys &config, StringRef symbol,
                   ModuleOp entries, GpuKernel &info);

/// lse and δ of each query, and that nobody has added to dQ.
inline constexpr int64_t normThreads = 256;
void emitNorms(GpuBuilder &b, const Sm80Problem &problem);
int64_t normBlocks(const Sm80Problem &problem);
/// dQ from its sums; blocks of 2 · blockQueries threads.
void emitQueriesOfSums(GpuBuilder &b, const Sm80Problem &problem);
int64_t queriesOfSumsBlocks(const Sm80Problem &problem);

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// k of a product, or columns of its sums: as many as a head has.
inline int64_t paddedDim(int64_t dim) { return tile::Sm80Tiles::paddedCols(dim); }

/// The sums of dQ for a block of queries: each consuming warpgroup has some, 64 rows each. Where
/// there are 64 queries, it has a panel of columns; where there are 128, half of the rows. They lie
/// in memory as threads have them, four at a time: those of thread t at 4 · t, 512 apart.
struct QuerySums {
  QuerySums(const Sm90Keys &config, const Shape &shape)
      : byColumns(config.blockQueries == Sm90Builder::groupRows),
        cols(byColumns ? Sm90Builder::panelCols : paddedDim(shape.dim)), groups(config.groups) {}

  bool byColumns;
  int64_t cols, groups; ///< columns of a warpgroup
  int64_t registers() const { return cols / 2; }
  int64_t floatsOfGroup() const { return Sm90Builder::groupRows * cols; }
  int64_t floats() const { return groups * floatsOfGroup(); }
};

/// Where things lie in shared memory, in bytes.
struct Sm90KeyPlaces {
  static constexpr int64_t stages = 2, normBytes = 4;
  /// Barriers in memory: one of a kind, or one for each stage.
  enum Barrier {
    KeysFull = 0,
    QueriesFull = 1,
    QueriesEmpty = 3,
    DoutFull = 5,
    DoutEmpty = 7,
    NumBarriers = 9
  };
  /// Named ones.
  enum Name { Gradients = 1, SumsFull = 2, SumsEmpty = 3 };

  Sm90KeyPlaces(const Sm90Keys &config, const Shape &shape);

  int64_t queryBytes, doutBytes, normsBytes; ///< of one stage
  int64_t keys = 0, values, queries, douts, gradients, sums, lse, delta, barriers;
  int64_t bytes() const { return barriers + NumBarriers * Sm90Builder::barrierBytes; }
};

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

class Sm90KeyRole {
public:
  Sm90KeyRole(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config, KeyScores &scores)
      : b(b), plan(problem.plan), config(config), shape(problem.shape), op(problem.op),
        kernel(problem.kernel), scores(scores), places(config, shape), querySums(config, shape),
        barriers(b.sharedAt(places.barriers)) {}

protected:
  /// A buffer of queries; parity is that of the phase that fills it.
  struct Stage {
    Value index, parity;
  };
  /// Of the number-th block of queries that the block of threads meets.
  Stage stageOf(Value number) {
    return {b.rem(number, Sm90KeyPlaces::stages), b.rem(b.div(number, Sm90KeyPlaces::stages), 2)};
  }
  Value barrier(Sm90KeyPlaces::Barrier which) {
    return b.shiftBytes(barriers, which * Sm90Builder::barrierBytes);
  }
  Value barrier(Sm90KeyPlaces::Barrier which, const Stage &stage) {
    return b.shiftBytes(barrier(which), b.mul(stage.index, Sm90Builder::barrierBytes));
  }
  PanelTile tileOfKeys(int64_t place) { return {b.sharedAt(place), config.blockKeys()}; }
  PanelTile tileOfQueries(int64_t place, int64_t bytes, const Stage &stage) {
    return {b.shiftBytes(b.sharedAt(place), b.mul(stage.index, bytes)), config.blockQueries};
  }
  /// Threads that consume, and with them those of the warp that adds to dQ.
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
  Value barriers; ///< the first of those in memory
};

/// Copies what the others consume; by one thread.
void emitKeyProducer(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config,
                     KeyScores &scores);
/// Adds what the consumers have of dQ to its sums; by one warp.
void emitQueryAdder(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config,
                    KeyScores &scores);
/// Of warpgroup `group` of those that consume.
void emitKeyConsumer(Sm90Builder &b, const Sm80Problem &problem, const Sm90Keys &config,
                     KeyScores &scores, Value group);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM90BACKWARD_H
