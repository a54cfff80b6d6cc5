//===- FunctionPlan.h - One function as commands on buffers -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_PLAN_FUNCTIONPLAN_H
#define FSDP_LIB_PLAN_FUNCTIONPLAN_H

#include "LayoutBuilder.h"
#include "fsdp/Analysis/Aliasing.h"

namespace mlir::fsdp {

/// Builds the program of one function. AssignBuffers.cpp describes the algorithm.
class FunctionPlan {
public:
  struct Counts {
    unsigned buffers = 0, copies = 0, fills = 0;
  };

  FunctionPlan(func::FuncOp function, LayoutBuilder &layout, Counts &counts);

  /// Adds an `fsdp.program` after the function. Does not change the function.
  LogicalResult run();

private:
  // FunctionPlan.cpp
  LogicalResult placeArguments();
  LogicalResult planBlock(Block &block);
  LogicalResult planOp(Operation *op);
  LogicalResult planView(Operation *op, Value source);
  LogicalResult planCall(KernelCallOp call);
  LogicalResult planLoop(scf::ForOp loop);
  LogicalResult planReturn(func::ReturnOp op);

  // CollectivePlan.cpp
  void reserveFlatBuffers();
  void reserveGathered();
  Place planGathered(Operation *op);
  Value traceRoot(ReduceScatterOp op, Value gradient);
  LogicalResult planUnshard(UnshardOp op);
  LogicalResult planReduceScatter(ReduceScatterOp op);
  LogicalResult planCollective(Operation *op, CollectiveKind kind, ArrayAttr axes,
                               std::optional<ReductionKind> reduction, int64_t root);
  LogicalResult planOwnPiece(OwnPieceOp op);
  LogicalResult planShard(ShardOp op);
  /// Returns the shard axis if it has `ranks` ranks, or the name of its groups of neighbours if a
  /// group has `ranks` ranks. Otherwise fails with an error.
  FailureOr<std::string> getShardAxis(Operation *op, int64_t ranks);
  void emitCollective(Operation *op, CollectiveKind kind, const Place &source, const Place &target,
                      Type element, ArrayAttr axes, std::optional<ReductionKind> reduction,
                      FlatSymbolRefAttr unit, int64_t root, StringRef rows = "");
  void fillGaps(ReduceScatterOp op, const Place &flat);

  // Placement.cpp
  Place getPlace(Value value) { return places.at(value); }
  void setPlace(Value value, const Place &place);
  Place addBuffer(const Twine &label, Category category, int64_t bytes, Location loc);
  /// Returns true if `op` may overwrite `place`: it is aligned, no value in it is read later, and
  /// it overlaps none of `taken`.
  bool isFree(const Place &place, Operation *op, ArrayRef<Place> taken = {});
  /// Returns a place with the content of `value` that `op` may overwrite. If isFree() is false for
  /// the place of the value, adds a copy and returns its place.
  Place claim(Value value, Operation *op, ArrayRef<Place> taken);
  /// Returns the place of `value` for a kernel, or that of a copy if the place is not aligned.
  Place align(Value value, Operation *op);
  /// Copies the content of `value` to `target`.
  void materialise(Value value, const Place &target, Location loc);
  /// Copies values to places, as if every source were read before any target is written.
  void moveAll(ArrayRef<std::pair<Value, Place>> moves, Location loc);
  void emitFill(const Place &target, Location loc, const Twine &label);
  void emitCopy(const Place &source, const Place &target, Location loc, const Twine &label);

  // Labels.cpp
  void findGradients();
  Category classify(Value result, KernelCallOp call);
  /// Returns the name of a parameter, gradient or state for messages; empty for other values.
  std::string describe(Value value);
  std::string describe(KernelCallOp call);

  func::FuncOp function;
  LayoutBuilder &layout;
  Counts &counts;
  Aliasing aliasing;
  SymbolTableCollection tables;
  OpBuilder builder;
  ProgramOp program;
  int64_t nextBuffer = 0, nextId = 0;

  DenseMap<Value, Place> places;
  /// For each buffer, the values that are placed in it.
  DenseMap<Operation *, SmallVector<Value>> residents;
  /// Values whose bytes are all zero. A copy of such a value becomes a fill.
  llvm::DenseSet<Value> zeros;
  /// Values that hold gradients after their reduction.
  llvm::DenseSet<Value> gradients;
  /// The flat buffer of each reduce-scatter.
  DenseMap<Operation *, Place> flatBuffers;
  /// For each gather whose source a kernel writes into the gathered buffer: this buffer.
  DenseMap<Operation *, Place> gatheredBuffers;
  /// Places of kernel results that kernels write directly into a flat or gathered buffer.
  DenseMap<Value, Place> reserved;
  DenseMap<Value, std::string> slotNames;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_PLAN_FUNCTIONPLAN_H
