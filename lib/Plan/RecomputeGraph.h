//===- RecomputeGraph.h - Calls that the backward can repeat ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_RECOMPUTEGRAPH_H
#define FSDP_PLAN_RECOMPUTEGRAPH_H

#include "fsdp/Analysis/Aliasing.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::fsdp {

/// The kernel calls of the forward in one block. RecomputeGraph.cpp describes where the forward
/// ends.
class RecomputeGraph {
public:
  struct Call {
    KernelCallOp op;
    /// Number of the unit that the call belongs to, in order.
    unsigned segment = 0;
    /// Whether its results are read by other segments; they are always kept.
    bool isBoundary = false;
    /// Whether a result is read after the moment.
    bool isSaved = false;
    /// Bytes of the results that are read after the moment; bytes of all results.
    int64_t savedBytes = 0, bytes = 0;
    /// Calls of the forward whose results it reads.
    SmallVector<unsigned, 4> producers;
  };

  RecomputeGraph(Block &block, Aliasing &aliasing);

  ArrayRef<Call> getCalls() const { return calls; }
  unsigned getNumSegments() const { return segments; }
  /// Returns true if the call may be computed again. Calls of the last segment may not: its
  /// backward begins at once.
  bool isCandidate(unsigned call) const {
    return !calls[call].isBoundary && calls[call].segment + 1 < segments;
  }
  /// Returns the bytes that wait for the backward if the `recomputed` calls are computed again.
  int64_t getSavedBytes(const llvm::BitVector &recomputed) const;
  /// Returns the calls of `recomputed` that have to be computed again because a result of theirs is
  /// read.
  llvm::BitVector getNeeded(const llvm::BitVector &recomputed) const;

  /// Lets the backward read copies of the `recomputed` calls. The graph is invalid afterwards.
  void apply(const llvm::BitVector &recomputed);

private:
  void findMoment();
  void findCalls();
  void findSegments();
  void findUses();
  StringRef getUnit(KernelCallOp call);
  bool isGradient(Value base);
  template <typename Visitor>
  void visitUses(Value base,
                 Visitor visit); // visits uses of the value and its views, at the op of this block

  Value remap(Value value, const llvm::BitVector &recomputed);
  Value remapParameter(UnshardOp unshard, unsigned result);
  void moveBefore(Operation *op, Operation *place);

  Block &block;
  Aliasing &aliasing;
  SmallVector<Operation *> ops;
  DenseMap<Operation *, unsigned> positions;
  unsigned moment = 0; // number of the op after which most is saved
  SmallVector<Call> calls;
  DenseMap<Operation *, unsigned> numbers; // numbers of calls
  unsigned segments = 0;

  // State of apply().
  DenseMap<Value, Value> remapped;
  Operation *place = nullptr;
};

} // namespace mlir::fsdp

#endif // FSDP_PLAN_RECOMPUTEGRAPH_H
