//===- AttentionCaptures.h - Gradients of captured tensors ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONCAPTURES_H
#define FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONCAPTURES_H

#include "AttentionEmit.h"

namespace mlir::fsdp::attention {

/// Describes how the backward pass is divided into units of work. If `ownsBatch` is false, each
/// unit processes all batches one after another. If `ownsHead` is false, each unit processes all
/// heads one after another.
struct Units {
  bool ownsBatch = true, ownsHead = true;
  int64_t chunks = 1; ///< number of chunks into which the blocks of columns are divided
  int64_t count(const Shape &shape) const {
    return (ownsBatch ? shape.batch : 1) * (ownsHead ? shape.kvHeads : 1) * chunks;
  }
};

/// One op `fsdp.contribute`, and the memory of the partial sums of its contributions.
struct Contribution {
  ContributeOp op;
  unsigned gradient; ///< index into `gradients` of the gradient to which `op` adds
  Dependence where;  ///< arguments on which the indices of `op` depend
  Type work;         ///< type of the sums
  // Parts of a worker's scratch: `row` holds the sums of a row, `tile` holds the sums of a tile or
  // block, and `head` holds the sums of a head.
  Part row, tile, head;
  int64_t sharedOffset = 0; ///< offset of the sums of all heads in the shared scratch
};

/// The gradient of one captured float tensor.
struct Gradient {
  RankedTensorType type;
  Type work;
  bool isPrivate = false;   ///< true if each unit has its own table of sums
  bool isDirect = false;    ///< true if the sums are stored in the result's buffer
  int64_t sharedOffset = 0; ///< offset of the sums in the shared scratch, unless isDirect
  int64_t tablesOffset = 0; ///< offset of the private tables in the shared scratch
  Value result;
};

/// Plans and emits the sums of contributions; see AttentionCaptures.cpp.
class Captures {
public:
  Captures(AttentionGradOp op, func::FuncOp kernel, const Shape &shape);
  bool empty() const { return gradients.empty(); }
  /// Returns true if some sums must be cleared before the units run.
  bool hasShared() const;

  /// Chooses the division into units that may run in parallel, with at most `chunks` chunks of
  /// columns. Also decides which gradients have private tables.
  Units chooseUnits(int64_t chunks);
  /// Reserves the scratch of all sums in `plan`.
  void takeParts(Plan &plan, const Units &units, int64_t paddedRows);

  /// Emit the phases that run before the units (emitClear()) and after them (emitFinish()).
  void emitClear(Emitter &e);
  void emitFinish(Emitter &e, KeptFunction &grad, const Units &units);

  //===--- Inside a unit ---------------------------------------------------===//
  void beginUnit(Emitter &e, Value unit);
  void beginHead(Emitter &e, Value group);
  void beginBlock(Emitter &e, const Head &head, Value group);
  void beginTile(Emitter &e);
  void endRow(Emitter &e);
  /// Adds the contributions of the score elements at `site`. `keep` is the mask of the lanes to
  /// add, or null for all lanes.
  void add(Emitter &e, KeptFunction &grad, const tile::Site &site,
           tile::ScoreFunction::Values &known, Value keep, Value unit, Value group, Value row);
  void endTile(Emitter &e, Value group);
  void endBlock(Emitter &e, const Head &head, Value firstCol, Value cols);
  void endHead(Emitter &e, const Head &head, Value group, Value chunk);

private:
  Pointer sumOf(Emitter &e, const Gradient &gradient);
  Pointer tableOf(Emitter &e, const Gradient &gradient, Value unit);
  Pointer sharedAt(Emitter &e, int64_t offset, Type type);
  Pointer totals(Emitter &e, const Contribution &c, const Head &head, Value chunk, int64_t count);
  void addToTable(Emitter &e, KeptFunction &grad, const Contribution &c, const tile::Site &site,
                  tile::ScoreFunction::Values &known, Value value, Value keep, Value unit);
  void addInto(CodeBuilder &b, const Pointer &place, Value value);
  void clear(Emitter &e, const Pointer &place, int64_t count, Type type);

  AttentionGradOp op;
  func::FuncOp kernel;
  const Shape &shape;
  SmallVector<Gradient> gradients;
  SmallVector<Contribution> contributions;
  int64_t chunks = 1, paddedRows = 0;
};

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONCAPTURES_H
