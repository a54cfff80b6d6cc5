//===- NestBuilder.h - Phases as nests of vector loops ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See NestKernels.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_NESTS_NESTBUILDER_H
#define FSDP_LIB_CODEGEN_CPU_NESTS_NESTBUILDER_H

#include "Codegen/Kernel/AccessLog.h"
#include "Codegen/Kernel/Lowering.h"
#include "Codegen/Kernel/SegmentDriver.h"
#include "fsdp/Codegen/CpuTarget.h"

namespace mlir::fsdp {

/// Maximum number of virtual lanes in which a row is summed. The number is the same for all
/// instruction sets.
inline constexpr int64_t virtualLanes = 64;
/// A flat range of elements is divided among the workers in units of this number of elements.
inline constexpr int64_t flatTile = 64;
/// Distance in bytes at which a flat map prefetches its operands. On an Intel Xeon with AMX, 512
/// and 1024 are best: AdamW and casts of 124M parameters take 112 ms instead of 135 ms.
inline constexpr int64_t mapPrefetchDistance = 1024;

/// Lowers the steps of one kernel, phase by phase. build() emits the phases before the kernel in
/// the module and does not change the kernel. If build() refuses the kernel, another lowering can
/// therefore still lower the kernel.
class NestBuilder : SegmentDriver {
public:
  NestBuilder(func::FuncOp kernel, const CpuTarget &target, SmallVector<Step> steps);
  ~NestBuilder() override;
  /// Emits all phases. Returns false if this lowering does not support a step.
  bool build() { return buildSegments(); }
  /// Replaces the kernel by the phases and fills `info`.
  void finish(KernelInfo &info);

private:
  /// A phase, with its function, arguments, scratch and range.
  struct Phase {
    func::FuncOp function;
    EvaluationState state;
    Value begin, end, worker, shared;
    int64_t workerBytes = 0;
    int64_t extent = 1, tile = 1;
  };
  /// Describes the loops over the columns of a row: one vectorised loop of size `inner`, within
  /// loops of the sizes `outer`.
  struct Columns {
    SmallVector<int64_t> shape, outer;
    int64_t inner = 1;
    // Bounds of the parts of the inner loop: 0, the positions at which it is split, and `inner`.
    SmallVector<int64_t> borders;
  };
  /// Properties of a piece of code. To find them, the builder emits the code and then erases it.
  struct Trial {
    int64_t gathers;
    SmallVector<int64_t> splits;
  };
  using Values = SmallVector<Value>;

  // NestKernels.cpp
  bool buildRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows) override;
  bool buildMaps(ArrayRef<Step> segment) override;
  bool buildTurned(ArrayRef<Step> segment) override;
  void dropParts(size_t parts) override;
  size_t numParts() const override { return phases.size(); }
  Phase begin(int64_t extent, int64_t tile);
  bool commit(Phase &phase, ArrayRef<Step> segment);
  Value view(Value bytes, int64_t offset, int64_t elements, Type element);
  SmallVector<Value> getTargets(Phase &phase, const Step &step);
  Value constantVector(TypedAttr element, int64_t lanes);
  int64_t vectorLanes(int64_t lanes) const {
    return std::min<int64_t>(lanes, target.vectorBits / 8);
  }
  void storeAll(Evaluator &at, ArrayRef<Value> targets, Value value, AffineExpr offset);
  Value index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }

  // RowNests.cpp
  bool buildLongRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows);
  bool buildFlat(ArrayRef<Step> segment);
  void emitRow(Phase &phase, ArrayRef<Step> segment, ArrayRef<int64_t> rows, Evaluator &at,
               AffineExpr row);
  void emitGroup(Phase &phase, ArrayRef<Step> group, ArrayRef<int64_t> rows, Evaluator &at,
                 ArrayRef<AffineExpr> rowIndices);
  void emitBody(Phase &phase, ArrayRef<const Step *> members, ArrayRef<AffineExpr> rowIndices,
                ArrayRef<AffineExpr> columnIndices, Evaluator &at, int64_t first, Values &carried,
                int64_t pieces);
  void emitStore(Phase &phase, const Step &step, Evaluator &at, SmallVector<AffineExpr> indices,
                 Value value);
  Trial attempt(Phase &phase, function_ref<void()> emit);
  Columns chooseColumns(Phase &phase, ArrayRef<const Step *> members,
                        ArrayRef<AffineExpr> rowIndices, ArrayRef<int64_t> shape, Evaluator &at);
  Values emitLoops(const Columns &columns, unsigned level, SmallVector<AffineExpr> outer,
                   Evaluator &at, int64_t chunk, Values carried,
                   function_ref<void(Evaluator &, ArrayRef<AffineExpr>, int64_t, Values &)> body);
  Value reduceLanes(const Step &step, ArrayRef<Value> parts);

  // ShortRows.cpp
  bool buildShortRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows);
  void emitShortRows(Phase &phase, ArrayRef<Step> segment, ArrayRef<int64_t> rows, Evaluator &at,
                     AffineExpr row);

  // TransposedNests.cpp
  bool buildTransposed(ArrayRef<Step> segment);
  void emitSquare(Phase &phase, ArrayRef<Step> segment, Evaluator &at,
                  SmallVector<AffineExpr> indices, unsigned across, AffineExpr row,
                  AffineExpr column);
  void emitUnits(Phase &phase, ArrayRef<Step> segment, unsigned across);

  // ColumnNests.cpp
  struct ColumnReduction;
  bool buildColumns(ArrayRef<Step> segment) override;
  bool buildBlockSums(ColumnReduction &reduction);
  SmallVector<Value> sumRows(const ColumnReduction &reduction, Evaluator &at,
                             ArrayRef<AffineExpr> column, Value first, Value last);
  void finishColumns(const ColumnReduction &reduction, Phase &phase, Evaluator &piece,
                     SmallVector<AffineExpr> column);
  bool buildScatter(const Step &step) override;
  void emitRange(Phase &phase, int64_t size, Evaluator &at,
                 function_ref<void(Evaluator &, AffineExpr)> body, int64_t lanes = 0);
  void emitColumns(int64_t size, Evaluator &at, function_ref<void(Evaluator &, AffineExpr)> body);
  void emitPieces(int64_t begin, int64_t end, Evaluator &at,
                  function_ref<void(Evaluator &, AffineExpr)> body);

  func::FuncOp kernel;
  const CpuTarget &target;
  OpBuilder builder;
  Location loc;
  std::vector<Phase> phases;
  /// Maps values of the current group to the row buffers that hold them.
  DenseMap<Value, Value> rowBuffers;
  unsigned rowBufferSkip = 0;
  AccessLog log;
};

/// Lowers a kernel that consists of maps, row and column reductions, and scatters. If the kernel
/// contains anything else, returns false and emits no phase.
bool lowerNestKernel(func::FuncOp kernel, const CpuTarget &target, KernelInfo &info);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_CPU_NESTS_NESTBUILDER_H
