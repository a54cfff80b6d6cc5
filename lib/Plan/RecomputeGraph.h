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

/// Describes the kernel calls of the forward in one block. For each call, contains the other calls
/// whose results the call reads. The comment at the top of RecomputeGraph.cpp defines where the
/// forward ends.
class RecomputeGraph {
public:
  struct Call {
    KernelCallOp op;
    /// Index of the call's segment, in program order.
    unsigned segment = 0;
    /// True if another segment, or an op of the forward that is no kernel call, reads results of
    /// the call. Such a call is never recomputed.
    bool isBoundary = false;
    /// True if a result of the call is read after the moment (the end of the forward).
    bool isSaved = false;
    /// Bytes of the results that are read after the moment, and of all results.
    int64_t savedBytes = 0, bytes = 0;
    /// Calls of the forward whose results this call reads.
    SmallVector<unsigned, 4> producers;
  };

  RecomputeGraph(Block &block, Aliasing &aliasing);

  ArrayRef<Call> getCalls() const { return calls; }
  unsigned getNumSegments() const { return segments; }
  /// Returns true if the call may be computed again. Calls of the last segment are no candidates,
  /// because the backward of the last segment begins directly after that segment.
  bool isCandidate(unsigned call) const {
    return !calls[call].isBoundary && calls[call].segment + 1 < segments;
  }
  /// Returns the number of bytes of the forward's results that must be kept for the backward if the
  /// calls in `recomputed` are computed again.
  int64_t getSavedBytes(const llvm::BitVector &recomputed) const;
  /// Returns those calls of `recomputed` that must really be computed again, because the backward
  /// or another recomputed call reads their results.
  llvm::BitVector getNeeded(const llvm::BitVector &recomputed) const;

  /// Changes the block so that the backward reads results of copies of the `recomputed` calls. The
  /// graph is invalid after this call.
  void apply(const llvm::BitVector &recomputed);

private:
  void findMoment();
  void findCalls();
  void findSegments();
  void findUses();
  StringRef getUnit(KernelCallOp call);
  bool isGradient(Value base);
  template <typename Visitor>
  /// Calls `visit` for each use of `base` and of its views. The argument of `visit` is the user, or
  /// the op of this block that contains the user.
  void visitUses(Value base, Visitor visit);

  Value remap(Value value, const llvm::BitVector &recomputed);
  Value remapParameter(UnshardOp unshard, unsigned result);
  void moveBefore(Operation *op, Operation *place);

  Block &block;
  Aliasing &aliasing;
  SmallVector<Operation *> ops;
  DenseMap<Operation *, unsigned> positions;
  unsigned moment = 0; // position of the last op of the forward
  SmallVector<Call> calls;
  DenseMap<Operation *, unsigned> numbers; // indices in `calls`
  unsigned segments = 0;

  // State of apply().
  DenseMap<StringAttr, SmallVector<UnshardOp, 2>> gathers; // by unit
  DenseMap<Value, Value> remapped;
  Operation *place = nullptr;
};

} // namespace mlir::fsdp

#endif // FSDP_PLAN_RECOMPUTEGRAPH_H
