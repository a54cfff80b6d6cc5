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
  /// If the shard axis has `ranks` ranks, returns the name of this axis. If the ranks of the axis
  /// form groups of `ranks` neighbours each, returns the name of these groups. Emits an error
  /// otherwise.
  FailureOr<std::string> getShardAxis(Operation *op, int64_t ranks);
  void emitCollective(Operation *op, CollectiveKind kind, const Place &source, const Place &target,
                      Type element, ArrayAttr axes, std::optional<ReductionKind> reduction,
                      FlatSymbolRefAttr unit, int64_t root, StringRef rows = "");
  void fillGaps(ReduceScatterOp op, const Place &flat);

  // UnitSums.cpp
  AllReduceOp findUnitSum(ReduceScatterOp op, Value gradient, bool isCast);
  void joinUnitSums(ReduceScatterOp op, const Place &flat);
  void joinUnitSums(ArrayRef<std::pair<AllReduceOp, Place>> sums);
  LogicalResult planAllReduce(AllReduceOp op);

  // Placement.cpp
  Place getPlace(Value value) { return places.at(value); }
  void setPlace(Value value, const Place &place);
  Place addBuffer(const Twine &label, Category category, int64_t bytes, Location loc);
  /// Returns true if `op` may overwrite `place`. The place must be aligned, must contain no value
  /// that is read later, and must overlap none of `taken`.
  bool isFree(const Place &place, Operation *op, ArrayRef<Place> taken = {});
  /// Returns a place that contains `value` and that `op` may overwrite. If isFree() is true for the
  /// place of `value`, returns this place. Otherwise adds a copy of `value` and returns the place
  /// of the copy.
  Place claim(Value value, Operation *op, ArrayRef<Place> taken);
  /// Returns the place at which a kernel reads `value`. If the place of `value` is aligned, returns
  /// this place. Otherwise adds a copy of `value` and returns the place of the copy.
  Place align(Value value, Operation *op);
  /// Copies the content of `value` to `target`.
  void materialise(Value value, const Place &target, Location loc);
  /// Copies values to places. The result is the same as if all sources were read before any target
  /// is written.
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
  /// Maps each buffer to the values that are in the buffer.
  DenseMap<Operation *, SmallVector<Value>> residents;
  /// Values whose bytes are all zero. A copy of such a value becomes a fill.
  llvm::DenseSet<Value> zeros;
  /// Gradients that have already been reduced over ranks.
  llvm::DenseSet<Value> gradients;
  /// The flat buffer of each reduce-scatter.
  DenseMap<Operation *, Place> flatBuffers;
  /// Maps sums over ranks that are computed together with others to their places.
  DenseMap<Operation *, Place> unitSums;
  /// Maps the last of the sums that are computed together to their range.
  DenseMap<Operation *, Place> unitSumRanges;
  /// Maps a gather to its buffer if a kernel writes the source of the gather into this buffer.
  DenseMap<Operation *, Place> gatheredBuffers;
  /// Maps results that kernels write directly into a flat or gathered buffer to their places.
  DenseMap<Value, Place> reserved;
  DenseMap<Value, std::string> slotNames;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_PLAN_FUNCTIONPLAN_H
