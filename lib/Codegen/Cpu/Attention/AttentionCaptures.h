//===- AttentionCaptures.h - Gradients of captured tensors ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONCAPTURES_H
#define FSDP_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONCAPTURES_H

#include "AttentionEmit.h"

namespace mlir::fsdp::attention {

/// How the units of a backward are cut. A unit does the heads that it does not own one after the
/// other.
struct Units {
  bool ownsBatch = true, ownsHead = true;
  int64_t chunks = 1; ///< of the blocks of columns
  int64_t count(const Shape &shape) const {
    return (ownsBatch ? shape.batch : 1) * (ownsHead ? shape.kvHeads : 1) * chunks;
  }
};

/// One `fsdp.contribute`, and where its sums wait.
struct Contribution {
  ContributeOp op;
  unsigned gradient;    ///< of which result
  Dependence where;     ///< on what its place depends
  Type work;            ///< of sums
  Part row, tile, head; ///< in the scratch of a worker: of the row, the tile or block at hand; of
                        ///< the head's rows
  int64_t sharedOffset = 0; ///< of the sums of all heads
};

/// One captured float tensor.
struct Gradient {
  RankedTensorType type;
  Type work;
  bool isPrivate = false;   ///< each unit sums in a table of its own
  bool isDirect = false;    ///< summed in the result itself
  int64_t sharedOffset = 0; ///< of the sum, unless direct
  int64_t tablesOffset = 0; ///< of the private tables
  Value result;
};

/// Plans and emits the sums of what is contributed; see AttentionCaptures.cpp.
class Captures {
public:
  Captures(AttentionGradOp op, func::FuncOp kernel, const Shape &shape);
  bool empty() const { return gradients.empty(); }
  /// Whether sums have to be zero before the units begin.
  bool hasShared() const;

  /// How many units may work side by side, and all memory; `chunks` at most.
  Units chooseUnits(int64_t chunks);
  void takeParts(Plan &plan, const Units &units, int64_t paddedRows);

  /// Phases: before the units, and after them.
  void emitClear(Emitter &e);
  void emitFinish(Emitter &e, KeptFunction &grad, const Units &units);

  //===--- Inside a unit ---------------------------------------------------===//
  void beginUnit(Emitter &e, Value unit);
  void beginHead(Emitter &e, Value group);
  void beginBlock(Emitter &e, const Head &head, Value group);
  void beginTile(Emitter &e);
  void endRow(Emitter &e);
  /// Adds what is contributed at a site; `keep`: the lanes that count, null for all.
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
