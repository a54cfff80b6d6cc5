//===- GpuNests.h - Maps, reductions and scatters on a GPU ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See GpuNests.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_NESTS_GPUNESTS_H
#define FSDP_LIB_CODEGEN_GPU_NESTS_GPUNESTS_H

#include "Codegen/Gpu/Ptx/GpuBuilder.h"
#include "Codegen/Kernel/AccessLog.h"
#include "Codegen/Kernel/SegmentDriver.h"
#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir::fsdp {

/// Lowers the steps of one kernel, launch by launch. An entry is a function on flat memrefs. Its
/// arguments are the bindings of the kernel, then the scratch. Emits the entries before the kernel
/// and does not change the kernel.
class GpuNests : SegmentDriver {
public:
  /// If `late` is true, all maps run after all reductions, in one pass that reads before it stores.
  GpuNests(func::FuncOp kernel, const GpuTarget &target, SmallVector<Step> steps, bool late);
  ~GpuNests() override;
  /// Emits all launches. Returns false if a step is refused.
  bool build();
  /// Moves the launches to `info`, and adds the attributes of describeNestEntry() to the entries.
  void finish(GpuKernel &info);

private:
  struct Entry {
    func::FuncOp function;
    EvaluationState state;
    Value scratch;
    int64_t blocks = 1, threads = 1;
  };
  using Values = SmallVector<Value>;
  /// The threads that process one row. There are `perRow` such threads, and this thread has the
  /// index `local` among them.
  struct RowThreads {
    int64_t perRow;
    Value local;
    Value active; ///< true if the row exists; null if all rows exist
  };

  // GpuNests.cpp
  bool buildMaps(ArrayRef<Step> segment) override;
  bool buildTurned(ArrayRef<Step> segment) override;
  void dropParts(size_t parts) override;
  size_t numParts() const override { return entries.size(); }
  Entry begin();
  bool commit(Entry &entry, ArrayRef<Step> segment);
  Value view(Entry &entry, int64_t offset, int64_t elements, Type element);
  Values getTargets(Entry &entry, const Step &step);
  void storeAll(Entry &entry, const Step &step, Evaluator &at, SmallVector<AffineExpr> indices,
                Value value);
  bool readsWhatItWrites() const;
  int64_t chooseWidth(ArrayRef<Step> segment, int64_t inner, int64_t total) const;
  void emitPositions(Entry &entry, int64_t size, int64_t width,
                     function_ref<void(Evaluator &, AffineExpr, int64_t)> body);
  bool buildFlat(ArrayRef<Step> segment);
  Value toIndex(Value i32) {
    return b.createOrFold<arith::IndexCastUIOp>(b.loc, b.getIndexType(), i32);
  }
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, b.loc, value); }
  Value constantOf(TypedAttr value) { return arith::ConstantOp::create(b, b.loc, value); }
  Value identityOf(const Step &step) {
    return constantOf(getIdentity(step.combiner, step.getType().getElementType()));
  }
  int64_t fullThreads() const { return target.multiprocessors * 1024; }

  // GpuNestRows.cpp
  SmallVector<ArrayRef<Step>> formGroups(ArrayRef<Step> segment, ArrayRef<int64_t> rows);
  bool buildRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows) override;
  bool buildSplitRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows);
  void emitGroup(Entry &entry, ArrayRef<Step> group, ArrayRef<int64_t> rows, Evaluator &at,
                 ArrayRef<AffineExpr> rowIndices, const RowThreads &threads);
  void emitScalars(Entry &entry, ArrayRef<Step> group, Evaluator &at,
                   ArrayRef<AffineExpr> rowIndices, int64_t rank, const RowThreads &threads);
  void emitBody(Entry &entry, ArrayRef<Step> members, ArrayRef<int64_t> shape,
                ArrayRef<AffineExpr> rowIndices, Evaluator &at, AffineExpr first, int64_t count,
                int64_t width, Values &carried, Value active);
  /// Emits loops over the positions [0, size) of a row, in steps of `width` positions. Returns the
  /// carried values.
  Values emitColumns(int64_t size, int64_t width, Evaluator &at, const RowThreads &threads,
                     Values carried,
                     function_ref<void(Evaluator &, AffineExpr, int64_t, Values &)> body);
  Value reduceThreads(Entry &entry, Value value, int64_t perRow,
                      function_ref<Value(Value, Value)> combine);
  Value exchange(Value value, int64_t bits);
  void synchronise(int64_t perRow);
  void whenFirst(const RowThreads &threads, function_ref<void()> body);
  Value getShared(Entry &entry, Type element, int64_t elements);

  // GpuNestColumns.cpp
  bool buildColumns(ArrayRef<Step> segment) override;
  Values sumRows(ArrayRef<Step> segment, Evaluator &at, ArrayRef<int64_t> shape, AffineExpr first,
                 int64_t width, Value from, Value to, int64_t most, int64_t count);
  void finishParts(Entry &entry, ArrayRef<Step> segment, ArrayRef<int64_t> offsets, int64_t parts);
  bool buildScatter(const Step &step) override;
  void emitToken(Entry &entry, const Step &step, Evaluator &at, AffineExpr token, Value id,
                 Value row);

  func::FuncOp kernel;
  const GpuTarget &target;
  const bool late;
  GpuBuilder b;
  std::vector<Entry> entries;
  unsigned sharedCount = 0;
  AccessLog log;
};

/// Lowers a kernel that consists of maps, reductions and scatters. Returns false if the kernel
/// contains anything else.
bool lowerGpuNests(func::FuncOp kernel, const GpuTarget &target, GpuKernel &info);
/// Lowers a kernel that is neither a tiled contraction nor attention.
LogicalResult lowerGpuNestKernel(func::FuncOp kernel, const GpuTarget &target, ModuleOp entries,
                                 GpuKernel &info);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_NESTS_GPUNESTS_H
