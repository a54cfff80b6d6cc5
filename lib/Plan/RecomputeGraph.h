//===- RecomputeGraph.h - What the backward may compute again ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_RECOMPUTEGRAPH_H
#define FSDP_PLAN_RECOMPUTEGRAPH_H

#include "fsdp/Analysis/Aliasing.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::fsdp {

/// The kernel calls of the forward in one block: those before the moment at which most of their
/// results wait for a later reader.
class RecomputeGraph {
public:
  struct Call {
    KernelCallOp op;
    /// Calls that belong to the same unit, one after another.
    unsigned segment = 0;
    /// Its results are what segments hand to each other: always kept.
    bool isBoundary = false;
    /// After the moment someone reads a result.
    bool isSaved = false;
    /// Of the results that someone reads then; of all results.
    int64_t savedBytes = 0, bytes = 0;
    /// Calls of the forward whose results it reads.
    SmallVector<unsigned, 4> producers;
  };

  RecomputeGraph(Block &block, Aliasing &aliasing);

  ArrayRef<Call> getCalls() const { return calls; }
  unsigned getNumSegments() const { return segments; }
  /// Calls that may be computed again: none of the last segment, whose backward begins at once.
  bool isCandidate(unsigned call) const {
    return !calls[call].isBoundary && calls[call].segment + 1 < segments;
  }
  /// Bytes that wait for the backward when `recomputed` calls are computed again.
  int64_t getSavedBytes(const llvm::BitVector &recomputed) const;
  /// The calls of `recomputed` that are computed again in the end: whose results someone needs.
  llvm::BitVector getNeeded(const llvm::BitVector &recomputed) const;

  /// Computes `recomputed` calls again where the backward reads their results. The graph is not
  /// valid after it.
  void apply(const llvm::BitVector &recomputed);

private:
  void findMoment();
  void findCalls();
  void findSegments();
  void findUses();
  StringRef getUnit(KernelCallOp call);
  bool isGradient(Value base);
  template <typename Visitor>
  void visitUses(Value base, Visitor visit); // of it and its views, at the op of this block

  Value remap(Value value, const llvm::BitVector &recomputed);
  Value remapParameter(UnshardOp unshard, unsigned result);
  void moveBefore(Operation *op, Operation *place);

  Block &block;
  Aliasing &aliasing;
  SmallVector<Operation *> ops;
  DenseMap<Operation *, unsigned> positions;
  unsigned moment = 0; // the op after which most is saved
  SmallVector<Call> calls;
  DenseMap<Operation *, unsigned> numbers; // of calls
  unsigned segments = 0;

  // While it is applied.
  DenseMap<Value, Value> remapped;
  Operation *place = nullptr;
};

} // namespace mlir::fsdp

#endif // FSDP_PLAN_RECOMPUTEGRAPH_H
